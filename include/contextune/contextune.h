/* contextune for other languages: the whole in-process interface as C functions.
 *
 * Nothing here throws, exits or prints. Without a GPU, a driver or the frontend, and when
 * CONTEXTUNE_DISABLE=1 is set, every call is a plain pass-through: bodies run once, tunables answer
 * config 0.
 * Threads: every function may be called from any thread; what one object allows is said with it.
 * Text: UTF-8, ends with NUL, copied by the callee. Time is in seconds, sizes are in bytes.
 * Failures: functions that can fail return 0 for success and -1 for failure (or NULL), and
 * contextune_error() then says on the same thread what happened and what to do. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <contextune/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

/* Release of the library, "0.1.0". */
CONTEXTUNE_EXPORT const char* contextune_version(void);

/* Why the last failed call of this thread failed; "" if none did. Valid until the thread's next
 * failed call. */
CONTEXTUNE_EXPORT const char* contextune_error(void);

/* What contextune can do in this process. */
enum contextune_state {
  contextune_state_off = 0,      /* nothing: disabled, or there is no usable GPU driver */
  contextune_state_tunables = 1, /* loaded late, or linked wrongly: launches are not seen */
  contextune_state_full = 2      /* launches are seen as well */
};
CONTEXTUNE_EXPORT enum contextune_state contextune_current_state(void);
/* A sentence on why the state is not full; "" when it is. Valid for ever. */
CONTEXTUNE_EXPORT const char* contextune_state_reason(void);

/* --- Ranks --------------------------------------------------------------------------------------
 *
 * Tunes the regions of this process together with those of the other ranks of an NCCL communicator
 * (an ncclComm_t). For programs whose launcher does not say which ranks there are, or whose ranks
 * are on several hosts. Each rank calls it once, before its first region, as it would call
 * ncclCommSplit: nothing else is under way on the communicator, no group is open, no stream is
 * being captured. A rank on which contextune is switched off must call it as well, and says so.
 *
 * NCCL carries a few bytes of each rank, over a communicator that is split off and ended again;
 * from then on the ranks talk through sockets. Waits at most `seconds` (30 is plenty) for the
 * others. Succeeds where the very same ranks are tuned together already, and fails where others
 * are, which stay so. Fails on all ranks that can still be told; unless they had been joined
 * before, no region is then tuned, and the program goes on. Where it fails because a rank did not
 * come in time, NCCL may still wait for that rank in the background: the communicator must be
 * neither split nor destroyed any more. */
CONTEXTUNE_EXPORT int contextune_join(void* communicator, double seconds);

/* This process's rank in its job, from 0, and how many ranks the job has, as far as that is known
 * by now: of the ranks that were joined, else of what its launcher says, else of the program's
 * first communicator of several ranks. 0 of 1 where nobody says. Waits for nobody, and answers
 * before CUDA is initialised and where nothing is tuned, too. `rank` and `num_ranks` may be NULL.
 * Never fails. */
CONTEXTUNE_EXPORT void contextune_rank(uint32_t* rank, uint32_t* num_ranks);

/* Which ranks of the job an NCCL communicator has, "0-3+6": they tune by themselves what they alone
 * do. `text` gets at most `size` bytes with the zero byte: "" where they are the whole job, or
 * nothing is tuned here. Each of them calls it, as it would contextune_join, which is done first,
 * once, where the ranks do not know one another yet. Waits for the others up to presync_timeout,
 * and up to 30 s where it joins them; a communicator that was asked for is known at once. Fails
 * where they are not found: what they would do together runs its default. */
CONTEXTUNE_EXPORT int contextune_communicator_ranks(void* communicator, char* text, size_t size);

/* --- Regions ------------------------------------------------------------------------------------
 *
 *   contextune_entry entry;
 *   contextune_region_begin(&entry, "decode");
 *   contextune_region_option(&entry, "repeatable", "true");
 *   while (contextune_region_next(&entry)) { ... launch work ... }
 *   contextune_region_end(&entry);
 *
 * One entry belongs to one thread. Entries may be nested, and must then end innermost first. */
typedef struct contextune_entry {
  uint64_t opaque[8];
} contextune_entry;

