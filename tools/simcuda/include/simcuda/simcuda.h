#pragma once
// The C interface of the simulated CUDA driver: how a simulated kernel is described and registered,
// what a test may set, and what the simulated CUPTI listens to. Nothing of it exists in a real
// driver, so a program that is to run on a real GPU too must not need it.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMCUDA_VERSION 1
#define SIMCUDA_MAX_ACCESSES 12

/* One launch as a kernel sees it. */
struct simcuda_launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned cluster[3];
  unsigned dynamic_shared_bytes;
  unsigned num_sms;       /* of the device that it runs on */
  void* const* arguments; /* one pointer for each parameter */
  /* For simcuda_global. */
  void* (*find_global)(const struct simcuda_launch* launch, const char* name, size_t* bytes);
  void* module;
};

/* The memory of a `__device__` variable of the module that was launched, for a kernel to read and
   write while it runs or is described; NULL when the module has none of that name. `bytes` may be
   NULL. */
static inline void* simcuda_global(const struct simcuda_launch* launch, const char* name,
                                   size_t* bytes) {
  return launch->find_global == NULL ? NULL : launch->find_global(launch, name, bytes);
}

enum simcuda_access_flags {
  SIMCUDA_READ = 1,
  SIMCUDA_WRITE = 2,
  SIMCUDA_STREAMING = 4 /* marked to be evicted first: leaves no lines in the L2 cache */
};

/* What one launch does to one stretch of device memory. */
struct simcuda_access {
  const void* address;
  size_t bytes;           /* different bytes that the whole launch touches */
  unsigned flags;         /* simcuda_access_flags */
  unsigned element_bytes; /* what neighbouring threads are apart; 0 means 4 */
  double passes;          /* how often each byte is asked for; 0 means once */
  size_t tile_bytes;      /* what one block asks for again and again; 0: no reuse inside a block */
};

/* The work of one launch: facts about the kernel, from which the driver derives a time. */
struct simcuda_work {
  double items;           /* what the threads share out one by one in a loop; 0: one a thread */
  double flops;           /* additions and multiplications of the whole launch */
  double block_cycles;    /* serial part of a block, such as barriers, in SM cycles */
  double bytes_in_flight; /* what one thread asks for before it waits; 0 means 16 */
  double instruction_parallelism; /* independent instructions of a thread; 0 means 2 */
  double early_seconds; /* that it takes longer where it was prepared while another one ended */
  struct simcuda_access accesses[SIMCUDA_MAX_ACCESSES];
  unsigned access_count;
};

struct simcuda_parameter {
  size_t bytes;
  size_t alignment; /* a power of two */
};

/* A launch that several processes do together, such as a collective. Its start waits for all of
   them, and its end is that of all of them, so both are asked for. All callbacks run with the
   driver locked, on any thread: they must neither block nor call the driver. */
struct simcuda_joint_work {
  /* The virtual time at which the stream has come to it. Called once, perhaps after `post`. */
  void (*arrive)(void* data, double start);
  int (*may_post)(void* data); /* polled: nonzero when there is room to post */
  void (*post)(void* data);    /* all work before it is done: its inputs are in memory */
  int (*may_finish)(void* data, double* end); /* polled: nonzero when all have posted and arrived */
  void (*finish)(void* data);                 /* writes its outputs */
  void (*release)(void* data); /* the last call, whether or not the others were made */
  void* data;
};

/* A simulated kernel. Everything that it points to must live as long as the process. */
struct simcuda_kernel {
  const char* name;
  void (*run)(const struct simcuda_launch* launch); /* NULL: computes nothing */
  void (*describe)(const struct simcuda_launch* launch, struct simcuda_work* work); /* or NULL */
  const struct simcuda_parameter* parameters;
  size_t parameter_count;
  unsigned registers; /* of one thread; 0 means 32 */
  unsigned static_shared_bytes;
  unsigned local_bytes;
  unsigned max_threads_per_block; /* 0: what the registers allow */
  /* Not NULL: each execution, also each one of a graph, is joint work, which this begins. It stands
     in place of `run` and `describe`. Returns a CUresult; the launch fails with it. */
  int (*join)(const struct simcuda_launch* launch, struct simcuda_joint_work* work);
};

/* What a kernel file, a shared library named by a module image, exports as
   `simcuda_kernels`. */
struct simcuda_kernel_table {
  unsigned version; /* SIMCUDA_VERSION */
  const struct simcuda_kernel* const* kernels;
  size_t count;
};

/* For a program that brings its kernels itself: registers them before it loads a module image.
   A second kernel of the same name replaces the first for modules loaded later.
   Returns 0, or -1 when the table has another version. */
int simcuda_register_kernels(const struct simcuda_kernel_table* table);

/* SIMCUDA_VERSION; the presence of this symbol is what tells a simulated driver from a real one. */
unsigned simcuda_version(void);

/* Virtual time of the host in seconds since the process started. Only driver calls move it. */
double simcuda_host_time(void);
/* Moves the virtual clock of the host on, as host work between two calls would. */
void simcuda_host_work(double seconds);
/* Moves it on to a time, if it is not past it: as waiting for another process does. */
void simcuda_host_wait_until(double time);

/* Seconds of the last kernel that ran on a device, with and without noise; 0 before the first. */
double simcuda_last_kernel_time(int device);
double simcuda_last_kernel_noise_free_time(int device);

/* Replaces what SIMCUDA_NOISE and SIMCUDA_SEED set. */
void simcuda_set_noise(double relative_sigma, uint64_t seed);
/* Replaces what SIMCUDA_ORDER set, after all pending work. With `deferred` work has its effect late
   and in an order that the seed draws. */
void simcuda_set_order(int deferred, uint64_t seed);
/* Replaces what SIMCUDA_FAULT set. Returns 0, or -1 when the text is not understood. */
int simcuda_set_fault(const char* text);
/* Empties the L2 cache of a device. */
void simcuda_flush_cache(int device);

/* One piece of finished or scheduled GPU work, for the simulated CUPTI. */
enum simcuda_activity_kind { SIMCUDA_KERNEL = 1, SIMCUDA_COPY = 2, SIMCUDA_SET = 3 };
struct simcuda_activity {
  int kind;          /* simcuda_activity_kind */
  double start, end; /* virtual seconds */
  double submitted;
  uint32_t device, context, stream, correlation;
  const char* name; /* of a kernel; lives as long as the process */
  struct simcuda_launch launch;
  uint32_t registers, static_shared_bytes, local_bytes, executed_shared_bytes;
  uint64_t bytes;
  uint32_t copy_kind, source_kind, destination_kind; /* CUPTI's numbers */
  uint32_t value;
  uint64_t graph_node;
  uint32_t graph;
  int cooperative;
};

/* How the simulated CUPTI listens. The callbacks run on the thread that made the driver call and
   must not call the driver. */
struct simcuda_listener {
  void (*activity)(const struct simcuda_activity* activity); /* the driver is locked */
  /* The driver is not locked. `cbid` is CUPTI's number of the entry point. */
  void (*api)(int enter, uint32_t cbid, const char* name, const void* parameters, int result,
              void* context, uint32_t context_id, uint32_t correlation);
  double launch_overhead; /* seconds that each launch costs the host in addition */
};
/* NULL stops listening. The listener must live until it is replaced. */
void simcuda_listen(const struct simcuda_listener* listener);
/* Identifiers as in activity records; 0 for a handle that is not one. */
uint32_t simcuda_context_id(void* context);
uint32_t simcuda_stream_id(void* context, void* stream, int per_thread);
int simcuda_context_device(void* context);

#ifdef __cplusplus
}
#endif
