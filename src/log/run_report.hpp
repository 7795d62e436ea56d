#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "log/events.hpp"
#include "log/record.hpp"

/// The content of rank logs, put together again. Plain values; times are seconds, those of the
/// clock since 1970; NaN where the log has none.
namespace contextune::log {

inline constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

struct TrialReport {
  std::uint64_t pass = 0;
  std::uint32_t config = 0;
  int iteration = 0;  ///< below 0: a warm-up, which does not count
  std::uint64_t launches = 0;
  double seconds = not_known;
  double region_seconds = not_known;  ///< of the whole pass
  double sm_clock_hz = not_known;
  double at = not_known;  ///< when the pass began, else when its line was written
  std::string timer;
  std::string status;      ///< empty, "failed", "missing", "throttled", "cutoff" or "wrong_result"
  bool agreed = false;     ///< all ranks made the pass: those are numbered apart from the others
  bool has_begin = false;  ///< `at` is when the pass began; older logs do not say it
};

/// Passes in a row in which a site was launched with the same.
struct PassesReport {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint32_t> config;  ///< absent: not one throughout
  bool agreed = false;                  ///< as of trials
};

struct WinnerReport {
  std::uint32_t config = 0;
  double seconds = not_known;
  double default_seconds = not_known;
  std::string reason;
  double at = not_known;
};

struct SiteReport {
  std::string name;
  std::string key;
  std::uint64_t num_configs = 0;
  std::uint64_t table_passes = 0;  ///< that its table takes at most; 0: none, or an older log
  std::string grid;
  std::string block;
  std::string provider;
  std::string default_choice;  ///< what the default of a collective was: "Ring Simple"
  std::map<std::uint32_t, std::string> configs;  ///< number -> "block=256 per_sm=4"
  std::vector<TrialReport> trials;
  std::vector<PassesReport> passes;  ///< of the table; an older log has none
  std::optional<WinnerReport> winner;
};

/// A winner that was left out of those that were shown together.
struct LeftOutReport {
  std::string site;
  std::string key;
  std::string verdict;                ///< kept, or dropped
  double before_seconds = not_known;  ///< the region without this winner
  double after_seconds = not_known;   ///< with all of them
  double gain = not_known;            ///< share of the time before
  double bound = not_known;           ///< its lower bound at 95 %
  std::uint64_t pairs = 0;
};

struct ConfirmReport {
  std::string verdict;
  std::string site;  ///< that was compared alone; empty: the region was
  double before_seconds = not_known;
  double after_seconds = not_known;
  double gain = not_known;   ///< share of the defaults' time
  double bound = not_known;  ///< its lower bound at 95 %
  std::uint64_t pairs = 0;
  std::uint64_t tries = 0;
  std::vector<double> gains{};  ///< of the pairs, as they ran; an older log has none
  double at = not_known;
};

/// A stage of a tuning begins.
struct StageReport {
  std::string stage;
  std::string site;  ///< whose tuning it is; empty: the region's
  std::uint64_t generation = 0;
  std::string time;            ///< of its line
  double seconds = not_known;  ///< since the tuning's first stage
  double at = not_known;
};

struct KernelReport {
  std::string name;
  std::string key;
  std::uint64_t launches = 0;
  double seconds = 0;  ///< sum over its launches
  std::string grid;
  std::string block;
  std::uint64_t shared_bytes = 0;
  std::uint64_t registers = 0;
  std::string params;
  std::string timer;
};

/// A visit that was recorded and repeated.
struct ReplayReport {
  std::uint64_t visit = 0;       ///< counted from 1
  std::uint64_t operations = 0;  ///< of one replay
  std::uint64_t replays = 0;     ///< of the region until then
  double seconds = not_known;    ///< that the program stood still
  std::uint64_t footprint_bytes = 0;
  std::uint64_t dirty_bytes = 0;  ///< put back before each replay
  std::uint64_t device_bytes = 0;
  std::uint64_t host_bytes = 0;
  double save_seconds = not_known;
  double restore_seconds = not_known;
  double hash_seconds = not_known;
  std::string timed_after;          ///< "itself", "restore", or "" where it is not said
  std::string why_restored;         ///< a clause
  double wait_seconds = not_known;  ///< for other ranks, of the region until then; NaN: none
  double longest_wait_seconds = not_known;
  double at = not_known;  ///< of its end
};

/// Entries in a row whose launches went out in one way; only a log of level debug has them.
struct BlockReport {
  std::uint64_t number = 0;
  std::string launches;  ///< "chained gathered=16"
  double seconds = not_known;
  std::uint64_t entries = 0;
  double at = not_known;  ///< when its line was written
};

struct RegionReport {
  std::string name;
  std::string found;  ///< because it repeats, in words; empty: it was marked
  std::optional<SubmissionEvent> submission;  ///< of a region that was found
  std::vector<BlockReport> blocks;            ///< the same
  std::vector<SiteReport> sites;
  std::vector<ReplayReport> replays;            ///< more than one where new sites came later
  std::vector<ConfirmReport> confirms;          ///< one a generation
  std::optional<ConfirmReport> stored_confirm;  ///< of the run that found what this one starts with
  std::vector<LeftOutReport> left_out;
  std::vector<KernelReport> kernels;  ///< from --discover
  std::vector<std::string> periods;   ///< the same: what repeats, in words
  std::string ranges;                 ///< the same: NVTX ranges that are no regions
  std::vector<StageReport> stages;    ///< as they began; one may be told of twice in a row
  std::string stage;                  ///< the last one that was reported
  std::uint64_t screened_ways = 0;    ///< of a region that was found, in that stage: 0 if none are
  std::string compared;               ///< the same: a way of launching; empty: none is
  std::uint64_t compared_pairs = 0;   ///< that this takes until it is judged next
  bool is_in_table = false;           ///< then not all that sites ran is written yet
  std::uint64_t passes = 0;
  std::uint64_t entries = 0;  ///< 0: the log does not say
  double tuning_seconds = not_known;
};

struct FallbackReport {
  std::string reason;
  std::string region;
  std::string site;
  std::string text;
  std::uint64_t count = 1;  ///< of this text
  double at = not_known;    ///< the first of them
};

/// A question that ranks decided together, or did not.
struct SyncReport {
  std::string region;  ///< empty: it was of none
  std::string group;
  std::uint64_t group_rank = 0;
  std::uint64_t question = 0;
  std::string hash;  ///< of the decision; empty: there was none
  double wait_seconds = not_known;
  std::string verdict;          ///< "committed", "aborted", "unknown" or "open"
  std::string text;             ///< why it was not committed
  double asked_at = not_known;  ///< when this rank began to wait
};

/// A process, as `run`, `pid` and `rank` tell it apart.
struct ProcessReport {
  std::string run;
  std::int64_t pid = 0;
  int rank = 0;
  std::string first_time;
  std::string last_time;
  std::string version;
  std::string program;
  std::string host;  ///< empty: an older log
  std::string gpu;
  std::string compute_capability;
  std::uint64_t num_sms = 0;
  std::string driver;
  std::string mode;
  std::string asked_regions;
  std::string timer;
  bool simulated = false;
  bool started = false;  ///< its `start` line was seen
  std::string command;   ///< how the program was started, for a shell; an older log has none
  std::string options;   ///< that were given as variables: "n-repeat=2 region=auto"
  std::uint64_t world_size = 1;  ///< ranks of the job, as the launcher said; 1: nobody said more
  std::optional<std::uint64_t> launches_outside;
  std::vector<RegionReport> regions;
  std::vector<SyncReport> syncs;
  std::vector<FallbackReport> fallbacks;
  std::vector<std::string> faults;
  std::vector<double> fault_times;  ///< of each of them
};

/// Puts processes together from their lines, in whatever order the files come. Not thread-safe.
class ReportBuilder {
 public:
  /// Takes one line. Returns the empty string, or why the line cannot be used.
  [[nodiscard]] std::string add(const Record& record);

