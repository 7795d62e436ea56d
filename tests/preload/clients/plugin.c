/* A plugin that brings the driver along as its own dependency: calls it directly, and looks it up
 * in its scope, which is not the global one. */
#include <dlfcn.h>
#include <stdio.h>

extern int cuInit(unsigned int);
extern void* fake_entry(const char* name);

__attribute__((visibility("default"))) int plugin_run(void);
int plugin_run(void) {
  void* found = dlsym(RTLD_DEFAULT, "cuInit");
  const int direct = cuInit(0);
  const int looked_up = found != NULL ? ((int (*)(unsigned int))found)(0) : -1;
  printf("direct %d looked up %d\n", direct, looked_up);
  fprintf(stderr, "plugin %s\n",
          found == NULL                   ? "missing"
          : found == fake_entry("cuInit") ? "bare"
                                          : "routed");
  return 0;
}
