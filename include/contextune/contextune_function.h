/* Functions that are tuned where they are called, as C functions; a part of contextune.h, whose
 * words on threads, text and failures hold. Structs that have a `size` may grow at their end; give
 * sizeof(struct), and set what you do not use to 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <contextune/contextune.h> /* contextune_unseen, contextune_tunable */

#ifdef __cplusplus
extern "C" {
#endif

/* --- Functions ----------------------------------------------------------------------------------
 *
 *   uint32_t problem = contextune_function_problem(function, &key);  // worth keeping
 *   uint32_t config = contextune_function_settled(function, problem);
 *   if (config == CONTEXTUNE_UNSETTLED)
 *     status = contextune_function_call(function, problem, &call);
 *   else if ((status = run(config)) != 0)
 *     ...  // contextune_function_drop(), and the default; contextune_function_call() does both
 *
 * A whole function that has configs. The first call with a new key runs it with each config that is
 * kept, again and again, and at last with the winner, whose result is the call's. Later calls with
 * that key run the winner at once. In an open region it takes part in the passes of that region.
 * Where nothing is tuned, and in a capture, it runs once with its default: the first config that is
 * kept. The log has its problems as those of a tunable of its name. */
typedef struct contextune_function contextune_function;

typedef struct contextune_function_options {
  size_t size;
  const char* const* configs; /* as of tunables; NULL: the `space` of a call lists them */
  size_t num_configs;
  const char* version; /* of its code, as contextune_tunable_version; NULL: none */
  int n_warmup;        /* runs of each config that do not count */
  int n_repeat;        /* and that do; 0: 10, after 5 that do not */
  int repeatable;      /* 1: running it again leaves the same. Else, unless memory is put back, the
                          default runs twice first, and device memory is compared */
  const char* buckets; /* which sizes are one problem: "pow2", "exact" or upper edges, "4K,64K,1M";
                          NULL: pow2 */
  enum contextune_unseen unseen; /* what a size does in whose bucket nothing was measured */
  uint32_t nearest_within; /* how many times smaller or larger the nearest size may be; 0: 4 */
  const uint64_t* hints;   /* sizes that are measured before the first call that can be tuned */
  size_t num_hints;
  int allow_override; /* 1: calls may set parameters by hand */
} contextune_function_options;

/* NULL without a name, for options that cannot be read, and for configs that no tunable may have.
 */
CONTEXTUNE_EXPORT contextune_function* contextune_function_create(
    const char* name, const contextune_function_options* options);

/* Forgets its problems; winners stay with the tunable of its name. Nobody is in a call of it, and
 * nobody uses it any more. NULL: nothing. */
CONTEXTUNE_EXPORT void contextune_function_destroy(contextune_function* function);

/* What makes two calls the same problem. */
typedef struct contextune_function_key {
  size_t size;
  const char* key;    /* "n=4096 type=f32"; NULL: nothing but what follows */
  int has_size;       /* 1: `of_size` counts: sizes in one bucket are one problem */
  uint64_t of_size;   /* in what its author counts in */
  void* communicator; /* an ncclComm_t whose ranks do it, which all call it alike; may be NULL. They
                         are found at the first call, as contextune_communicator_ranks does */
  const char* group;  /* or ranks by name, as contextune_region_group; NULL: nobody is named */
} contextune_function_key;

/* The number of a problem, the same for equal ones, also before CUDA is initialised. Takes a lock:
 * worth keeping. Fails, with CONTEXTUNE_UNTUNED, for a key that cannot be read, and beyond some ten
 * thousand problems; calls with that number run the default. */
CONTEXTUNE_EXPORT uint32_t contextune_function_problem(contextune_function* function,
                                                       const contextune_function_key* key);

/* The config that a call for that problem would run at once, outside of regions, on the current
 * device; CONTEXTUNE_UNSETTLED: contextune_function_call has to find out. Takes no lock and
 * allocates nothing. */
CONTEXTUNE_EXPORT uint32_t contextune_function_settled(contextune_function* function,
                                                       uint32_t problem);

/* The config that was settled on could not be run: it is not run again for that problem. What
 * contextune_note_failure has kept goes into the log. */
CONTEXTUNE_EXPORT void contextune_function_drop(contextune_function* function, uint32_t problem,
                                                uint32_t config);

/* The default of a problem, as a number of a config: the first that is kept. CONTEXTUNE_UNSETTLED:
 * it was not called yet, or has no config that can run. */
CONTEXTUNE_EXPORT uint32_t contextune_function_default(contextune_function* function,
                                                       uint32_t problem);

/* The number of that problem as one of a tunable, for contextune_tunable_timings, and the tunable;
 * NULL and CONTEXTUNE_UNTUNED: it was not called yet, or is not tuned. `number` may be NULL. */
CONTEXTUNE_EXPORT contextune_tunable* contextune_function_tunable(contextune_function* function,
                                                                  uint32_t problem,
                                                                  uint32_t* number);

/* The configs of a function, while they are listed. */
typedef struct contextune_space contextune_space;
/* Adds one, as "block=256 per_sm=4"; the first is the default. During `space` only. */
CONTEXTUNE_EXPORT int contextune_space_add(contextune_space* space, const char* config);

/* Who rules a config out; for the log. */
enum contextune_ruled_out {
  contextune_kept = 0,
  contextune_ruled_out_by_device = 1, /* what the device allows */
  contextune_ruled_out_by_kernel = 2, /* what the compiled kernel allows */
  contextune_ruled_out_by_author = 3
};

/* What a call of a function comes to, if it is neither 0 nor an error above 0 that `run` returned
 * with the default. */
#define CONTEXTUNE_FUNCTION_LEFT (-1)   /* a callback has left it by a number below 0 */
#define CONTEXTUNE_FUNCTION_FAILED (-2) /* contextune_error() says why */

/* One call. The callbacks run on the calling thread, during the call, and may call the functions of
 * contextune.h. The thread may end in them (pthread_exit), but for `say`. Configs are numbered as
 * they were listed. */
typedef struct contextune_function_run {
  size_t size;
  void* user;
  /* Runs it with a config, and returns 0. Else it has failed, with an error above 0, or below 0 for
   * what leaves the call at once if it is the default that ran before, as an exception does.
   * contextune_note_failure says why. Several runs may be one call's; the result of the last one
   * with `counts` is the caller's. Required. */
  int (*run)(void* user, uint32_t config, int counts);
  /* Whether the problem keeps a config: a contextune_ruled_out, of which contextune_note_failure
   * says more, or below 0 to leave. Asked once a problem. NULL: all are kept. */
  int (*prune)(void* user, uint32_t config);
  /* Lists the configs for a device, where the function was made without: at the first call whose
   * device is known, by each of several threads that come to it at the same time. The list of the
   * thread that is done first counts. Where no device is known, `num_sms` is 0, and the list counts
   * for that call. It must not call the function itself. Returns 0. */
  int (*space)(void* user, const contextune_device* device, contextune_space* space);
  /* Says more of the region in which the problem is tuned, as before its first
   * contextune_region_next: its options, and what is put back. Returns 0. NULL: nothing. */
  int (*begin)(void* user, contextune_entry* entry);
  /* Measures a hint: contextune_function_tune with inputs of that size. Returns 0 or above, or
   * below 0 to leave. Required where there are hints. */
  int (*hint)(void* user, uint64_t of_size);
  /* Runs it once with a config that is in no list, because `set` changes config `base` to it; as
   * `run`. NULL: only configs that were listed can be set. */
  int (*run_changed)(void* user, uint32_t base, const char* config);
  /* Is told, as "gemm{n=4096}: was tuned, and runs block=128", what came of the call. May be NULL.
   */
  void (*say)(void* user, const char* text);
  int says_runs;   /* 1: `say` is told which config is run, too */
  int is_untuned;  /* 1: runs the default, and measures nothing */
  const char* set; /* parameters of the config to run, in place of what was tuned, "block=64"; with
                      the option `allow_override`. NULL: none */
  /* Is told that the list of this call counts, before any config is named by its number. May be
   * NULL. It calls nothing of contextune's. */
  void (*listed)(void* user);
} contextune_function_run;

/* Calls it for that problem. A config that fails is given up, and the default runs in its place. A
 * default that fails when it is first tried leaves its place to the next config. */
CONTEXTUNE_EXPORT int contextune_function_call(contextune_function* function, uint32_t problem,
                                               const contextune_function_run* call);

/* Tunes the problem now, unless it is tuned. 1: it is tuned; 0: it cannot be here, because this
 * thread is in a region or a capture, or nothing is tuned; `run` was not called then. Below 0 as a
 * call. */
CONTEXTUNE_EXPORT int contextune_function_tune(contextune_function* function, uint32_t problem,
                                               const contextune_function_run* call);

#ifdef __cplusplus
}
#endif
