#include "frontend.h"

#include <linux/membarrier.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Each of the first threads that use the driver gets a counter to itself, so that counting costs
 * plain increments; further threads of the few programs that have more share some, atomically. */
enum { num_counters = 256 };

static struct contextune_counter counters[num_counters] __attribute__((aligned(64)));
static uint32_t num_taken;
static uint64_t shared_launches;
static uint32_t shared_calls; /* under way */

__thread struct contextune_thread contextune_thread
    __attribute__((tls_model("initial-exec"), aligned(64))) = {0};

struct contextune_counter* contextune_take_counter(void) {
  struct contextune_thread* thread = &contextune_thread;
  if (__atomic_load_n(&num_taken, __ATOMIC_RELAXED) < num_counters) {
    const uint32_t index = __atomic_fetch_add(&num_taken, 1, __ATOMIC_RELAXED);
    if (index < num_counters) {
      const int error = errno; /* a sandbox may refuse even this call */
      thread->own = &counters[index];
      thread->own->thread = (int32_t)syscall(SYS_gettid);
      errno = error;
      return thread->own;
    }
  }
  thread->scratch.shared = 1;
  thread->own = &thread->scratch;
  return thread->own;
}

struct contextune_counter* contextune_thread_counter(void) {
  struct contextune_thread* thread = &contextune_thread;
  if (thread->early != NULL) {
    /* The next launch comes here again until the core knows of this thread's open ranges. */
    const struct contextune_core* core = contextune_load_core();
    if (core != &contextune_core_undecided) {
      contextune_early_hand_over_thread(core);
    }
  }
  struct contextune_counter* own = thread->own != NULL ? thread->own : contextune_take_counter();
  if (thread->early == NULL) {
    thread->counter = own;
  }
  return own;
}

void contextune_count_shared_launch(void) {
  __atomic_fetch_add(&shared_launches, 1, __ATOMIC_RELAXED);
}

void contextune_count_shared_call(bool enters) {
  __atomic_fetch_add(&shared_calls, enters ? 1U : -1U, __ATOMIC_SEQ_CST);
}

uint64_t contextune_launches_passed(void) {
  uint64_t sum = __atomic_load_n(&shared_launches, __ATOMIC_RELAXED);
  for (size_t i = 0; i < num_counters; ++i) {
    sum += __atomic_load_n(&counters[i].launches, __ATOMIC_RELAXED);
  }
  return sum;
}

/* ---- who is inside the driver ---- */

static bool is_inside(const struct contextune_counter* own) {
  return own != NULL && (own->calls & 1) != 0;
}

static void cross(struct contextune_counter* own, bool enters) {
  /* Before whatever is looked at next, and after whatever was done. */
  __atomic_fetch_add(&own->calls, 1, __ATOMIC_SEQ_CST);
  if (own->shared != 0) {
    contextune_count_shared_call(enters);
  }
}

int contextune_leave_call(void) {
  const bool inside = is_inside(contextune_thread.own);
  if (inside) {
    cross(contextune_thread.own, false);
  }
  return inside;
}

void contextune_enter_call(void) {
  cross(contextune_thread.own, true);
}

/* It ended inside a call that it was cancelled in, and will not leave it any more. */
static bool has_ended(const struct contextune_counter* counter) {
  return syscall(SYS_tgkill, getpid(), counter->thread, 0) != 0 && errno == ESRCH;
}

static void nap(long nanoseconds) {
  const struct timespec time = {.tv_sec = 0, .tv_nsec = nanoseconds};
  nanosleep(&time, NULL);
}

static bool may_order_all_threads(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void contextune_prepare_calls_ended(void) {
  if (__libc_single_threaded != 0) {
    (void)may_order_all_threads();
  }
}

/* After it every other thread either sees what we wrote before, or we see that it is inside. */
static void order_all_threads(void) {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
    return;
  }
  if (may_order_all_threads() &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) {
    return;
  }
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) {
    /* A sandbox without the call: what a processor has written, others see within microseconds. */
    nap(2000000);
  }
}

static uint64_t now_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static bool nap_until(uint64_t deadline) {
  if (now_nanoseconds() >= deadline) {
    return false;
  }
  nap(20000);
  return true;
}

uint32_t contextune_messages_under_way(void) {
  uint32_t threads = 0;
  for (size_t i = 0; i < num_counters; ++i) {
    if (&counters[i] == contextune_thread.own ||
        __atomic_load_n(&counters[i].messages, __ATOMIC_ACQUIRE) == 0) {
      continue;
    }
    if (has_ended(&counters[i])) {
      __atomic_store_n(&counters[i].messages, 0, __ATOMIC_RELAXED);
    } else {
      ++threads;
    }
  }
  return threads;
}

int contextune_calls_ended(uint64_t nanoseconds) {
  const uint64_t deadline = now_nanoseconds() + nanoseconds;
  order_all_threads();
  const struct contextune_counter* own = contextune_thread.own;
  for (size_t i = 0; i < num_counters; ++i) {
    if (&counters[i] == own) {
      continue;
    }
    const uint32_t seen = __atomic_load_n(&counters[i].calls, __ATOMIC_ACQUIRE);
    while ((seen & 1) != 0 && __atomic_load_n(&counters[i].calls, __ATOMIC_ACQUIRE) == seen) {
      if (nap_until(deadline)) {
        continue;
      }
      if (!has_ended(&counters[i])) {
        return 0;
      }
      __atomic_store_n(&counters[i].calls, seen + 1, __ATOMIC_RELAXED);
    }
  }
  const uint32_t ours = is_inside(own) && own->shared != 0;
  while (__atomic_load_n(&shared_calls, __ATOMIC_SEQ_CST) != ours) {
    if (!nap_until(deadline)) {
      return 0;
    }
  }
  return 1;
}
