/* A program that brings a core of its own, which holds launches back. Calls every function of the
 * driver by a direct reference, through dlsym and through cuGetProcAddress, with different
 * arguments in every place, and prints how often the core handed over, what the driver got, and
 * what errno was then. `held [many]`: asks for more functions than there are guards, on several
 * threads. */
#define __CUDA_API_VERSION_INTERNAL
#include "fake_driver.h"
#include "fake_others.h"
#include "idle_core.h"
#include "registered.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { of_program = 5, of_core = 99 };

static int num_handed_over;

extern int call_missing(void);

/* By name only: cuda.h declares them otherwise, and not all of them. The driver lacks one. */
#define CONTEXTUNE_GUARDED(name) \
  extern int by_name_##name(void) __asm__(#name) __attribute__((weak));
#define CONTEXTUNE_FREE(name) CONTEXTUNE_GUARDED(name)
#include "preload/registry/free.def"
#include "preload/registry/guarded.def"
#undef CONTEXTUNE_GUARDED
#undef CONTEXTUNE_FREE

/* Uses all registers that carry arguments. Calls the driver as a program would: what the core does
 * hands nothing over. */
static void on_hand_over(enum contextune_fn fn) {
  char text[256];
  num_handed_over += (*frontend->depth() == 1 ? 1 : 1000) * (fn == contextune_fn_question ? 10 : 1);
  snprintf(text, sizeof text, "%d %d %d %g %g %g %g %g %g %g %g", 1, 2, 3, .1, .2, .3, .4, .5, .6,
           .7, .8);
  cuStreamQuery(NULL);
  by_name_cuFuncLoad();
  errno = of_core;
}

__attribute__((visibility("default"))) const struct contextune_core* contextune_core_v1(
    const struct contextune_frontend* given) {
  frontend = given;
  core.hand_over = on_hand_over;
  return &core;
}

static const struct {
  const char* name;
  const char* kind;
  void* reference;
} others[] = {
#define CONTEXTUNE_GUARDED(name) {#name, "guarded", (void*)&by_name_##name},
#define CONTEXTUNE_FREE(name) {#name, "free", (void*)&by_name_##name},
#include "preload/registry/free.def"
#include "preload/registry/guarded.def"
    {"cuNewerThing", "newer", NULL},
};

static const char* kind_of(size_t other) {
  static const char* const questions[] = {
#define CONTEXTUNE_QUESTION(name) #name,
#include "preload/registry/questions.def"
  };
  for (size_t i = 0; i < sizeof questions / sizeof questions[0]; ++i) {
    if (strcmp(questions[i], others[other].name) == 0) {
      return "question";
    }
  }
  return others[other].kind;
}

static uint64_t call_other(void* entry) {
  const int result = ((fake_other_fn)entry)(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                                            0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5);
  return result == 17 ? fake_other_digest() : 0;
}

static void report(const char* name, const char* kind, const char* way, uint64_t (*call_it)(void*),
                   void* entry, uint64_t expected) {
  printf("%s %s %s:", kind, name, way);
  for (uint32_t held = 0; held < 2; ++held) {
    const int before = num_handed_over;
    __atomic_store_n(frontend->held, held, __ATOMIC_RELEASE);
    errno = of_program;
    const uint64_t digest = call_it(entry);
    const int error = errno;
    printf(" %s %d %s errno %d", held != 0 ? "held" : "free", num_handed_over - before,
           digest == expected && digest != 0 ? "same" : "DIFFERENT", error);
    __atomic_store_n(frontend->held, 0, __ATOMIC_RELEASE);
  }
  printf("\n");
}

static PFN_cuGetProcAddress_v12000 resolve;

/* The fake driver takes a name as it is where the version is older than all. */
static void* resolved(const char* name) {
  void* pointer = NULL;
  resolve(name, &pointer, 0, 0, NULL);
  return pointer;
}

static void call_registered(void* library) {
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    const char* name = entries[i].name;
    if (strcmp(entries[i].kind, "resolve") == 0) {
      continue; /* looks into its arguments: see resolve.c */
    }
    fake_fail(name, 17); /* so that results are seen to pass */
    const uint64_t expected = call(fake_entry(name));
    report(name, entries[i].kind, "direct", call, entries[i].reference, expected);
    report(name, entries[i].kind, "dlsym", call, dlsym(library, name), expected);
  }
}

static void call_others(void* library) {
  for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i) {
    const char* name = others[i].name;
    void* real = fake_other(name);
    if (real == NULL) {
      continue; /* of this driver's own making, or missing: see below */
    }
    const uint64_t expected = call_other(real);
    void* looked_up = dlsym(library, name);
    void* pointer = resolved(name);
    report(name, kind_of(i), "dlsym", call_other, looked_up, expected);
    report(name, kind_of(i), "resolved", call_other, pointer, expected);
    if (others[i].reference != NULL) {
      report(name, kind_of(i), "direct", call_other, others[i].reference, expected);
    }
    printf("%s %s address: %s\n", kind_of(i), name,
           looked_up != pointer || looked_up != dlsym(library, name) ||
                   (others[i].reference != NULL && others[i].reference != pointer)
               ? "several"
           : pointer == real ? "the driver's"
                             : "ours");
  }
  printf("missing cuTexRefGetFlags direct: %d, dlsym %s, resolved %s\n", call_missing(),
         dlsym(library, "cuTexRefGetFlags") != NULL ? "found" : "null",
         resolved("cuTexRefGetFlags") != NULL ? "found" : "null");
}

static void* ask_for_many(void* out) {
  void** pointers = out;
  for (int i = 0; i < FAKE_MANY; ++i) {
    char name[32];
    snprintf(name, sizeof name, "cuNumbered%d", i);
    pointers[i] = resolved(name);
  }
  return NULL;
}

static uint32_t unguarded(void) {
  return __atomic_load_n(frontend->unguarded, __ATOMIC_ACQUIRE);
}

static void many(void) {
  enum { num_threads = 4 };
  static void* pointers[num_threads][FAKE_MANY];
  pthread_t threads[num_threads];
  const uint32_t before = unguarded();
  for (int i = 0; i < num_threads; ++i) {
    pthread_create(&threads[i], NULL, ask_for_many, pointers[i]);
  }
  int same = 1;
  for (int i = 0; i < num_threads; ++i) {
    pthread_join(threads[i], NULL);
  }
  int guarded = 0;
  for (int i = 0; i < FAKE_MANY; ++i) {
    char name[32];
    snprintf(name, sizeof name, "cuNumbered%d", i);
    guarded += pointers[0][i] != fake_other(name);
  }
  for (int i = 1; i < num_threads; ++i) {
    /* Which of them get the last guards is chance; nobody gets two. */
    for (int j = 0; j < FAKE_MANY; ++j) {
      same = same && pointers[i][j] == pointers[0][j];
    }
  }
  printf("guarded %d, same %d, unguarded %u, then %u\n", guarded, same, before, unguarded());
}

int main(int argc, char** argv) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  resolve = (PFN_cuGetProcAddress_v12000)dlsym(library, "cuGetProcAddress_v2");
  cuInit(0);
  if (frontend == NULL) {
    return 1;
  }
  if (argc > 1 && strcmp(argv[1], "many") == 0) {
    many();
    return 0;
  }
  call_registered(library);
  call_others(library);
  return 0;
}
