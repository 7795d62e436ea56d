#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <contextune/options.hpp>

#include "core/trials/store.hpp"
#include "core/trials/tuning_observer.hpp"
#include "core/value/fallback_reason.hpp"
#include "log/rank_log.hpp"

/// The lines of the rank log that no tuning reports: what the process is, what it saw, what went
/// wrong. Fields and their order are part of the format: readers rely on them.
namespace contextune::log {

/// A `passes` line tells of no more passes than that.
inline constexpr std::uint64_t most_passes_of_a_line = 10'000;

/// First line of a process.
struct StartEvent {
  std::string program;
  std::string gpu;
  std::string compute_capability;  ///< "9.0"
  int num_sms = 0;
  std::string driver;  ///< its version: "13.0"
  bool simulated = false;
  Mode mode = Mode::Auto;
  std::string regions;           ///< as asked for: "nvtx:decode"
  std::string timer;             ///< "cupti" or "events"
  std::uint32_t world_size = 1;  ///< ranks of the job, as its launcher says
  std::string command{};         ///< how the program was started, for a shell; empty: not known
  std::string options{};         ///< that were given as variables: "n-repeat=2 region=auto"
  std::string host{};            ///< its name; ranks of one host have one clock
};

/// The launches of one kernel in the region, for --discover.
struct KernelEvent {
  std::string region;
  std::string kernel;
  std::string key;
  std::uint64_t launches = 0;
  double seconds = 0;  ///< sum over its launches
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  int registers = 0;
  std::string params;  ///< "i32 f32 ptr ptr"
  std::string timer;
  bool simulated = false;
};

/// Where a region's tuning stands when the process ends or loses its context.
struct SummaryEvent {
  std::string region;
  std::uint64_t passes = 0;
  std::uint64_t entries = 0;
  double tuning_seconds = 0;
  std::string_view stage;
  std::uint64_t sites = 0;
  std::uint64_t tuned = 0;  ///< sites whose winner is not the default
  bool simulated = false;
};

/// A visit of a region was recorded and repeated. Times are seconds.
struct ReplayEvent {
  std::string region;
  std::uint64_t visit = 0;          ///< counted from 1; those before it could not be replayed
  std::uint64_t operations = 0;     ///< recorded: launches, copies, events
  std::uint64_t replays = 0;        ///< of the region until now
  double seconds = 0;               ///< that the program stood still
  std::size_t footprint_bytes = 0;  ///< that the region could write
  std::size_t dirty_bytes = 0;      ///< that it wrote
  std::size_t device_bytes = 0;     ///< of copies on the device
  std::size_t host_bytes = 0;       ///< of copies on the host
  double save_seconds = 0;
  double restore_seconds = 0;  ///< before one pass
  double hash_seconds = 0;     ///< of all the footprint
  /// "itself": a pass came right after a repetition with the same configs; "restore": after copies
  /// that put memory back; "": there was none.
  std::string_view timed_after;
  std::string why_restored;   ///< a clause
  std::size_t num_ranks = 1;  ///< that made the same runs
  double waited_seconds = 0;  ///< for the others, in all
  double longest_wait_seconds = 0;
  bool simulated = false;
};

/// The store was read for a region, or written.
struct StoreEvent {
  std::string region;
  std::string_view action;        ///< "found" or "saved"
  std::size_t sites = 0;          ///< that there are in the entry, or were written
  std::size_t same_software = 0;  ///< those among them that were tuned under what is here now
  std::optional<StoredConfirm> confirm{};  ///< of a region that was found
  bool simulated = false;
};

/// A step of the search for how launches reach the driver has begun.
struct SearchStepEvent {
  std::string_view stage;  ///< "screen", "compare", "finished"
  double seconds = 0;      ///< since the first launch
  std::size_t ways = 0;    ///< screen: how many are
  std::string launches;    ///< compare: "chained gathered=16"
  std::string against;     ///< compare: "as written"
  std::size_t pairs = 0;   ///< compare: that it takes until it is judged next
  bool simulated = false;
};

/// How launches reached the driver.
struct SubmissionEvent {
  std::string launches;  ///< at the end: "chained gathered=16"
  /// "settled", "open", "pinned", in "turns", "nothing" repeats, most are those of "nccl", or
  /// another way was "fatal" to an earlier run
  std::string state;
  int run = 0;                ///< that searches, counted from 1; 0: none does
  int most_runs = 0;          ///< that search
  std::uint64_t chained = 0;  ///< launches in the stream
  std::uint64_t held = 0;     ///< launches that were held back
  std::uint64_t batches = 0;  ///< of those that were handed over
  std::uint64_t late = 0;     ///< of them after the deadline
  std::uint64_t graph_launches = 0;
  std::uint64_t in_graphs = 0;               ///< launches
  std::uint64_t graphs = 0;                  ///< that were built
  std::uint64_t chained_graphs = 0;          ///< of the program's, instantiated once more
  std::uint64_t chained_graph_launches = 0;  ///< of those
  std::uint64_t chained_edges = 0;           ///< in them
  std::uint64_t images = 0;                  ///< that were given waits
  std::uint64_t kernels = 0;                 ///< in them
  std::uint64_t images_left = 0;
  std::uint64_t images_unneeded = 0;  ///< an earlier run launched nothing of them
  std::uint64_t kept_bytes = 0;       ///< of host memory
  double load_seconds = 0;            ///< spent at loads
  std::uint64_t graph_bytes = 0;      ///< of device memory, taken by graphs of ours
  std::string ordinary;               ///< kernels that are not chained, since it is faster so
  std::string screened;  ///< ways and the times that blocks took, as shares of as written
  std::string why;       ///< it is settled so: a clause
  bool simulated = false;
};

/// Counts by the names of their fields, as a line has them one after another.
inline constexpr std::array<std::pair<std::string_view, std::uint64_t SubmissionEvent::*>, 15>
    submission_counts{{{"chained", &SubmissionEvent::chained},
                       {"held", &SubmissionEvent::held},
                       {"batches", &SubmissionEvent::batches},
                       {"late", &SubmissionEvent::late},
                       {"graph_launches", &SubmissionEvent::graph_launches},
                       {"in_graphs", &SubmissionEvent::in_graphs},
                       {"graphs", &SubmissionEvent::graphs},
                       {"chained_graphs", &SubmissionEvent::chained_graphs},
                       {"chained_graph_launches", &SubmissionEvent::chained_graph_launches},
                       {"chained_edges", &SubmissionEvent::chained_edges},
                       {"images", &SubmissionEvent::images},
                       {"kernels", &SubmissionEvent::kernels},
                       {"images_left", &SubmissionEvent::images_left},
                       {"images_unneeded", &SubmissionEvent::images_unneeded},
                       {"kept_bytes", &SubmissionEvent::kept_bytes}}};

void write_start(RankLog& log, const StartEvent& event) noexcept;
/// A region's first entry.
void write_region(RankLog& log, std::string_view region, std::int64_t thread) noexcept;
/// A region that was found because it repeats, in words.
void write_found_region(RankLog& log, std::string_view region, std::string_view text) noexcept;
/// Work that was seen to repeat, in words; for --discover.
void write_period(RankLog& log, std::string_view region, std::string_view text,
                  bool simulated) noexcept;
/// NVTX ranges that were seen, and are no regions: as `--region nvtx:` takes them.
void write_ranges(RankLog& log, std::string_view region, std::string_view names) noexcept;
void write_submission(RankLog& log, std::string_view region, const SubmissionEvent& event) noexcept;
/// A `stage` line, as a region has them whose kernels are tuned.
void write_search_step(RankLog& log, std::string_view region,
                       const SearchStepEvent& event) noexcept;
/// How long a block of entries took whose launches went out in one way; for level debug.
void write_block(RankLog& log, std::string_view region, std::uint64_t block,
                 std::string_view submission, double seconds, std::uint64_t entries) noexcept;
/// The ranks that tune it, where those are not all of the job. `text` is a sentence: why these.
void write_ranks_of_region(RankLog& log, std::string_view region, std::string_view ranks,
                           std::string_view text) noexcept;
/// `region` and `site` may be empty. `text` is a sentence; empty: that of the reason.
void write_fallback(RankLog& log, FallbackReason reason, std::string_view region,
                    std::string_view site, std::string_view text) noexcept;
/// Something that was given cannot be used: file and line, and what was done instead.
void write_fault(RankLog& log, std::string_view text) noexcept;
void write_kernel(RankLog& log, const KernelEvent& event) noexcept;
void write_replay(RankLog& log, const ReplayEvent& event) noexcept;
void write_store(RankLog& log, const StoreEvent& event) noexcept;
/// `region` may be empty.
void write_sync(RankLog& log, std::string_view region, const SyncEvent& event) noexcept;
void write_summary(RankLog& log, const SummaryEvent& event) noexcept;
/// Last line of a process; waits until all are written.
void write_exit(RankLog& log, std::uint64_t launches_outside, bool simulated) noexcept;

/// "256" for {256, 1, 1}, "16x16" for {16, 16, 1}.
[[nodiscard]] std::string extent_text(const std::array<std::uint32_t, 3>& extent);

}  // namespace contextune::log
