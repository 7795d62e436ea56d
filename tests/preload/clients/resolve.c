/* Reaches the driver as the CUDA runtime does, through a static archive, and says for each pointer
 * which entry of the driver a call of it ends in. */
#include "minicudart.h"

#include "preload/contextune_abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char* const names[] = {
#define CONTEXTUNE_ENTRY(name, ...) #name,
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};
enum { num_names = sizeof names / sizeof names[0] };

static int (*calls)(const char*);
static void* (*entry)(const char*);

static const char* end_of(void* pointer) {
  static char memory[1024];
  static void* out;
  int before[num_names];
  for (int i = 0; i < num_names; ++i) {
    before[i] = calls(names[i]);
  }
  /* Right for every entry that is asked about: a symbol, a place for a pointer, zeroes. */
  ((int (*)(const char*, void**, uintptr_t, uintptr_t, void*, uintptr_t, uintptr_t, uintptr_t,
            uintptr_t, uintptr_t, uintptr_t))pointer)(memory, &out, 0, 0, memory + 512, 0, 0, 0, 0,
                                                      0, 0);
  const char* found = "none";
  for (int i = 0; i < num_names; ++i) {
    if (calls(names[i]) != before[i]) {
      found = names[i];
    }
  }
  return found;
}

static void ask(const char* symbol, int version, unsigned long long flags) {
  int result = 0;
  void* pointer = mini_pointer(symbol, version, flags, &result);
  printf("%s@%d/%llu result %d", symbol, version, flags, result);
  if (pointer == NULL) {
    printf(" null\n");
    return;
  }
  const char* name = end_of(pointer);
  printf(" calls %s\n", name);
  fprintf(stderr, "%s@%d/%llu %s\n", symbol, version, flags,
          strcmp(name, "none") == 0 || pointer == entry(name) ? "bare" : "routed");
}

int main(void) {
  printf("start %d\n", mini_start());
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  calls = (int (*)(const char*))dlsym(library, "fake_calls");
  entry = (void* (*)(const char*))dlsym(library, "fake_entry");
  printf("launch %d %d\n", mini_launch(0), mini_launch(1));
  printf("calls %d %d\n", calls("cuLaunchKernel"), calls("cuLaunchKernel_ptsz"));
  static const struct {
    const char* symbol;
    int version;
  } questions[] = {
      {"cuInit", 2000},
      {"cuLaunchKernel", 3999},
      {"cuLaunchKernel", 4000},
      {"cuLaunchKernel", 7000},
      {"cuLaunchKernel", 13000},
      {"cuLaunchKernelEx", 11060},
      {"cuStreamBeginCapture", 10000},
      {"cuStreamBeginCapture", 10010},
      {"cuStreamSynchronize", 2000},
      {"cuStreamSynchronize", 7000},
      {"cuStreamDestroy", 2000},
      {"cuStreamDestroy", 4000},
      {"cuStreamQuery", 7000},
      {"cuCtxCreate", 2000},
      {"cuCtxCreate", 3020},
      {"cuCtxCreate", 11040},
      {"cuCtxCreate", 12050},
      {"cuCtxSynchronize", 2000},
      {"cuCtxSynchronize", 13000},
      {"cuMemAlloc", 3020},
      {"cuMemcpyHtoDAsync", 7000},
      {"cuMemcpyHtoD", 7000},
      {"cuMemcpyBatchAsync", 12080},
      {"cuMemcpyBatchAsync", 13000},
      {"cuMemPrefetchAsync", 8000},
      {"cuMemPrefetchAsync", 12020},
      {"cuStreamWaitValue32", 8000},
      {"cuStreamWaitValue32", 11070},
      {"cuGetProcAddress", 11030},
      {"cuGetProcAddress", 12000},
      {"cuDriverGetVersion", 2020},
      {"cuNoSuchThing", 13000},
      {"", 0},
  };
  for (size_t i = 0; i < sizeof questions / sizeof questions[0]; ++i) {
    ask(questions[i].symbol, questions[i].version, 0);
    ask(questions[i].symbol, questions[i].version, 2);
  }
  int result = 0;
  void* pointer = mini_pointer(NULL, 13000, 0, &result);
  printf("no symbol: result %d, pointer kept %d\n", result, pointer != NULL);
  /* The resolver that the resolver gives resolves as well. */
  int (*again)(const char*, void**, int, unsigned long long, void*) = NULL;
  void* found = mini_pointer("cuGetProcAddress", 12000, 0, &result);
  memcpy(&again, &found, sizeof again);
  void* launch = NULL;
  printf("again %d", again("cuLaunchKernel", &launch, 7000, 2, NULL));
  printf(" calls %s\n", end_of(launch));
  fprintf(stderr, "again %s\n", launch == entry("cuLaunchKernel_ptsz") ? "bare" : "routed");
  return 0;
}
