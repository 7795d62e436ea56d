/* Functions of the driver that the registry does not list. Their callers get a guard (guards.S),
 * which lets the core hand over what it holds back before the function begins. */
#include "frontend.h"

const char* const contextune_others[contextune_num_others] = {
#define CONTEXTUNE_GUARDED(name) #name,
#include "registry/guarded.def"
#undef CONTEXTUNE_GUARDED
/* and then: */
#define CONTEXTUNE_FREE(name) #name,
#include "registry/free.def"
#undef CONTEXTUNE_FREE
};

enum {
#define CONTEXTUNE_GUARDED(name) guarded_##name,
#include "registry/guarded.def"
#undef CONTEXTUNE_GUARDED
};
static const bool is_question[contextune_num_guarded] = {
#define CONTEXTUNE_QUESTION(name) [guarded_##name] = true,
#include "registry/questions.def"
#undef CONTEXTUNE_QUESTION
};

/* Where each guard goes on to: first those with names, then spare ones, which are a hash table of
 * the addresses that they stand for. A target never changes, so an address has one guard. */
enum { num_guards = contextune_num_guarded + CONTEXTUNE_SPARE_GUARDS };
void* contextune_guard_targets[num_guards];
extern char contextune_guards[num_guards][CONTEXTUNE_GUARD_BYTES];
_Static_assert(offsetof(struct contextune_hot, held) == CONTEXTUNE_HELD_OFFSET, "as guards.S says");

uint32_t contextune_unguarded;

/* Without us a program ends at its call of a function that the driver lacks, unless its reference
 * is weak, and it looks first. Our export makes it see a function then, so the call must come back:
 * it returns an error, as for what the registry lists. */
static void* bind(unsigned int guarded) {
  void* target = __atomic_load_n(&contextune_guard_targets[guarded], __ATOMIC_RELAXED);
  if (target != NULL) {
    return target;
  }
  const int error = errno;
  const char* name = contextune_others[guarded];
  const bool has_driver = contextune_find_driver();
  target = contextune_next_by_name(
      name, has_driver ? contextune_real_dlsym(contextune_libcuda, name) : NULL);
  if (has_driver) {
    __atomic_store_n(&contextune_guard_targets[guarded], target, __ATOMIC_RELAXED);
    /* A name that is missing has left an error behind, which the program would find. */
    contextune_real_dlsym(contextune_libcuda, "cuInit");
  }
  errno = error;
  return target;
}

/* Called by guards.S. Returns the function to go on to. */
void* contextune_pass_guard(void** target);
void* contextune_pass_guard(void** target) {
  const size_t guard = (size_t)(target - contextune_guard_targets);
  const struct contextune_call call = contextune_begin_call();
  contextune_hand_over_held(guard < contextune_num_guarded && is_question[guard]
                                ? contextune_fn_question
                                : contextune_fn_count);
  contextune_end_call(call);
  return guard < contextune_num_guarded ? bind((unsigned int)guard) : *target;
}

static void* spare_guard(void* address) {
  const size_t first = (size_t)(((uintptr_t)address >> 4) * 0x9E3779B97F4A7C15U >> 32);
  for (size_t i = 0; i < CONTEXTUNE_SPARE_GUARDS; ++i) {
    const size_t guard = contextune_num_guarded + (first + i) % CONTEXTUNE_SPARE_GUARDS;
    void* seen = NULL;
    if (__atomic_compare_exchange_n(&contextune_guard_targets[guard], &seen, address, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
        seen == address) {
      return contextune_guards[guard];
    }
  }
  return NULL;
}

void* contextune_guard(void* address, unsigned int other) {
  if (other >= contextune_num_guarded && other != contextune_num_others) {
    return address;
  }
  /* As a rule the exported one, so that a function has one address however it was obtained. */
  if (other < contextune_num_guarded && bind(other) == address) {
    return contextune_guards[other];
  }
  void* guard = contextune_is_code_beside(address, contextune_hot.real[contextune_fn_cuInit])
                    ? spare_guard(address)
                    : NULL;
  if (guard == NULL) {
    __atomic_store_n(&contextune_unguarded, 1, __ATOMIC_RELEASE);
    return address;
  }
  return guard;
}