/* Enters the region `name` on this thread. Always succeeds. */
CONTEXTUNE_EXPORT void contextune_region_begin(contextune_entry* entry, const char* name);

/* 1 while the region still searches: options and restore are of use. 0: they may be left out. */
CONTEXTUNE_EXPORT int contextune_region_tunes(const contextune_entry* entry);

/* Sets one option of the region by name and value, as "n_repeat", "5". Between begin and the first
 * next; counts at the region's first entry only. A flag or a variable of the same option wins.
 * Fails for an unknown name and for a value that the option cannot have. */
CONTEXTUNE_EXPORT int contextune_region_option(contextune_entry* entry, const char* name,
                                               const char* value);

/* Device memory that the body changes: copied aside before the first pass, copied back before each
 * further one. Between begin and the first next; may be called several times; makes the region
 * repeatable for this entry. */
CONTEXTUNE_EXPORT int contextune_region_restore_buffer(contextune_entry* entry,
                                                       void* device_pointer, size_t size_bytes);

/* Called on this thread before each further pass, to undo what the body did. Makes the region
 * repeatable for this entry. `restore` returns 0, or anything else when it could not restore:
 * the search then ends and the body does not run again. */
CONTEXTUNE_EXPORT int contextune_region_restore_call(contextune_entry* entry,
                                                     int (*restore)(void* user), void* user);

/* The body is done by the ranks of an NCCL communicator, one a process, which tune it by themselves
 * and wait for nobody else; see contextune_communicator_ranks. Some of the job have winners of
 * their own in it, as "decode{group=0-1}". Between begin and the first next, at each entry. Fails
 * where they are not found: the body then runs once, as it is. */
CONTEXTUNE_EXPORT int contextune_region_communicator(contextune_entry* entry, void* communicator);

/* The same for ranks of the job that the program names, "0-3+6" or "0-28/4" for every fourth, as of
 * a process group that has no NCCL communicator. This rank is one of them. Ranks that do not know
 * one another yet, see contextune_join, are found as the launcher names them. NULL or "": all of
 * the job. */
CONTEXTUNE_EXPORT int contextune_region_group(contextune_entry* entry, const char* ranks);

/* 1: this entry was to find out what is best, and no agreement was reached with the other ranks, so
 * that defaults run; contextune_error() then says why. Between the last next and end. */
CONTEXTUNE_EXPORT int contextune_region_untuned(const contextune_entry* entry);

/* Not 0: run the body (again). 0: done; what the body has left is the result. 2: run it again as it
 * is, to see whether that leaves the same; where it does not, that run is undone, and the next
 * answer is 0. */
CONTEXTUNE_EXPORT int contextune_region_next(contextune_entry* entry);

/* Leaves the region. When the last next returned 1 the body was left early: the search of this
 * entry ends without winners, and memory is restored. Calling it again does nothing. */
CONTEXTUNE_EXPORT void contextune_region_end(contextune_entry* entry);

/* --- Tunables -----------------------------------------------------------------------------------
 *
 * One launch that has configs. Configs are given as text, "block=256 per_sm=4"; the first is the
 * default. A value is an integer, a number with a point, true, false, or text ("in quotes" where it
 * holds spaces). Lives until the process ends; any thread. */
typedef struct contextune_tunable contextune_tunable;

/* The same name and configs give the same tunable. NULL when there is no config, when one cannot be
 * read, or when two are equal. */
CONTEXTUNE_EXPORT contextune_tunable* contextune_tunable_create(const char* name,
                                                                const char* const* configs,
                                                                size_t num_configs);

/* Passes of each of its configs that do not count, and that do; -1: as the region. Counts for
 * problems that are first met from now on. Fails if one is out of range. */
CONTEXTUNE_EXPORT int contextune_tunable_passes(contextune_tunable* tunable, int n_warmup,
                                                int n_repeat);

/* A version of the code that its calls run, as a hash of it: any text, which is compared as a
 * whole. A winner that was stored with another version does not count, and is searched again.
 * Without one, a winner of another build of the program file is shown again first; with one, the
 * build does not matter. NULL or "": none. Counts for problems that are first called from now on.
 */
