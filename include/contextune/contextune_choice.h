/* Choices as C functions; a part of contextune.h, whose words on threads, text and failures hold.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <contextune/contextune.h> /* contextune_unseen, contextune_timing */

#ifdef __cplusplus
extern "C" {
#endif

/* --- Choices ------------------------------------------------------------------------------------
 *
 * One operation with several implementations, each with configs of its own, each any number of
 * kernels, copies and collectives on streams of the current device. Which one is best is searched
 * for each problem when it is first met. The first implementation is the default: it can do every
 * problem, and what it computes is right. Structs that have a `size` may grow at their end; give
 * sizeof(struct), and set what you do not use to 0. */
typedef struct contextune_choice contextune_choice;

enum contextune_select {
  contextune_select_deferred =
      0, /* in the passes of the region around it; outside of one, at once */
  contextune_select_immediate = 1 /* at once and alone, wherever it is */
};

/* Which implementations may run, where some are fused with what else is done and others are not. */
enum contextune_fusion {
  contextune_fusion_auto = 0,
  contextune_fusion_on = 1, /* none that is unfused, where a fused one can do the problem */
  contextune_fusion_off = 2 /* none that is fused */
};

/* CONTEXTUNE_SELECT, CONTEXTUNE_FUSION and CONTEXTUNE_IMPLEMENTATIONS win over what is set here. */
typedef struct contextune_choice_options {
  size_t size;
  enum contextune_select select;
  enum contextune_fusion fusion;
  int ranks; /* processes that do the operation together, waiting for one another: all of
                the job, unless there is a communicator. 0 or 1: this one alone */
  const char* tolerance; /* by how much outputs may differ, "f32:1e-5"; NULL: not in a bit */
  int repeatable;        /* 1: doing it again changes nothing but its outputs */
  int n_warmup;          /* calls of each config that do not count; 0: as the region */
  int n_repeat;          /* and that do; 0: as the region */
  void* communicator;  /* an ncclComm_t whose ranks do it, some of the job or all, one a process; as
                          many as it has where `ranks` is 0; may be NULL. Rank 0 of the job leads
                          their talks: it has to have a choice over ranks too, or a shared region */
  const char* buckets; /* which sizes are one problem: "pow2", "exact", or upper edges in bytes,
                          "4K,64K,1M"; NULL: pow2 */
  enum contextune_unseen unseen; /* outside of regions. The nearest size's is compared with the
                                    default once before; contextune_choice_measure searches */
  uint32_t nearest_within; /* how many times smaller or larger the nearest size may be; 0: 4 */
  int calls_per_pass; /* one after the other, where it is searched alone: what it takes in a row
                         and not by itself. More than 1 only with `repeatable`; 0: 1.
                         One more, untimed, leads in */
  const char* implementations; /* names of those that may run, "nccl,ring"; NULL: all */
  const char* version; /* of the code of all of it, as contextune_tunable_version; NULL: none */
  const char* group;   /* the ranks that do it, as contextune_region_group names them; in place of
                          `ranks` and `communicator`. NULL: as those say */
} contextune_choice_options;

/* What is to be done. Equal problems get one implementation. */
typedef struct contextune_problem {
  size_t size;
  uint64_t bytes;   /* how much; sizes in one of the choice's buckets are one problem. 0: it has no
                       size. `supports` is asked about 2^64-1 for what is beyond the last edge */
  const char* type; /* of the elements, "f32"; NULL: it has none */
  int ranks;        /* as in contextune_choice_options */
  const char* key;  /* what else makes two problems different, "k=4096"; NULL: nothing */
} contextune_problem;

typedef struct contextune_implementation {
  size_t size;
  const char* name;
  const char* const* configs; /* as of tunables; may be NULL: it has one way to run */
  size_t num_configs;
  enum contextune_fusion fusion; /* auto: the option `fusion` does not concern it */
  void* user;
  /* Whether it can do the problem, on all ranks alike. Asked once a problem, for its smallest and
   * its largest size, once CUDA is initialised. NULL: it can do all. That of the default is not
   * asked. */
  int (*supports)(void* user, const contextune_problem* problem);
  /* Makes its call return and what it has on the GPU come to its end: another rank failed, for
   * which it may wait. Perhaps from another thread, while `run` is under way. NULL: never needed.
   */
  void (*abandon)(void* user);
  /* Of its code, as contextune_tunable_version: a winner counts that was found with the same
   * version of each implementation. NULL: none. */
  const char* version;
} contextune_implementation;

/* Device memory of one call. Without outputs nothing can be compared. */
typedef struct contextune_memory {
  void* pointer;
  size_t size_bytes;
  /* 1: what is left there is the result; it is filled with other numbers before results are
   * compared, unless the same memory is given once more with 0: it is read, or changed on the way
   */
  int is_output;
} contextune_memory;

/* One call, and how to do it. `run` may be called several times, on this thread,
 * which may end in it (pthread_exit). */
typedef struct contextune_choice_run {
  size_t size;
  void* user;
  /* Does it, and returns 0; else it could not be done, and the default has to be called for. */
  int (*run)(void* user, size_t implementation, size_t config);
  /* NULL where there is none: then it may be done again only if the options say `repeatable`. */
  const contextune_memory* memory;
  size_t num_memory;
} contextune_choice_run;

/* NULL for a name that is empty, or options that cannot be read. Lives until the process ends; the
 * same name may be given to several. Any thread. */
CONTEXTUNE_EXPORT contextune_choice* contextune_choice_create(
    const char* name, const contextune_choice_options* options);

/* Adds an implementation; the first is the default. Before the first call, on one thread. Nothing
 * runs. The struct is copied; its callbacks and `user` must live as long as the process. */
CONTEXTUNE_EXPORT int contextune_choice_add(contextune_choice* choice,
                                            const contextune_implementation* implementation);

/* The number of a problem, the same for equal ones, also before CUDA is initialised. Takes a lock:
 * worth keeping. A failure is answered with 0xffffffff, which is done by the default. */
CONTEXTUNE_EXPORT uint32_t contextune_choice_problem(contextune_choice* choice,
                                                     const contextune_problem* problem);

/* Does it: with what was chosen for that problem, if that is known; else it may be searched first.
 * `alone` is the same operation on memory of its own, for that; NULL: `call` itself is repeated and
 * its memory put back. Returns what `run` returned that did the caller's work. With ranks, all of
 * them make the same calls in the same order; while it is searched, each waits for the others for
 * at most presync_timeout, and if they do not come all run the default from then on. */
CONTEXTUNE_EXPORT int contextune_choice_call(contextune_choice* choice, uint32_t problem,
                                             const contextune_choice_run* call,
                                             const contextune_choice_run* alone);

/* What the next call for that problem from this thread, on the device that is current, may look at,
 * so that the rest need not be made. Takes no lock. */
enum contextune_choice_want {
  contextune_want_call = 0,   /* nothing but `run`: it is known what is run */
  contextune_want_memory = 1, /* the memory of the call as well */
  contextune_want_alone = 2   /* and `alone` */
};
CONTEXTUNE_EXPORT enum contextune_choice_want contextune_choice_wants(contextune_choice* choice,
                                                                      uint32_t problem);

/* Which implementation and config a call for that problem runs from this thread, on the current
 * device: its winner, that of the region which the thread is in, outside of regions that of a near
 * size, or the default where nothing else can run any more or nothing is tuned at all. Returns 1
 * and sets both numbers, 0 where it still has to be searched, as while its region does, and -1 for
 * a failure. Takes no lock once the problem was called on the device. */
CONTEXTUNE_EXPORT int contextune_choice_settled(contextune_choice* choice, uint32_t problem,
                                                size_t* implementation, size_t* config);

/* The same as one number: the implementation's above 32 bits of the config's; -1 where it still has
 * to be searched, and for a failure. For languages to which places for results cost more than the
 * rest. */
CONTEXTUNE_EXPORT int64_t contextune_choice_settled_number(contextune_choice* choice,
                                                           uint32_t problem);

/* Searches now, on `alone`, unless the problem was searched before. Fails where nothing can be
 * searched: before the program has initialised CUDA, where nothing is tuned, in a capture. */
CONTEXTUNE_EXPORT int contextune_choice_measure(contextune_choice* choice, uint32_t problem,
                                                const contextune_choice_run* alone);

/* What is known of the ways to do a problem: writes at most `most` timings, the default's first,
 * and returns how many there are. 0: before the program has initialised CUDA, and where nothing is
 * tuned, nobody knows; contextune_error(). */
CONTEXTUNE_EXPORT size_t contextune_choice_timings(contextune_choice* choice, uint32_t problem,
                                                   contextune_timing* timings, size_t most);

#ifdef __cplusplus
}
#endif
