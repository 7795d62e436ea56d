/* Looks the driver up in the way that the first argument names. What is printed on stdout must not
 * depend on the frontend; on stderr: which pointers were routed. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*init_fn)(unsigned int);
typedef int (*launch_fn)(void*, unsigned int, unsigned int, unsigned int, unsigned int,
                         unsigned int, unsigned int, unsigned int, void*, void**, void**);
typedef void* (*entry_fn)(const char*);
typedef int (*calls_fn)(const char*);

static void* library;

static void* open_driver(int mode) {
  library = dlopen("libcuda.so.1", RTLD_NOW | mode);
  if (library == NULL) {
    printf("no driver: %s\n", dlerror());
    exit(1);
  }
  return library;
}

static void report(const char* name, void* found) {
  void* real = ((entry_fn)dlsym(library, "fake_entry"))(name);
  fprintf(stderr, "%s %s\n", name, found == NULL ? "missing" : found == real ? "bare" : "routed");
}

static void say(const char* what, const void* found) {
  const char* error = dlerror();
  printf("%s: %s, %s\n", what, found != NULL ? "found" : "null",
         error != NULL ? error : "no error");
}

static void use(void* init, void* launch) {
  printf("init %d\n", ((init_fn)init)(0));
  printf("launch %d\n", ((launch_fn)launch)(&library, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, NULL));
  calls_fn calls = (calls_fn)dlsym(library, "fake_calls");
  printf("calls %d %d\n", calls("cuInit"), calls("cuLaunchKernel"));
}

static void by_handle(void) {
  open_driver(RTLD_LOCAL);
  void* init = dlsym(library, "cuInit");
  void* launch = dlsym(library, "cuLaunchKernel");
  report("cuInit", init);
  report("cuLaunchKernel", launch);
  use(init, launch);
}

static void by_default(void) {
  open_driver(RTLD_GLOBAL);
  void* init = dlsym(RTLD_DEFAULT, "cuInit");
  void* launch = dlsym(dlopen(NULL, RTLD_LAZY), "cuLaunchKernel");
  void* next = dlsym(RTLD_NEXT, "cuCtxDestroy_v2");
  report("cuFuncLoad", dlsym(RTLD_DEFAULT, "cuFuncLoad"));
  report("cuFuncGetName", dlsym(RTLD_NEXT, "cuFuncGetName"));
  report("cuCtxGetCurrent", dlsym(RTLD_DEFAULT, "cuCtxGetCurrent"));
  report("cuInit", init);
  report("cuLaunchKernel", launch);
  report("cuCtxDestroy_v2", next);
  use(init, launch);
}

/* The driver is loaded, but not in the scope that is searched. */
static void out_of_scope(void) {
  open_driver(RTLD_LOCAL);
  say("default", dlsym(RTLD_DEFAULT, "cuInit"));
  say("other", dlsym(RTLD_DEFAULT, "cuFuncLoad"));
  say("next", dlsym(RTLD_NEXT, "cuInit"));
  say("null", dlsym(dlopen(NULL, RTLD_LAZY), "cuInit"));
  say("libc", dlsym(dlopen("libc.so.6", RTLD_LAZY), "cuInit"));
}

static void without_driver(void) {
  static const char* const names[] = {"cuInit",
                                      "cuLaunchKernel",
                                      "cuGetProcAddress_v2",
                                      "cuFuncLoad",
                                      "cuptiSubscribe",
                                      "cuNoSuchThing",
                                      "cudnnCreate",
                                      "cu",
                                      "c"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    errno = 77;
    say(names[i], dlsym(RTLD_DEFAULT, names[i]));
    say(names[i], dlsym(RTLD_NEXT, names[i]));
    say(names[i], dlsym(dlopen(NULL, RTLD_LAZY), names[i]));
    printf("errno %d\n", errno);
  }
}

static void errors(void) {
  open_driver(RTLD_LOCAL);
  say("at first", library);
  say("missing", dlsym(library, "cuNoSuchThing"));
  say("found", dlsym(library, "cuInit"));
  dlsym(library, "cuNoSuchThing");
  void* found = dlsym(library, "cuLaunchKernel"); /* a success clears the error */
  say("cleared", found);
  dlsym(library, "cuNoSuchThing");
  dlsym(library, "cuNoOtherThing");
  say("the last of two", NULL);
  say("only once", NULL);
  say("a name of a type", dlsym(library, "cuptiSubscribe"));
}

/* The program's own functions, whose names look like the driver's. */
#define OWN(name)                                        \
  __attribute__((visibility("default"))) int name(void); \
  int name(void) {                                       \
    return 5;                                            \
  }
OWN(cudnnCreate)
OWN(cublasCreate_v2)
OWN(culaunchKernel)
OWN(cuda_internal)
OWN(curl_easy_init)

