/* exit, for every program in the process. CUPTI registers handlers while it starts, which run
 * before all that were registered earlier, and crashes where it goes on after them: so the core is
 * asked to come to an end before any handler runs. A return from main does not come by here; there
 * the handlers of the core have to do. */
#include "frontend.h"

#include <dlfcn.h>
#include <unistd.h>

/* With libc's version, hidden: references bind to us, and lookups find libc's. */
__asm__(".symver contextune_exit, exit@" CONTEXTUNE_OLDEST_LIBC ", remove");

__attribute__((visibility("default"), noreturn)) void contextune_exit(int status);
void contextune_exit(int status) {
  const struct contextune_core* core = contextune_load_core();
  if (core != NULL && core != &contextune_core_undecided) {
    core->exiting();
  }
  contextune_find_dlsym();
  /* The real dlsym looks from our library on. */
  void (*next)(int) = (void (*)(int))contextune_real_dlsym(RTLD_NEXT, "exit");
  if (next != NULL) {
    next(status);
  }
  _exit(status);
}
