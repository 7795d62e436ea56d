/* The wrappers, generated from the registry. Each entry has two: the exported one, which direct
 * references of the program bind to, and the inner one, which observes. They are two so that a
 * library of the program that stands before the driver under the same name keeps its place. */
#define __CUDA_API_VERSION_INTERNAL /* no macro of cuda.h turns one entry into another */
#include "frontend.h"

#define ADDRESS_0()
#define ADDRESS_1(a) (void*)&a,
#define ADDRESS_2(a, ...) ADDRESS_1(a) ADDRESS_1(__VA_ARGS__)
#define ADDRESS_3(a, ...) ADDRESS_1(a) ADDRESS_2(__VA_ARGS__)
#define ADDRESS_4(a, ...) ADDRESS_1(a) ADDRESS_3(__VA_ARGS__)
#define ADDRESS_5(a, ...) ADDRESS_1(a) ADDRESS_4(__VA_ARGS__)
#define ADDRESS_6(a, ...) ADDRESS_1(a) ADDRESS_5(__VA_ARGS__)
#define ADDRESS_7(a, ...) ADDRESS_1(a) ADDRESS_6(__VA_ARGS__)
#define ADDRESS_8(a, ...) ADDRESS_1(a) ADDRESS_7(__VA_ARGS__)
#define ADDRESS_9(a, ...) ADDRESS_1(a) ADDRESS_8(__VA_ARGS__)
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, picked, ...) picked
#define ADDRESSES(...)                                                                           \
  __VA_OPT__(PICK(__VA_ARGS__, ADDRESS_9, ADDRESS_8, ADDRESS_7, ADDRESS_6, ADDRESS_5, ADDRESS_4, \
                  ADDRESS_3, ADDRESS_2, ADDRESS_1, )(__VA_ARGS__))

/* ---- inner wrappers; those of `launch` and `resolve` are in launch.c and resolve.c ---- */

static inline bool is_not_recording(void) {
  return CONTEXTUNE_LIKELY(__atomic_load_n(&contextune_hot.recording, __ATOMIC_RELAXED) == 0);
}

static inline bool shows_no_transfer(void) {
  return is_not_recording() &&
         CONTEXTUNE_LIKELY(__atomic_load_n(&contextune_hot.transfers, __ATOMIC_RELAXED) == 0);
}

