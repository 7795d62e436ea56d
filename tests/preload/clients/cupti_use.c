/* Uses CUPTI in the way that the first argument names. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*subscribe_fn)(void**, void*, void*);

#ifdef DIRECT
extern int cuptiSubscribe(void**, void*, void*);
extern int cuptiActivityEnable(int kind);
#else
static void* find(const char* path, const char* name) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    printf("missing: %s\n", dlerror());
    exit(1);
  }
  return found;
}

#endif

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
#ifdef DIRECT
  if (strcmp(way, "early") == 0) {
    printf("subscribe %d\n", cuptiSubscribe(NULL, NULL, NULL));
  }
  printf("init %d\n", (int)cuInit(0));
  if (strcmp(way, "late") == 0) {
    printf("enable %d\n", cuptiActivityEnable(1));
    printf("subscribe %d\n", cuptiSubscribe(NULL, NULL, NULL));
  }
#else
  printf("init %d\n", (int)cuInit(0));
  if (strcmp(way, "look") == 0) {
    printf("found %d\n", find(argv[2], "cuptiSubscribe") != NULL);
  } else if (strcmp(way, "harmless") == 0) {
    unsigned int version = 0;
    int (*get_version)(unsigned int*) = (int (*)(unsigned int*))find(argv[2], "cuptiGetVersion");
    const int result = get_version(&version);
    printf("version %d %u\n", result, version);
  } else if (strcmp(way, "copies") == 0) {
    subscribe_fn first = (subscribe_fn)find(argv[2], "cuptiSubscribe");
    subscribe_fn second = (subscribe_fn)find(argv[3], "cuptiSubscribe");
    printf("different %d\n", first != second);
    printf("first %d\n", first(NULL, NULL, NULL));
    printf("second %d\n", second(NULL, NULL, NULL));
  } else if (strcmp(way, "plugin") == 0) {
    int (*run)(void) = (int (*)(void))find(argv[2], "plugin_run");
    printf("plugin %d\n", run());
  }
#endif
  return 0;
}