CONTEXTUNE_EXPORT int contextune_tunable_version(contextune_tunable* tunable, const char* version);

/* A call of it is any amount of work, kernels, copies and collectives on any streams of one device:
 * it costs the time from the first start to the last end of that work, not the sum of its launches
 * (a call that launches a CUDA graph cannot be timed).
 * Before its first call. NCCL's collectives inside a call are then part of it, and not tuned for
 * themselves. */
CONTEXTUNE_EXPORT int contextune_tunable_span(contextune_tunable* tunable);

/* Names one problem of the tunable, as "n=4096 type=f32"; equal text gives the equal number. Null,
 * or text that is empty, is problem 0. Fails for text that is no key, and beyond some ten
 * thousand problems, with CONTEXTUNE_UNTUNED, the number of none: what takes a problem's number
 * takes that too, tunes nothing and answers config 0, but for contextune_tunable_keep, which
 * fails. */
#define CONTEXTUNE_UNTUNED 0xffffffffu
CONTEXTUNE_EXPORT uint32_t contextune_tunable_key(contextune_tunable* tunable, const char* key);

/* The same for a problem that some ranks of the job do together: named as contextune_region_group
 * has it, or as contextune_communicator_ranks answers. They have winners of their own for it, and
 * make the passes of contextune_tunable_region_begin together, waiting for nobody else. Such a
 * region in which they are not found runs its body once, and contextune_region_untuned is 1. NULL
 * or
 * "": all of the job, or this process alone. */
CONTEXTUNE_EXPORT uint32_t contextune_tunable_group_key(contextune_tunable* tunable,
                                                        const char* key, const char* ranks);

/* One call of a tunable, between begin and end, on one thread. */
typedef struct contextune_call {
  uint64_t opaque[8];
} contextune_call;

/* Which config to launch now: an index into the configs. Work launched by this thread until end is
 * timed as this call's. */
CONTEXTUNE_EXPORT uint32_t contextune_tunable_begin(contextune_tunable* tunable, uint32_t key,
                                                    contextune_call* call);

/* `launched` is 0 when the launch failed. Returns 1 when the work must be launched once more with
 * the problem's default, outside of any further begin and end, so that the program's results stay
 * right. */
CONTEXTUNE_EXPORT int contextune_tunable_end(contextune_call* call, int launched);

/* Keeps why what this thread is running fails, as the text of an exception that cannot pass through
 * here; the first 1024 bytes are copied. The log says it with the failure that this thread reports
 * next: contextune_tunable_end() of what was not launched, or `run` of a choice. NULL: nothing is
 * known. */
CONTEXTUNE_EXPORT void contextune_note_failure(const char* text);

/* How many configs of one problem were ruled out, and by whom; for the log. */
typedef struct contextune_pruned {
  uint32_t by_device; /* what the device allows */
  uint32_t by_kernel; /* what the compiled kernel allows */
  uint32_t by_author;
  uint32_t failed; /* could not be launched before anything was measured */
} contextune_pruned;

/* Which configs one problem may run, as indices into the tunable's; the first is its default.
 * Before the problem's first call; later calls may only say the same again. `pruned` may be NULL.
 * Fails if there is none, or one does not exist or comes twice. */
CONTEXTUNE_EXPORT int contextune_tunable_keep(contextune_tunable* tunable, uint32_t key,
                                              const uint32_t* configs, size_t num_configs,
                                              const contextune_pruned* pruned);

/* What the problem runs on the current device outside of regions, without begin and end: its
 * winner, and its default where nothing is tuned at all. CONTEXTUNE_UNSETTLED: it was not tuned
 * yet, or this thread is inside a region. Takes no lock and allocates nothing. */
#define CONTEXTUNE_UNSETTLED 0xffffffffu
CONTEXTUNE_EXPORT uint32_t contextune_tunable_settled(contextune_tunable* tunable, uint32_t key);

/* What is known of one way to do a problem: measured in this run, or in the earlier one whose
 * winner it started with. */
