/* Initialises the driver at an address that nobody routed, as a library does that found the driver
 * by other means, and then uses it in the way that the first argument names. */
#include "fake_driver.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  if (strcmp(way, "folder") == 0 && chdir("/") != 0) {
    return 1;
  }
  CUresult (*init)(unsigned int) = (CUresult(*)(unsigned int))fake_entry("cuInit");
  printf("init %d\n", (int)init(0));
  if (strcmp(way, "context") == 0) {
    CUcontext context = NULL;
    printf("context %d\n", (int)cuDevicePrimaryCtxRetain(&context, 0));
  } else if (strcmp(way, "memory") == 0) {
    CUdeviceptr memory = 0;
    printf("memory %d\n", (int)cuMemAlloc(&memory, 1));
  } else {
    printf("launch %d\n", (int)cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  }
  if (strcmp(way, "folder") == 0) {
    printf("core attached %d\n", dlopen("libcontextune.so", RTLD_NOLOAD | RTLD_LAZY) != NULL);
  }
  return 0;
}
