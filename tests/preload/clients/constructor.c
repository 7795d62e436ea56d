/* A library whose constructor, with the dynamic linker's lock held, brings up the driver. */
#include <dlfcn.h>
#include <stdio.h>

static int result = -1;

__attribute__((constructor)) static void start(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver != NULL) {
    int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(driver, "cuInit");
    result = init != NULL ? init(0) : -2;
  }
}

__attribute__((visibility("default"))) int plugin_run(void);
int plugin_run(void) {
  return result;
}