/* Names end in _ here: the registry names its parameters as it likes. */
#define OBSERVE(name, pointer_type, params, args, passes, counts, tells_before, core_makes, \
                tells_after)                                                                \
  CUresult contextune_inner_##name params;                                                  \
  CUresult contextune_inner_##name params {                                                 \
    const pointer_type real_ = (pointer_type)contextune_hot.real[contextune_fn_##name];     \
    const struct contextune_call call_ = contextune_begin_call();                           \
    const struct contextune_core* core_ = contextune_load_core();                           \
    contextune_hand_over_held(contextune_fn_##name);                                        \
    if (counts) {                                                                           \
      contextune_count_launch();                                                            \
    }                                                                                       \
    if ((passes) || core_ == NULL || contextune_thread.depth != 0) {                        \
      const CUresult passed_ = real_ args;                                                  \
      contextune_end_call(call_);                                                           \
      return passed_;                                                                       \
    }                                                                                       \
    void* const addresses[] = {ADDRESSES args NULL};                                        \
    int error_ = contextune_enter(core_);                                                   \
    if (tells_before) {                                                                     \
      core_->before(contextune_fn_##name, addresses);                                       \
    }                                                                                       \
    CUresult result_;                                                                       \
    if ((core_makes) && core_ != &contextune_core_undecided) {                              \
      result_ = core_->load(contextune_fn_##name, addresses);                               \
    } else {                                                                                \
      errno = error_;                                                                       \
      result_ = real_ args;                                                                 \
      error_ = errno;                                                                       \
    }                                                                                       \
    if (tells_after) {                                                                      \
      core_->after(contextune_fn_##name, addresses, result_);                               \
    }                                                                                       \
    contextune_leave(error_);                                                               \
    contextune_end_call(call_);                                                             \
    return result_;                                                                         \
  }

/* A graph launch costs microseconds and comes seldom, so an attached core makes all of them. */
#define INNER_graph(name, pointer_type, params, args)                          \
  CUresult contextune_inner_##name params;                                     \
  CUresult contextune_inner_##name params {                                    \
    const struct contextune_call call_ = contextune_begin_call();              \
    const struct contextune_core* core_ = contextune_load_core();              \
    CUresult result_;                                                          \
    contextune_hand_over_held(contextune_fn_##name);                           \
    if (core_ == NULL || contextune_thread.depth != 0) {                       \
      result_ = ((pointer_type)contextune_hot.real[contextune_fn_##name])args; \
    } else {                                                                   \
      const int error_ = contextune_enter(core_);                              \
      result_ = core_->graph_launch(contextune_fn_##name, exec, stream);       \
      contextune_leave(error_);                                                \
    }                                                                          \
    contextune_end_call(call_);                                                \
    return result_;                                                            \
  }

#define INNER_launch(name, pointer_type, params, args) CUresult contextune_inner_##name params;
#define INNER_resolve(name, pointer_type, params, args) CUresult contextune_inner_##name params;
#define INNER_before(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, false, false, true, false, false)
#define INNER_after(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, false, false, false, false, true)
#define INNER_both(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, false, false, true, false, true)
#define INNER_recorded(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, is_not_recording(), false, true, false, true)
#define INNER_transfer(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, shows_no_transfer(), false, true, false, true)
#define INNER_load(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, false, false, false, true, true)
#define INNER_init(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, false, false, false, false, true)
#define INNER_count(name, pointer_type, params, args) \
  OBSERVE(name, pointer_type, params, args, false, true, false, false, true)

#define CONTEXTUNE_ENTRY(name, pointer_type, kind, params, args)                        \
  INNER_##kind(name, pointer_type, params, args) _Static_assert(                        \
      __builtin_types_compatible_p(__typeof__(&contextune_inner_##name), pointer_type), \
      #name " is not declared as in cudaTypedefs.h");
#include "registry/driver.def"
#undef CONTEXTUNE_ENTRY

/* ---- exported wrappers ---- */

/* The alias is what leaves the library, under the entry's name and our hidden version; the hidden
 * function is what our own tables refer to, without the dynamic linker's help. */
#define CONTEXTUNE_ENTRY(name, pointer_type, kind, params, args)                              \
  CUresult contextune_bound_##name params;                                                    \
  CUresult contextune_bound_##name params {                                                   \
    void* next_ = __atomic_load_n(&contextune_bound[contextune_fn_##name], __ATOMIC_RELAXED); \
    if (CONTEXTUNE_UNLIKELY(next_ == NULL)) {                                                 \
      next_ = contextune_bind(contextune_fn_##name);                                          \
    }                                                                                         \
    return ((pointer_type)next_)args;                                                         \
  }                                                                                           \
  extern __typeof__(contextune_bound_##name) contextune_export_##name                         \
      __attribute__((alias("contextune_bound_" #name), visibility("default")));               \
  __asm__(".symver contextune_export_" #name ", " #name "@CONTEXTUNE_1, remove");
#include "registry/driver.def"
#undef CONTEXTUNE_ENTRY

/* ---- tables ---- */

void* const contextune_inner[contextune_fn_count] = {
#define CONTEXTUNE_ENTRY(name, ...) [contextune_fn_##name] = (void*)&contextune_inner_##name,
#include "registry/driver.def"
#undef CONTEXTUNE_ENTRY
};

void* const contextune_exported[contextune_fn_count] = {
#define CONTEXTUNE_ENTRY(name, ...) [contextune_fn_##name] = (void*)&contextune_bound_##name,
#include "registry/driver.def"
#undef CONTEXTUNE_ENTRY
};
