/* What was found out of regions so far, as C functions; a part of contextune.h, whose words on
 * threads, text and failures hold. They take locks: they are for reports, not for every call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <contextune/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

enum contextune_region_state {
  contextune_region_unknown = 0,   /* not entered yet, not found, or nothing is tuned */
  contextune_region_searching = 1, /* or it waits for entries to search in */
  contextune_region_finished = 2,  /* each site runs its winner, as the verdict says */
  contextune_region_stopped = 3    /* for a reason that the log has: all sites run their default */
};

/* How a region fares with its winners beside its defaults; the log says it as `confirm`. */
enum contextune_verdict {
  contextune_verdict_none = 0,     /* it was not compared yet */
  contextune_verdict_kept = 1,     /* it was shown to be faster with its winners */
  contextune_verdict_reduced = 2,  /* it was with some of them, and the others were dropped */
  contextune_verdict_defaults = 3, /* it was not, so it keeps its defaults */
  contextune_verdict_skipped = 4   /* there was nothing to compare, or `confirm` is off */
};

/* Set `size` to sizeof(struct) before; the struct may grow at its end. Seconds are NaN where they
 * were not measured. The gain is the share of the region's time with its
 * defaults that is saved: with 0.2, the region takes 0.8 of that time. */
typedef struct contextune_region_report {
  size_t size;
  enum contextune_region_state state;
  enum contextune_verdict verdict;
  int is_stored;         /* 1: an earlier run has compared it, and this one did not */
  double before_seconds; /* an entry with all defaults */
  double after_seconds;  /* an entry with the winners that were compared last */
  double gain;           /* mean of the pairs of entries that were compared; 0 without a pair */
  double gain_low;       /* its one-sided 95 % lower bound, which the log has as `bound` */
  double gain_high;      /* and its upper bound */
  int pairs;
  uint64_t passes;  /* entries that measured something; 0 where the region was only found */
  uint64_t entries; /* the same */
  double tuning_seconds;
  uint64_t sites;
  uint64_t tuned; /* sites that run another config than their default */
} contextune_region_report;

/* What is known of the region of that name by now. Names are those of the log: "decode", and
 * "decode@device1" for a second device; "scale{n=4096}" where a function tunes one key,
 * "choice all_reduce{bytes=32769-65536}" a choice, and "auto" for the stretch that was found
 * because it repeats. Fails where there is no name or no `size`. */
CONTEXTUNE_EXPORT int contextune_region_query(const char* name, contextune_region_report* report);

#ifdef __cplusplus
}
#endif
