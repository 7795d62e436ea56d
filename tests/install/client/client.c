/* A C program that links contextune, on a machine without a driver. */
#include <contextune/contextune.h>

#include <stdio.h>

int main(void) {
  static const char* const configs[] = {"block=256", "block=128"};
  contextune_tunable* tunable = contextune_tunable_create("c", configs, 2);
  contextune_entry entry;
  int runs = 0;
  contextune_region_begin(&entry, "c");
  while (contextune_region_next(&entry)) {
    contextune_call call;
    ++runs;
    if (contextune_tunable_begin(tunable, 0, &call) != 0) return 1;
    contextune_tunable_end(&call, 1);
  }
  contextune_region_end(&entry);
  printf("contextune %s: %s\n", contextune_version(), contextune_state_reason());
  return runs == 1 && contextune_current_state() == contextune_state_off ? 0 : 1;
}
