/* Another interposer of dlsym, of the simple kind: it forwards what it is asked. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name);
void* dlsym(void* handle, const char* name) {
  static void* (*next)(void*, const char*);
  if (next == NULL) {
    *(void**)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  }
  if (strcmp(name, "fake_calls") == 0) {
    fprintf(stderr, "second dlsym saw %s\n", name);
  }
  return next(handle, name);
}
