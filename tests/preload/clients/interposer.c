/* A tracer of the program: stands before the driver under its names, and goes on with RTLD_NEXT. */
#include <dlfcn.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned int flags);
EXPORT int cuStreamSynchronize(void* stream);
EXPORT int cuFuncLoad(void* function);
EXPORT void* interposer_init(void);

int cuInit(unsigned int flags) {
  int (*next)(unsigned int) = (int (*)(unsigned int))dlsym(RTLD_NEXT, "cuInit");
  printf("tracer cuInit, next %s\n", next != NULL && next != cuInit ? "found" : "wrong");
  return next != NULL ? next(flags) : -1;
}

int cuStreamSynchronize(void* stream) {
  int (*next)(void*) = (int (*)(void*))dlsym(RTLD_NEXT, "cuStreamSynchronize");
  printf("tracer cuStreamSynchronize, next %s\n",
         next != NULL && next != cuStreamSynchronize ? "found" : "wrong");
  return next != NULL ? next(stream) : -1;
}

int cuFuncLoad(void* function) {
  int (*next)(void*) = (int (*)(void*))dlsym(RTLD_NEXT, "cuFuncLoad");
  printf("tracer cuFuncLoad, next %s\n", next != NULL && next != cuFuncLoad ? "found" : "wrong");
  return next != NULL ? next(function) : -1;
}

/* Its own address, where a reference by name would be bound like any other. */
extern __typeof__(cuInit) own_init __attribute__((alias("cuInit"), visibility("hidden")));
void* interposer_init(void) {
  return (void*)&own_init;
}
