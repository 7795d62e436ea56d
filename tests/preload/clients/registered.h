/* The entries of the registry, and a call of any of them. The includer defines
 * __CUDA_API_VERSION_INTERNAL, so that no macro of cuda.h turns one entry into another. */
#pragma once

#include "fake_driver.h"
#include "preload/contextune_abi.h"
#include "preload/registry/newer_types.h"

/* Some are not in the headers of older toolkits. */
#define CONTEXTUNE_ENTRY(name, pointer_type, kind, params, args) extern CUresult name params;
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY

static const struct {
  const char* name;
  const char* kind;
  void* reference;
} entries[] = {
#define CONTEXTUNE_ENTRY(name, pointer_type, kind, params, args) {#name, #kind, (void*)&name},
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};

/* Integers and pointers travel in the same registers and stack slots, whatever their types; a
 * structure of 64 bytes, which is the largest, fills the stack slots from the first. */
typedef CUresult (*any_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                           uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                           uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static char memory[16 * 256]; /* every argument points into it, as some are looked into */

static uint64_t call(void* entry) {
  uintptr_t a[16];
  for (size_t i = 0; i < 16; ++i) {
    a[i] = (uintptr_t)&memory[i * 256];
  }
  const CUresult result = ((any_fn)entry)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8],
                                          a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
  return result == 17 ? fake_digest() : 0;
}
