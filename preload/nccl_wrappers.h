/* What the files about NCCL share. Threads: as in frontend.h. */
#pragma once

#include "frontend.h"
#include "registry/nccl_types.h"

/* ---- which NCCL (nccl_objects.c) ---- */

/* Where a call goes on to. */
struct contextune_nccl_target {
  void* real;    /* NULL: there is no NCCL for this caller */
  void* library; /* a handle of its object */
};

/* Lookups that are not answered by what direct calls of the program reach get wrappers of their
 * own, for so many copies of NCCL in the process; further ones are left alone. */
#define CONTEXTUNE_NCCL_COPIES 4

/* Of direct calls of the global scope, once they are known. */
extern struct contextune_nccl_target contextune_nccl_global[contextune_nccl_count];
/* For a direct call from `caller`: the function that its reference would be bound to without us. */
struct contextune_nccl_target contextune_nccl_bind(enum contextune_nccl_fn fn, const void* caller);
static inline struct contextune_nccl_target contextune_nccl_of_caller(enum contextune_nccl_fn fn,
                                                                      const void* caller) {
  struct contextune_nccl_target target = {
      .real = __atomic_load_n(&contextune_nccl_global[fn].real, __ATOMIC_ACQUIRE),
  };
  if (CONTEXTUNE_UNLIKELY(target.real == NULL)) {
    return contextune_nccl_bind(fn, caller);
  }
  target.library = __atomic_load_n(&contextune_nccl_global[fn].library, __ATOMIC_RELAXED);
  return target;
}
/* For a wrapper that was handed out for the copy with this number. */
struct contextune_nccl_target contextune_nccl_of_copy(unsigned int copy,
                                                      enum contextune_nccl_fn fn);
/* The number of the copy whose entry point `real` is; CONTEXTUNE_NCCL_COPIES: it is none of NCCL's,
 * or there is no number left. */
unsigned int contextune_nccl_copy_of(void* real, enum contextune_nccl_fn fn);
/* NCCL_VERSION_CODE of the NCCL with this handle; 0: it does not say. */
int contextune_nccl_version(void* library);
/* True when RTLD_NEXT finds this copy too. */
bool contextune_nccl_is_global(unsigned int copy);

/* ---- wrappers (nccl.c) ---- */

extern uint32_t contextune_messages; /* as contextune_frontend says */

/* The wrapper to hand out for `real` as a lookup found it in the copy. */
void* contextune_nccl_wrapper(enum contextune_nccl_fn fn, unsigned int copy, void* real);
/* FNV-1a; 0 for no id at all. */
uint64_t contextune_nccl_hash(const ncclUniqueId* ids, int num_ids);

/* ---- what the user set (nccl_settings.c) ---- */

/* False: it is not set. What is longer than `bytes` is cut off. Reads files. */
bool contextune_nccl_setting(enum contextune_variable which, char* value, size_t bytes);
/* Whether the program's ncclConfig_t asks for what NCCL does without a tuner plugin only. */
bool contextune_nccl_excludes_tuner(const void* config);

/* ---- our tuner plugin's way into NCCL (tuner_variable.c) ---- */

/* Around a call that makes communicators, so that NCCL finds our plugin: not an NCCL that is too
 * old for it, which would lose the user's own. */
void contextune_tuner_offer(const struct contextune_nccl_call* call);
void contextune_tuner_offer_ends(void);
/* NCCL has found it. */
void contextune_tuner_taken(void);
/* Nothing more is being made: what has been set is taken back. */
void contextune_tuner_withdraw(void);
enum contextune_tuner_state contextune_tuner_state(void);
/* NCCL_TUNER_PLUGIN as the user set it; NULL: not at all. */
const char* contextune_tuner_users_name(void);
