/* The end of every program in the process: exit, and the return of main, which libc follows up by
 * an exit of its own. CUPTI registers handlers while it starts, which run before all that were
 * registered earlier, and crashes where it goes on after them: so the core is asked to come to an
 * end before any handler runs. */
#include "frontend.h"

#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

static void tell_core(void) {
  const struct contextune_core* core = contextune_load_core();
  if (core != NULL && core != &contextune_core_undecided) {
    const int error = errno; /* handlers of the program may look at it */
    core->exiting();
    errno = error;
  }
}

/* With libc's versions, hidden: references bind to us, and lookups find libc's. */
#define EXPORT(function, symbol, version)                           \
  __asm__(".symver " #function ", " symbol "@" version ", remove"); \
  __attribute__((visibility("default")))

EXPORT(contextune_exit, "exit", CONTEXTUNE_OLDEST_LIBC) _Noreturn void contextune_exit(int status) {
  tell_core();
  contextune_find_dlsym();
  /* The real dlsym looks from our library on. */
  void (*next)(int) = (void (*)(int))contextune_real_dlsym(RTLD_NEXT, "exit");
  if (next != NULL) {
    next(status);
  }
  _exit(status);
}

typedef int (*main_fn)(int argc, char** argv, char** variables);
typedef int (*start_fn)(main_fn program, int argc, char** argv, void (*init)(void),
                        void (*fini)(void), void (*end_linker)(void), void* end_of_stack);

static main_fn main_of_program;

static int run_main(int argc, char** argv, char** variables) {
  const int status = main_of_program(argc, argv, variables);
  tell_core();
  return status;
}

/* By the version that was asked for: what comes next has it, be it libc or another interposer. */
#define EXPORT_START(function, version)                                                        \
  EXPORT(function, "__libc_start_main", version)                                               \
  int function(main_fn program, int argc, char** argv, void (*init)(void), void (*fini)(void), \
               void (*end_linker)(void), void* end_of_stack) {                                 \
    const start_fn next = (start_fn)dlvsym(RTLD_NEXT, "__libc_start_main", version);           \
    if (next == NULL) {                                                                        \
      __builtin_trap(); /* whoever bound to us would have bound to it */                       \
    }                                                                                          \
    main_of_program = program;                                                                 \
    return next(run_main, argc, argv, init, fini, end_linker, end_of_stack);                   \
  }

EXPORT_START(contextune_start_oldest, CONTEXTUNE_OLDEST_LIBC)
EXPORT_START(contextune_start_newest, "GLIBC_2.34")
