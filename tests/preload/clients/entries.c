/* Calls every entry of the registry in three ways, with different arguments in every place: at the
 * driver's own address, by a direct reference, and through dlsym. Prints what the driver got. */
#define __CUDA_API_VERSION_INTERNAL
#include "registered.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    const char* name = entries[i].name;
    if (strcmp(entries[i].kind, "resolve") == 0) {
      continue; /* looks into its arguments: see resolve.c */
    }
    void* real = fake_entry(name);
    void* looked_up = dlsym(library, name);
    fake_fail(name, 17); /* so that no call attaches a core, and results are seen to pass */
    const uint64_t expected = call(real);
    const int before = fake_calls(name);
    const int same =
        expected != 0 && call(entries[i].reference) == expected && call(looked_up) == expected;
    printf("%s %s calls %d\n", name, same ? "same" : "DIFFERENT", fake_calls(name) - before);
    /* Where an address has two names, the wrapper may be that of either. */
    fprintf(stderr, "%s %s %s\n", name, entries[i].reference != real ? "wrapped" : "bare",
            looked_up != real ? "routed" : "bare");
  }
  return 0;
}