static void prefixes(void) {
  void* self = dlopen(NULL, RTLD_LAZY);
  printf("%d %d %d %d %d\n", dlsym(self, "cudnnCreate") == (void*)&cudnnCreate,
         dlsym(self, "cublasCreate_v2") == (void*)&cublasCreate_v2,
         dlsym(RTLD_DEFAULT, "culaunchKernel") == (void*)&culaunchKernel,
         dlsym(RTLD_DEFAULT, "cuda_internal") == (void*)&cuda_internal,
         dlsym(self, "curl_easy_init") == (void*)&curl_easy_init);
}

static void repeat(void) {
  open_driver(RTLD_LOCAL);
  void* first = dlsym(library, "cuInit");
  int same = first != NULL;
  for (int i = 0; i < 1000; ++i) {
    same = same && dlsym(library, "cuInit") == first;
  }
  printf("same %d\n", same);
}

static void closed(void) {
  open_driver(RTLD_LOCAL);
  void* init = dlsym(library, "cuInit");
  void* launch = dlsym(library, "cuLaunchKernel");
  void* kept = dlopen("libcuda.so.1", RTLD_NOW); /* as cudart does */
  dlclose(library);
  use(init, launch);
  dlclose(kept);
  open_driver(RTLD_LOCAL);
  use(dlsym(library, "cuInit"), dlsym(library, "cuLaunchKernel"));
}

/* Another library with a function of that name is another function. */
static void foreign(void) {
  open_driver(RTLD_LOCAL);
  void* other = dlopen("libinterposer.so", RTLD_NOW | RTLD_LOCAL);
  void* init = other != NULL ? dlsym(other, "cuInit") : NULL;
  void* marker = other != NULL ? dlsym(other, "interposer_init") : NULL;
  printf("its own %d\n", init != NULL && init == ((void* (*)(void))marker)());
}

static void plugin(const char* name, int mode) {
  void* loaded = dlopen(name, RTLD_NOW | mode);
  if (loaded == NULL) {
    printf("no plugin: %s\n", dlerror());
    exit(1);
  }
  int (*run)(void) = (int (*)(void))dlsym(loaded, "plugin_run");
  printf("plugin %d\n", run());
}

static pthread_barrier_t barrier;
static void* race(void* out) {
  pthread_barrier_wait(&barrier);
  void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  init_fn init = (init_fn)dlsym(handle, "cuInit");
  launch_fn launch = (launch_fn)dlsym(handle, "cuLaunchKernel");
  int bad = init(0);
  for (int i = 0; i < 1000; ++i) {
    bad |= launch(&barrier, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
  }
  *(int*)out = bad;
  return (void*)init;
}

static void threads(void) {
  enum { num_threads = 16 };
  pthread_t started[num_threads];
  int bad[num_threads];
  void* found[num_threads];
  pthread_barrier_init(&barrier, NULL, num_threads);
  for (int i = 0; i < num_threads; ++i) {
    pthread_create(&started[i], NULL, race, &bad[i]);
  }
  int same = 1;
  for (int i = 0; i < num_threads; ++i) {
    pthread_join(started[i], &found[i]);
    same = same && found[i] == found[0] && bad[i] == 0;
  }
  open_driver(RTLD_LOCAL);
  calls_fn calls = (calls_fn)dlsym(library, "fake_calls");
  printf("same %d calls %d %d\n", same, calls("cuInit"), calls("cuLaunchKernel"));
}

static void forked(void) {
  by_handle();
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    by_handle();
    fflush(stdout);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  by_handle();
}

int main(int argc, char** argv) {
  const char* way = argc > 1 ? argv[1] : "";
  static const struct {
    const char* name;
    void (*run)(void);
  } ways[] = {
      {"handle", by_handle}, {"default", by_default},     {"out-of-scope", out_of_scope},
      {"errors", errors},    {"without", without_driver}, {"prefixes", prefixes},
      {"repeat", repeat},    {"closed", closed},          {"foreign", foreign},
      {"threads", threads},  {"forked", forked},
  };
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
    if (strcmp(way, ways[i].name) == 0) {
      ways[i].run();
      return 0;
    }
  }
  if (strcmp(way, "deepbind") == 0) {
    plugin("libplugin.so", RTLD_LOCAL | RTLD_DEEPBIND);
  } else if (strcmp(way, "local-plugin") == 0) {
    plugin("libplugin.so", RTLD_LOCAL);
  } else if (strcmp(way, "constructor") == 0) {
    plugin("libconstructor.so", RTLD_LOCAL);
  } else if (strcmp(way, "self-lookup") == 0) {
    plugin("libself_lookup.so", RTLD_GLOBAL);
  } else if (strcmp(way, "exec") == 0) {
    by_handle();
    fflush(stdout);
    execl(argv[0], argv[0], "handle", NULL);
    return 1;
  } else {
    fprintf(stderr, "lookup: no such way: %s\n", way);
    return 2;
  }
  return 0;
}
