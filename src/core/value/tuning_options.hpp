#pragma once

#include <cstdint>

#include <contextune/options.hpp>

namespace contextune {

/// The part of Options that one region's search needs, plus settings that are not worth an option.
struct TuningOptions {
  int n_warmup = 3;
  int n_repeat = 5;
  ScheduleKind schedule = ScheduleKind::Table;
  Selection selection = Selection::Median;
  double margin = 0.01;
  bool refine = true;
  int refine_candidates = 3;
  int refine_rounds = 3;
  bool confirm = true;
  int confirm_min_pairs = 4;
  int confirm_max_pairs = 32;
  double cutoff = 3.0;
  std::uint32_t max_sites = 256;
  double max_slowdown = 0;       ///< of bounded passes; 0: no limit
  double grace_seconds = 0;      ///< that they may cost beside it
  std::uint64_t max_passes = 0;  ///< 0: no limit
  double max_time = 0;           ///< 0: no limit
  double trial_timeout = 30;     ///< a config with a longer pass counts as failed
  std::uint64_t comm_memory = std::uint64_t{512} << 20U;  ///< whoever measures heeds it

  /// The store knows sites of the region: its first entry only shows which are there, and is not
  /// measured.
  bool store_knows = false;

  /// The cost of a look at results in the middle of refining and confirming, in seconds of the
  /// region. Passes for at least as long are made before each look. Sites that do not depend on one
  /// another's answers are raced between the same looks. 0: nothing.
  double look_seconds = 0;

  /// The share of the region's time that its winners have to save, as ConfirmLimits has it.
  double least_gain = 0;

  /// Sites that first appear after this many passes of a generation form the next one.
  std::uint64_t generation_window = 16;
  /// An unfinished site that was not launched for this many passes no longer holds up the others.
  std::uint64_t stall_passes = 32;
  /// A result counts as lost when a stage has waited for it this many entries and this many
  /// seconds. A program that runs ahead of its GPU makes many entries before the first result can
  /// come.
  std::uint64_t result_patience = 64;
  double result_patience_seconds = 2;
};

[[nodiscard]] TuningOptions tuning_options(const Options& options);

}  // namespace contextune