  /// In the order of their first lines.
  [[nodiscard]] const std::vector<ProcessReport>& processes() const { return processes_; }
  /// The same; no line can be added afterwards.
  [[nodiscard]] std::vector<ProcessReport> take_processes() { return std::move(processes_); }

 private:
  /// Where things stand in the lists of one process, by what tells them apart.
  using Places = std::unordered_map<std::string, std::size_t>;
  struct Index {
    Places regions;
    Places sites;
    Places kernels;
    Places fallbacks;
  };

  std::size_t place_of(const Record& record);
  ProcessReport& process_of(const Record& record);
  RegionReport& region_of(const Record& record);
  SiteReport& site_of(const Record& record);

  std::string add_site(const Record& record);
  std::string add_trial(const Record& record);
  std::string add_passes(const Record& record);
  std::string add_winner(const Record& record);
  std::string add_confirm(const Record& record);
  std::string add_store(const Record& record);
  std::string add_fallback(const Record& record);
  std::string add_fault(const Record& record);
  std::string add_kernel(const Record& record);
  std::string add_period(const Record& record);
  std::string add_ranges(const Record& record);
  std::string add_replay(const Record& record);
  std::string add_sync(const Record& record);
  std::string add_submission(const Record& record);
  std::string add_block(const Record& record);
  std::string add_summary(const Record& record);
  std::string add_start(const Record& record);
  std::string add_rank(const Record& record);
  std::string add_region(const Record& record);
  std::string add_stage(const Record& record);

  std::vector<ProcessReport> processes_;
  std::vector<Index> indexes_;  ///< one a process
  Places process_places_;
};

}  // namespace contextune::log