enum contextune_timing_state {
  contextune_timing_measured = 0,
  contextune_timing_missing = 1,     /* not measured, or not yet */
  contextune_timing_unsupported = 2, /* or ruled out */
  contextune_timing_wrong = 3,       /* computes something else than the default */
  contextune_timing_failed = 4       /* could not be run */
};
typedef struct contextune_timing {
  size_t implementation;
  size_t config;
  double seconds; /* median of the samples */
  size_t samples;
  enum contextune_timing_state state;
  int is_winner;
} contextune_timing;

/* What is known of the configs of one problem of a tunable, with implementation 0. Writes at most
 * `most` of them, the problem's default first and those that it does not keep last, and returns how
 * many there are. The winner is that on the current device; none is while it is not settled. Times
 * are those of the region that the winner is from, else of the last region that the problem was
 * called in. 0: before the program has initialised CUDA, where nothing is
 * tuned, and for a number of no problem; contextune_error(). */
CONTEXTUNE_EXPORT size_t contextune_tunable_timings(contextune_tunable* tunable, uint32_t key,
                                                    contextune_timing* timings, size_t most);

/* Enters the region in which that one problem is tuned by itself, "gemm{n=4096}"; from here on it
 * is as any other region, but that it is repeated too where nothing was said of repeating it and
 * two runs of its default leave the same in device memory; contextune_region_next then answers 2
 * once. */
CONTEXTUNE_EXPORT void contextune_tunable_region_begin(contextune_entry* entry,
                                                       contextune_tunable* tunable, uint32_t key);

/* Where the calling thread is. */
enum contextune_place {
  contextune_place_untuned = 0, /* nothing is tuned in this process */
  contextune_place_region = 1,  /* inside a region */
  contextune_place_capture = 2, /* a stream is being captured into a graph */
  contextune_place_free = 3     /* a body may be repeated here */
};
CONTEXTUNE_EXPORT enum contextune_place contextune_current_place(void);

/* Says that a stream, a CUstream, is being captured into a graph. contextune sees captures where it
 * sees launches; elsewhere what a search asks of the driver would end them. Until the driver says
 * that the capture is over, nothing is measured in the process. */
CONTEXTUNE_EXPORT void contextune_note_capture(void* stream);

/* --- Limits of the device and of kernels ------------------------------------------------------ */

typedef struct contextune_device {
  size_t size;    /* of this struct; it may grow at the end */
  char name[128]; /* "NVIDIA H200" */
  int num_sms;
  int compute_capability; /* 90 for 9.0 */
  int max_threads_per_block;
  int registers_per_sm;
  size_t max_shared_bytes; /* a block, opt-in */
} contextune_device;

/* Facts of the device of this thread's context; set `size` before. Fails where there is none. */
CONTEXTUNE_EXPORT int contextune_current_device(contextune_device* device);

typedef struct contextune_kernel_limits {
  size_t size;               /* of this struct; it may grow at the end */
  int max_threads_per_block; /* as compiled */
  int registers;             /* of a thread */
  size_t static_shared_bytes;
  size_t max_dynamic_shared_bytes; /* that a block may ask for on this device, opt-in */
} contextune_kernel_limits;

/* What a compiled kernel allows on the current device. `kernel` is a CUfunction or a CUkernel; set
 * `size` before. Fails where the driver cannot tell. */
CONTEXTUNE_EXPORT int contextune_limits_of_kernel(const void* kernel,
                                                  contextune_kernel_limits* limits);

/* How a kernel is to be launched. */
typedef struct contextune_launch_shape {
  size_t size; /* of this struct; it may grow at the end */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3]; /* 0: none asked for */
  size_t shared_bytes; /* dynamic shared memory */
} contextune_launch_shape;

/* 1: such a launch can be made, as far as is known. 0: it cannot be made, and contextune_error()
 * has a clause that names the numbers. Numbers that are 0 in `device` and `kernel`, and either of
 * these where it is NULL, are not held against it. Fails where a `size` is not set. For pruning. */
CONTEXTUNE_EXPORT int contextune_launch_fits(const contextune_launch_shape* shape,
                                             const contextune_device* device,
                                             const contextune_kernel_limits* kernel);

/* --- Declared kernels ---------------------------------------------------------------------------
 *
 * What may be changed of the launches of one kernel that the program makes with <<<>>> or
 * cuLaunchKernel. Needs the frontend: linked, or preloaded. */

