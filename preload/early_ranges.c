/* NVTX ranges that are open when the core arrives. Before that, names are copied to static storage:
 * the program may free its strings, and nothing may allocate before there is a reason to. */
#include "frontend.h"

#include <string.h>

enum { name_bytes = 128, domain_bytes = 64, max_open = 16, num_stacks = 32, num_wide = 64 };

struct early_range {
  char domain[domain_bytes];
  char name[name_bytes];
};

struct contextune_early_stack {
  bool taken;
  uint32_t num_open;
  uint32_t num_beyond; /* opened when the stack was full: their names are lost */
  struct early_range open[max_open];
};
static struct contextune_early_stack stacks[num_stacks];

enum wide_state { wide_empty, wide_busy, wide_open };
static struct wide_range {
  uint32_t state;
  uint64_t id;
  struct early_range range;
} wide_ranges[num_wide];

static void fill(struct early_range* range, const char* domain, const char* name) {
  strncpy(range->domain, domain, domain_bytes - 1);
  range->domain[domain_bytes - 1] = '\0';
  strncpy(range->name, name != NULL ? name : "", name_bytes - 1);
  range->name[name_bytes - 1] = '\0';
}

/* ---- this thread's ---- */

static void release(struct contextune_early_stack* stack) {
  contextune_thread.early = NULL;
  stack->num_open = 0;
  stack->num_beyond = 0;
  __atomic_store_n(&stack->taken, false, __ATOMIC_RELEASE);
}

static struct contextune_early_stack* take(void) {
  for (size_t i = 0; i < num_stacks; ++i) {
    if (!__atomic_exchange_n(&stacks[i].taken, true, __ATOMIC_ACQUIRE)) {
      contextune_thread.early = &stacks[i];
      contextune_thread.counter = NULL; /* the next launch looks at the ranges first */
      return &stacks[i];
    }
  }
  return NULL;
}

static void push(const char* domain, const char* name) {
  struct contextune_early_stack* stack = contextune_thread.early;
  if (stack == NULL) {
    stack = take();
  }
  if (stack == NULL) {
    return; /* more threads than stacks: this thread's first ranges are not known to the core */
  }
  if (stack->num_open == max_open) {
    ++stack->num_beyond;
    return;
  }
  fill(&stack->open[stack->num_open++], domain, name);
}

/* Ranges nest within their domain only. */
static void pop(const char* domain) {
  struct contextune_early_stack* stack = contextune_thread.early;
  if (stack == NULL) {
    return;
  }
  if (stack->num_beyond != 0) {
    --stack->num_beyond;
    return;
  }
  for (uint32_t i = stack->num_open; i-- > 0;) {
    if (strncmp(stack->open[i].domain, domain, domain_bytes - 1) == 0) {
      memmove(&stack->open[i], &stack->open[i + 1],
              (stack->num_open - i - 1) * sizeof stack->open[0]);
      --stack->num_open;
      break;
    }
  }
  if (stack->num_open == 0) {
    release(stack);
  }
}

void contextune_early_hand_over_thread(const struct contextune_core* core) {
  struct contextune_early_stack* stack = contextune_thread.early;
  if (stack == NULL) {
    return;
  }
  contextune_thread.early = NULL; /* the core may call what leads here */
  const int depth = contextune_thread.depth;
  contextune_thread.depth = 1;
  for (uint32_t i = 0; core != NULL && i < stack->num_open; ++i) {
    core->range(contextune_range_push, stack->open[i].domain, stack->open[i].name, 0);
  }
  for (uint32_t i = 0; core != NULL && i < stack->num_beyond; ++i) {
    core->range(contextune_range_push, "", "", 0); /* so that the pops to come find a partner */
  }
  contextune_thread.depth = depth;
  release(stack);
}

/* ---- the process's ---- */

static bool change(struct wide_range* wide, uint32_t from, uint32_t to) {
  return __atomic_compare_exchange_n(&wide->state, &from, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

static void start(const char* domain, const char* name, uint64_t id) {
  for (size_t i = 0; i < num_wide; ++i) {
    if (change(&wide_ranges[i], wide_empty, wide_busy)) {
      wide_ranges[i].id = id;
      fill(&wide_ranges[i].range, domain, name);
      change(&wide_ranges[i], wide_busy, wide_open);
      return;
    }
  }
}

static bool end(uint64_t id) {
  for (size_t i = 0; i < num_wide; ++i) {
    if (change(&wide_ranges[i], wide_open, wide_busy)) {
      const bool ends = wide_ranges[i].id == id;
      change(&wide_ranges[i], wide_busy, ends ? wide_empty : wide_open);
      if (ends) {
        return true;
      }
    }
  }
  return false;
}

void contextune_early_hand_over_process(const struct contextune_core* core) {
  for (size_t i = 0; i < num_wide; ++i) {
    struct wide_range* wide = &wide_ranges[i];
    if (change(wide, wide_open, wide_busy)) {
      core->range(contextune_range_start, wide->range.domain, wide->range.name, wide->id);
      change(wide, wide_busy, wide_empty);
    }
  }
}

/* Called at depth 1, in place of the core. */
void contextune_early_range(enum contextune_range_kind kind, const char* domain, const char* name,
                            uint64_t id) {
  bool unmatched_end = false;
  switch (kind) {
    case contextune_range_push:
      push(domain, name);
      return;
    case contextune_range_pop:
      pop(domain);
      return;
    case contextune_range_start:
      start(domain, name, id);
      break;
    case contextune_range_end:
      unmatched_end = !end(id);
      break;
  }
  /* The core may have been attached since this call set out. */
  const struct contextune_core* core = contextune_load_core();
  if (core != NULL && core != &contextune_core_undecided) {
    contextune_early_hand_over_process(core);
    if (unmatched_end) {
      core->range(kind, domain, NULL, id);
    }
  }
}
