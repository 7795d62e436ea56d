/* The program's own use of CUPTI, which has one user at a time: the core lets go of it first.
 *
 * Several copies of CUPTI may be loaded (the toolkit's, a framework's own), so there is no one real
 * function: a direct call goes on to what its caller would have bound to without us, by the version
 * that its reference names; a pointer from dlsym goes on to what that lookup found. */
#include "frontend.h"

#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_sass_metrics.h>
#include <dlfcn.h>

enum { num_entries = contextune_fn_count - contextune_fn_cuptiSubscribe };

static const char* const versions[CONTEXTUNE_CUPTI_VERSIONS] = {NULL, "libcupti.so.12",
                                                                "libcupti.so.13"};

static void* bound[CONTEXTUNE_CUPTI_VERSIONS][num_entries];
static void* looked_up[num_entries];
static bool used;
static uint32_t remembered; /* fn + 1 */

void contextune_cupti_remember(enum contextune_fn fn) {
  __atomic_store_n(&remembered, (uint32_t)fn + 1, __ATOMIC_SEQ_CST);
  /* The core may have been attached since this call set out. */
  const struct contextune_core* core = contextune_load_core();
  if (core != NULL && core != &contextune_core_undecided) {
    contextune_cupti_hand_over(core);
  }
}

void contextune_cupti_hand_over(const struct contextune_core* core) {
  const uint32_t fn = __atomic_exchange_n(&remembered, 0, __ATOMIC_SEQ_CST);
  if (fn != 0) {
    core->program_uses_cupti((enum contextune_fn)(fn - 1));
  }
}

void contextune_cupti_use(enum contextune_fn fn, const void* caller) {
  const struct contextune_core* core = contextune_load_core();
  if (core == NULL || contextune_thread.depth != 0 || __atomic_load_n(&used, __ATOMIC_ACQUIRE) ||
      contextune_is_tool(caller)) {
    return;
  }
  const int error = contextune_enter(core);
  core->program_uses_cupti(fn);
  contextune_leave(error);
  /* Only now: another thread must not go on before the core has let go. */
  __atomic_store_n(&used, true, __ATOMIC_RELEASE);
}

static void* find_versioned(void* scope, enum contextune_fn fn, const char* version) {
  return version != NULL ? dlvsym(scope, contextune_name(fn), version)
                         : contextune_real_dlsym(scope, contextune_name(fn));
}

static void* find_bound(enum contextune_fn fn, unsigned int version, const void* caller) {
  void** cached = &bound[version][fn - contextune_fn_cuptiSubscribe];
  void* real = __atomic_load_n(cached, __ATOMIC_ACQUIRE);
  if (real != NULL) {
    return real;
  }
  const int error = errno;
  contextune_find_dlsym();
  real = find_versioned(RTLD_NEXT, fn, versions[version]);
  if (real != NULL) {
    __atomic_store_n(cached, real, __ATOMIC_RELEASE);
    errno = error;
    return real;
  }
  /* Not in the global scope: the caller was loaded with a copy of its own. Another caller may have
   * another one, so this answer is not kept. */
  void* object = contextune_open_object_of(caller);
  if (object != NULL) {
    real = find_versioned(object, fn, versions[version]);
    dlclose(object);
  }
  static const char* const libraries[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  for (size_t i = 0; real == NULL && i < sizeof libraries / sizeof libraries[0]; ++i) {
    void* library = dlopen(libraries[i], RTLD_NOLOAD | RTLD_LAZY);
    if (library != NULL) {
      real = find_versioned(library, fn, versions[version]);
      dlclose(library);
    }
  }
  errno = error;
  return real;
}

#define BOUND(name, params, args, index)                                                \
  CUptiResult contextune_bound##index##_##name params;                                  \
  CUptiResult contextune_bound##index##_##name params {                                 \
    const void* caller_ = __builtin_return_address(0);                                  \
    contextune_cupti_use(contextune_fn_##name, caller_);                                \
    CUptiResult(*real_) params =                                                        \
        (CUptiResult(*) params)find_bound(contextune_fn_##name, index, caller_);        \
    return real_ != NULL ? real_ args : CUPTI_ERROR_NOT_INITIALIZED;                    \
  }                                                                                     \
  extern __typeof__(contextune_bound##index##_##name) contextune_export##index##_##name \
      __attribute__((alias("contextune_bound" #index "_" #name), visibility("default")));

#define CHECK_newer(name)
#define CHECK_declared(name)                                                                \
  _Static_assert(                                                                           \
      __builtin_types_compatible_p(__typeof__(contextune_bound0_##name), __typeof__(name)), \
      #name " is not declared as in cupti.h");

#define CONTEXTUNE_ENTRY(name, check, kind, params, args)                                          \
  BOUND(name, params, args, 0)                                                                     \
  BOUND(name, params, args, 1)                                                                     \
  BOUND(name, params, args, 2)                                                                     \
  CHECK_##check(name) __asm__(".symver contextune_export0_" #name ", " #name                       \
                              "@CONTEXTUNE_1, remove");                                            \
  __asm__(".symver contextune_export1_" #name ", " #name "@libcupti.so.12, remove");               \
  __asm__(".symver contextune_export2_" #name ", " #name "@libcupti.so.13, remove");               \
  static CUptiResult looked_up_##name params {                                                     \
    contextune_cupti_use(contextune_fn_##name, __builtin_return_address(0));                       \
    void* real_ = __atomic_load_n(&looked_up[contextune_fn_##name - contextune_fn_cuptiSubscribe], \
                                  __ATOMIC_ACQUIRE);                                               \
    return ((CUptiResult(*) params)real_)args;                                                     \
  }
#include "registry/cupti.def"
#undef CONTEXTUNE_ENTRY

static void* const lookup_wrappers[num_entries] = {
#define CONTEXTUNE_ENTRY(name, ...) (void*)&looked_up_##name,
#include "registry/cupti.def"
#undef CONTEXTUNE_ENTRY
};

void* contextune_cupti_wrapper(enum contextune_fn fn, void* real) {
  const unsigned int entry = fn - contextune_fn_cuptiSubscribe;
  void* expected = NULL;
  if (!__atomic_compare_exchange_n(&looked_up[entry], &expected, real, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE) &&
      expected != real) {
    return NULL;
  }
  return lookup_wrappers[entry];
}
