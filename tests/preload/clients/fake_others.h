/* Functions of the fake driver that the registry does not list; see fake_others.c. */
#pragma once

#include <stdint.h>

#define FAKE_INTEGERS(use)                                                              \
  use(uintptr_t, a0), use(uintptr_t, a1), use(uintptr_t, a2), use(uintptr_t, a3),       \
      use(uintptr_t, a4), use(uintptr_t, a5), use(uintptr_t, a6), use(uintptr_t, a7),   \
      use(uintptr_t, a8), use(uintptr_t, a9), use(uintptr_t, a10), use(uintptr_t, a11), \
      use(uintptr_t, a12), use(uintptr_t, a13), use(uintptr_t, a14), use(uintptr_t, a15)
#define FAKE_NUMBERS(use)                                                              \
  use(double, d0), use(double, d1), use(double, d2), use(double, d3), use(double, d4), \
      use(double, d5), use(double, d6), use(double, d7)
#define FAKE_PARAMETER(type, name) type name
#define FAKE_ARGUMENT(type, name) name

#define FAKE_MANY 1100 /* functions with the names cuNumbered0 and so on, for cuGetProcAddress */

typedef int (*fake_other_fn)(FAKE_INTEGERS(FAKE_PARAMETER), FAKE_NUMBERS(FAKE_PARAMETER));

uint64_t fake_other_digest(void);   /* of the arguments of this thread's last call */
void* fake_other(const char* name); /* the function's own address; NULL: there is none */
