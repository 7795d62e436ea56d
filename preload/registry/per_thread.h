/* What rows of driver.def and its parts need for entries that have a per-thread form. */
#pragma once

/* Two entries that differ in the default stream which they mean: the legacy one, then that of each
 * thread. `name` stands beside ## alone, since cuda.h makes macros of some names. */
#define CONTEXTUNE_ENTRY_PAIR(name, version, since, per_thread, per_thread_since, kind, params,  \
                              args)                                                              \
  CONTEXTUNE_ENTRY(name##version, PFN_##name##_##since, kind, params, args)                      \
  CONTEXTUNE_ENTRY(name##version##per_thread, PFN_##name##_##per_thread_since##per_thread, kind, \
                   params, args)
