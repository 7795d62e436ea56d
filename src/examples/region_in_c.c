/* A region with a tunable, in C. Other languages call the same functions. */
#include <contextune/contextune.h>

#include "gpu.h"

int main(void) {
  static const unsigned blocks[] = {128, 256, 512};
  static const char* const configs[] = {"block=128", "block=256", "block=512"}; /* default first */
  const CUmodule module = gpu_open(0);
  const CUfunction scale = gpu_kernel(module, "scale");
  int n = 1 << 20;
  float factor = 2;
  CUdeviceptr x = gpu_floats(n, 3);
  void* arguments[] = {&x, &factor, &n};
  contextune_tunable* const tunable = contextune_tunable_create("scale", configs, 3);
  contextune_entry entry;

  if (tunable == NULL) {
    fprintf(stderr, "%s\n", contextune_error());
    return 1;
  }
  contextune_region_begin(&entry, "step");
  /* The body changes x, which is put back before each further pass. */
  if (contextune_region_restore_buffer(&entry, (void*)x, (size_t)n * sizeof(float)) != 0)
    fprintf(stderr, "%s\n", contextune_error());
  while (contextune_region_next(&entry)) {
    contextune_call call;
    const unsigned config =
        contextune_tunable_begin(tunable, contextune_tunable_key(tunable, "n=1048576"), &call);
    const int launched = gpu_launch(scale, blocks[config], n, arguments) == CUDA_SUCCESS;
    if (contextune_tunable_end(&call, launched))
      gpu_check(gpu_launch(scale, blocks[0], n, arguments), "scale");
  }
  contextune_region_end(&entry);
  if (*contextune_state_reason() != '\0') printf("not tuned: %s\n", contextune_state_reason());
  return gpu_has(x, n, 6, "2 * 3") ? 0 : 1;
}
