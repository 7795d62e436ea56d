/* The fake driver's functions that the registry does not list: each returns 17 and keeps a digest
 * of the arguments that registers and stack brought, 16 integers and 8 floating-point numbers. */
#include "fake_others.h"

#include <stdio.h>
#include <string.h>

static __thread uint64_t digest;

uint64_t fake_other_digest(void) {
  return digest;
}

#define DEFINE(name)                                                       \
  int name(FAKE_INTEGERS(FAKE_PARAMETER), FAKE_NUMBERS(FAKE_PARAMETER));   \
  int name(FAKE_INTEGERS(FAKE_PARAMETER), FAKE_NUMBERS(FAKE_PARAMETER)) {  \
    const uintptr_t integers[] = {FAKE_INTEGERS(FAKE_ARGUMENT)};           \
    const double numbers[] = {FAKE_NUMBERS(FAKE_ARGUMENT)};                \
    digest = sizeof #name;                                                 \
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; ++i) {    \
      digest = digest * 0x9E3779B97F4A7C15u + integers[i];                 \
    }                                                                      \
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {      \
      digest = digest * 0x9E3779B97F4A7C15u + (uint64_t)(numbers[i] * 16); \
    }                                                                      \
    return 17;                                                             \
  }

/* This driver lacks one, has some of its own, and is newer than the list. */
#define cuTexRefGetFlags fake_has_not
#define cuDriverGetVersion fake_has_own_version
#define cuDeviceGetCount fake_has_own_count
#define CONTEXTUNE_GUARDED(name) DEFINE(name)
#define CONTEXTUNE_FREE(name) DEFINE(name)
#include "preload/registry/free.def"
#include "preload/registry/guarded.def"
DEFINE(cuNewerThing)
#undef CONTEXTUNE_GUARDED
#undef CONTEXTUNE_FREE

/* More functions than there are guards. */
extern char many[FAKE_MANY][16] __asm__("fake_many");
#if defined(__x86_64__)
#define JUMP "jmp fake_has_not\n"
#else
#define JUMP "b fake_has_not\n"
#endif
#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
__asm__(".text\n.p2align 4\nfake_many:\n.rept " TEXT(FAKE_MANY) "\n.p2align 4\n" JUMP ".endr\n");

void* fake_other(const char* name) {
  static const struct {
    const char* name;
    void* entry;
  } others[] = {
#define ROW(name) {#name, (void*)&name},
#define EXPANDED_ROW(name) ROW(name)
#define CONTEXTUNE_GUARDED(name) EXPANDED_ROW(name)
#define CONTEXTUNE_FREE(name) EXPANDED_ROW(name)
#include "preload/registry/free.def"
#include "preload/registry/guarded.def"
      ROW(cuNewerThing)};
  int number = 0;
  if (name != NULL && sscanf(name, "cuNumbered%d", &number) == 1 && number < FAKE_MANY) {
    return many[number];
  }
  for (size_t i = 0; name != NULL && i < sizeof others / sizeof others[0]; ++i) {
    if (strcmp(others[i].name, name) == 0) {
      return others[i].entry;
    }
  }
  return NULL;
}
