/* Preloaded by walk.py into a program whose libcontextune.so was compiled with
 * -finstrument-functions: notes each function of that library which is entered from the first entry
 * of WALK_BEGIN on, until WALK_END is entered or, without one, WALK_BEGIN is left. Both are offsets
 * in the library. Writes the offsets of all that were entered to WALK_OUT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 1 << 16 };
static _Atomic uintptr_t entered[most];
static _Atomic uintptr_t base;
static atomic_int state; /* 0: not begun, 1: notes, 2: done */
static uintptr_t begin_at, end_at;
static _Thread_local int began_here;

__attribute__((constructor)) static void read_variables(void) {
  const char* begin = getenv("WALK_BEGIN");
  const char* end = getenv("WALK_END");
  begin_at = begin == NULL ? 0 : strtoull(begin, NULL, 0);
  end_at = end == NULL ? 0 : strtoull(end, NULL, 0);
}

static uintptr_t offset_of(const void* function) {
  if (base == 0) {
    Dl_info info;
    if (dladdr(function, &info) == 0 || strstr(info.dli_fname, "libcontextune.so") == NULL)
      return 0;
    base = (uintptr_t)info.dli_fbase;
  }
  return (uintptr_t)function - base;
}

static void finish(void) {
  state = 2;
  const char* path = getenv("WALK_OUT");
  FILE* out = path == NULL ? NULL : fopen(path, "w");
  if (out == NULL) return;
  for (int i = 0; i < most; ++i)
    if (entered[i] != 0) fprintf(out, "0x%lx\n", (unsigned long)entered[i]);
  fclose(out);
}

void __cyg_profile_func_enter(void* function, void* site);
void __cyg_profile_func_enter(void* function, void* site) {
  (void)site;
  if (begin_at == 0 || state == 2) return;
  const uintptr_t offset = offset_of(function);
  if (offset == 0) return;
  if (offset == begin_at && atomic_exchange(&state, state == 2 ? 2 : 1) == 0) began_here = 1;
  if (state != 1 || (end_at == 0 && !began_here)) return;
  if (offset == end_at) return finish();
  for (uintptr_t i = offset * 0x9e3779b97f4a7c15u >> 48;; i = (i + 1) % most) {
    uintptr_t free_place = 0;
    if (entered[i] == offset || atomic_compare_exchange_strong(&entered[i], &free_place, offset))
      return;
    if (free_place == offset) return;
  }
}

void __cyg_profile_func_exit(void* function, void* site);
void __cyg_profile_func_exit(void* function, void* site) {
  (void)site;
  if (end_at == 0 && state == 1 && began_here && offset_of(function) == begin_at) finish();
}