/* The launch as the program wrote it. Valid during the callback only. */
typedef struct contextune_launch_view {
  size_t size;        /* of this struct; it may grow at the end */
  const char* kernel; /* demangled, without parameters */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];   /* 0: none asked for */
  uint32_t shared_bytes; /* dynamic shared memory */
  size_t num_arguments;
  const void* const* arguments; /* host memory, one pointer an argument */
  const size_t* argument_bytes;
  /* The device it goes to; 0 where it is not known. */
  int num_sms;
  int compute_capability; /* 90 for 9.0 */
  int max_threads_per_block;
  size_t max_shared_bytes;
  /* What the callback looked at, so that its answer can be kept for launches that agree in it.
   * On entry `reads` is contextune_reads_everything, which is always right. `read_arguments`: bit i
   * for argument i. */
  uint32_t reads;
  uint64_t read_arguments;
} contextune_launch_view;

enum contextune_reads {
  contextune_reads_grid = 1,
  contextune_reads_block = 2,
  contextune_reads_shape = 4, /* cluster or dynamic shared memory */
  contextune_reads_everything = 8
};

/* What a config makes of the launch. On entry all numbers are CONTEXTUNE_UNCHANGED and all text is
 * NULL: as the program wrote it. Text must stay valid until the callback is called again. */
#define CONTEXTUNE_UNCHANGED 0xffffffffu
typedef struct contextune_launch_change {
  size_t size; /* of this struct; it may grow at the end */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t shared_bytes;
  const char* function; /* another function, by demangled name or symbol */
  const char* module;   /* where it lives: cubin, fatbin or PTX file; NULL: the same module */
  const char* source;   /* CUDA C++ file to build with NVRTC */
  const char* const* build_options; /* of NVRTC, ends with NULL */
} contextune_launch_change;

/* What is done at a size in whose bucket nothing was measured yet. */
enum contextune_unseen {
  contextune_unseen_tune = 0, /* it is measured when it comes */
  contextune_unseen_nearest =
      1, /* what the nearest size runs that was; where none is near, as `tune` */
  contextune_unseen_default = 2 /* the default */
};

/* Callbacks return 0 for success. Otherwise the kernel keeps its own launch, and `error` (of
 * `error_bytes` bytes, "" on entry) goes into the log. They run on the thread that launches, never
 * two at a time for one kernel, and must not call CUDA. */
typedef struct contextune_kernel {
  size_t size;        /* sizeof(contextune_kernel) */
  const char* kernel; /* demangled name without parameters, or the symbol */
  const char* origin; /* for messages, "file.c:12"; may be NULL */
  const char* const*
      configs; /* as for tunables; without the default, which is the program's own launch */
  size_t num_configs;
  int n_warmup; /* -1: as the region */
  int n_repeat; /* -1: as the region */
  void* user;
  /* Writes the key, as "n=4096", into `key` of `key_bytes` bytes. May be NULL: no further key. */
  int (*key)(void* user, contextune_launch_view* launch, char* key, size_t key_bytes, char* error,
             size_t error_bytes);
  /* Sets *keep to 0 to rule a config out for this launch. May be NULL: all are kept. */
  int (*prune)(void* user, size_t config, contextune_launch_view* launch, int* keep, char* error,
               size_t error_bytes);
  /* Writes what the config makes of the launch. Required. */
  int (*apply)(void* user, size_t config, contextune_launch_view* launch,
               contextune_launch_change* change, char* error, size_t error_bytes);
  /* Not 0: the key holds the size of the problem, as a bucket, and takes the place of the grid. */
  int keys_by_size;
  /* What a launch does whose size comes when its region is tuned; with keys_by_size only. */
  enum contextune_unseen unseen;
} contextune_kernel;

/* Declares a kernel, for launches that are first seen from now on; the last declaration of a name
 * counts. The struct is copied; the callbacks and `user` must live as long as the process. */
CONTEXTUNE_EXPORT int contextune_declare_kernel(const contextune_kernel* kernel);

#ifdef __cplusplus
}
#endif

#include <contextune/contextune_choice.h>
#include <contextune/contextune_function.h>
#include <contextune/contextune_results.h>
