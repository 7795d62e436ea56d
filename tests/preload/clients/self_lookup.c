/* What LLVM's OpenMP does: a function that asks for the next function of its own name. When the
 * lookup mistakes its caller, it finds itself, and never ends. */
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("default"))) int plugin_run(void);
int plugin_run(void) {
  int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "plugin_run");
  return next == plugin_run ? -1 : next != NULL ? next() : 11;
}
