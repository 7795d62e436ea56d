#include "frontend.h"

/* Each of the first threads that launch gets a counter to itself, so that counting costs one plain
 * increment; the few programs with more launching threads share one, atomically. */
enum { num_counters = 128 };

static struct contextune_counter counters[num_counters] __attribute__((aligned(64)));
static uint32_t num_taken;
static uint64_t shared_launches;

__thread struct contextune_thread contextune_thread
    __attribute__((tls_model("initial-exec"))) = {0};

struct contextune_counter* contextune_thread_counter(void) {
  struct contextune_thread* thread = &contextune_thread;
  if (thread->early != NULL) {
    /* The next launch comes here again until the core knows of this thread's open ranges. */
    const struct contextune_core* core = contextune_load_core();
    if (core != &contextune_core_undecided) {
      contextune_early_hand_over_thread(core);
    }
  }
  if (thread->own == NULL && __atomic_load_n(&num_taken, __ATOMIC_RELAXED) < num_counters) {
    const uint32_t index = __atomic_fetch_add(&num_taken, 1, __ATOMIC_RELAXED);
    if (index < num_counters) {
      thread->own = &counters[index];
    }
  }
  if (thread->own == NULL) {
    __atomic_fetch_add(&shared_launches, 1, __ATOMIC_RELAXED);
    return &thread->scratch;
  }
  if (thread->early == NULL) {
    thread->counter = thread->own;
  }
  return thread->own;
}

uint64_t contextune_launches_passed(void) {
  uint64_t sum = __atomic_load_n(&shared_launches, __ATOMIC_RELAXED);
  for (size_t i = 0; i < num_counters; ++i) {
    sum += __atomic_load_n(&counters[i].launches, __ATOMIC_RELAXED);
  }
  return sum;
}
