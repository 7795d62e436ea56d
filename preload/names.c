#include "frontend.h"

static const char* const names[contextune_fn_count] = {
#define CONTEXTUNE_ENTRY(name, ...) [contextune_fn_##name] = #name,
#include "registry/cupti.def"
#include "registry/driver.def"
#undef CONTEXTUNE_ENTRY
};

const char* contextune_name(enum contextune_fn fn) {
  return (unsigned int)fn < contextune_fn_count ? names[fn] : "?";
}

/* Open addressing; 0 is empty, others are fn + 1. Built on first use: every thread that gets here
 * early computes the same bytes, so nobody has to wait for another. */
enum { num_slots = 1024 };
_Static_assert(contextune_fn_count < num_slots / 2, "the table of names is too full");
static uint16_t slots[num_slots];
static bool slots_ready;

static uint32_t hash_of(const char* name) {
  uint32_t hash = 2166136261U;
  for (; *name != '\0'; ++name) {
    hash = (hash ^ (unsigned char)*name) * 16777619U;
  }
  return hash;
}

static void build_slots(void) {
  uint16_t built[num_slots] = {0};
  for (unsigned int fn = 0; fn < contextune_fn_count; ++fn) {
    uint32_t slot = hash_of(names[fn]) % num_slots;
    while (built[slot] != 0) {
      slot = (slot + 1) % num_slots;
    }
    built[slot] = (uint16_t)(fn + 1);
  }
  for (size_t i = 0; i < num_slots; ++i) {
    __atomic_store_n(&slots[i], built[i], __ATOMIC_RELAXED);
  }
  __atomic_store_n(&slots_ready, true, __ATOMIC_RELEASE);
}

enum contextune_fn contextune_find_name(const char* name) {
  if (!contextune_is_drivers_name(name) && (name == NULL || !contextune_begins(name, "cupti"))) {
    return contextune_fn_count;
  }
  if (!__atomic_load_n(&slots_ready, __ATOMIC_ACQUIRE)) {
    build_slots();
  }
  for (uint32_t slot = hash_of(name) % num_slots;; slot = (slot + 1) % num_slots) {
    const uint16_t entry = __atomic_load_n(&slots[slot], __ATOMIC_RELAXED);
    if (entry == 0) {
      return contextune_fn_count;
    }
    if (contextune_is_same(names[entry - 1], name)) {
      return (enum contextune_fn)(entry - 1);
    }
  }
}
