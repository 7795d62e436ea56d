#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/marks/region_mark.hpp"
#include "intercept/marks/seen_ranges.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/site/region_services.hpp"

namespace contextune::intercept {

/// The regions of this process, by name and by what marks them. They are made where they are first
/// entered, and never destroyed. Any thread.
class ProcessRegions {
 public:
  enum class Kind { Marked, Process, FoundCollectives };

  /// @param services and `options` outlive it
  ProcessRegions(const Options& options, const RegionServices& services)
      : options_(options), services_(services) {}

  /// Reads what the option `region` says, before anything is launched; what is wrong in it goes to
  /// the log.
  void read_marks();
  [[nodiscard]] const std::vector<RegionMark>& marks() const noexcept { return marks_; }
  [[nodiscard]] bool has_mark(RegionMark::Kind kind) const noexcept;
  /// Whether something else than the whole process is marked.
  [[nodiscard]] bool has_marked_stretch() const noexcept;

  /// Null: there is none yet.
  [[nodiscard]] LaunchRegion* find(std::string_view name);
  /// @throws TooManyRegions if there are more than can be kept apart
  [[nodiscard]] LaunchRegion& find_or_make(const std::string& name, const Options& options,
                                           Kind kind, const StoredAs& as = {});
  /// @param mark one of marks()
  /// @return null: it cannot be made, as the log says then
  [[nodiscard]] LaunchRegion* of_mark(const RegionMark& mark) noexcept;
  /// The region of the graph's launches alone. Null: it has none, as the log says then.
  [[nodiscard]] LaunchRegion* of_graph(CUgraphExec graph) noexcept;
  [[nodiscard]] std::vector<LaunchRegion*> all() noexcept;

  /// From now on the mark's region has all that is in no other one.
  void begin_process(const RegionMark& mark);
  [[nodiscard]] bool has_process() const noexcept { return has_process_; }

  /// As Runtime has it.
  void work_was_waited_for() noexcept;

  // Called by the hooks of NVTX and of the profiler: entries of regions that are marked so.
  void range(contextune_range_kind kind, const char* domain, const char* name,
             std::uint64_t id) noexcept;
  void profiler(bool on) noexcept;
  /// NVTX ranges that are no regions; empty: there were none.
  /// @throws std::bad_alloc
  [[nodiscard]] std::string other_ranges() const { return seen_ranges_.text(); }

  /// The program ends: says which marked regions were never entered, and why as far as is known.
  void report_never_entered() noexcept;

 private:
  void push(const char* domain, const char* name) noexcept;
  /// Ranges of the whole process: their start and end.
  void process_range(contextune_range_kind kind, const char* domain, const char* name,
                     std::uint64_t id) noexcept;
  [[nodiscard]] bool was_entered(const RegionMark& mark) noexcept;
  [[nodiscard]] std::string why_not(const RegionMark& mark) const noexcept;

  const Options& options_;
  const RegionServices& services_;
  std::vector<RegionMark> marks_;
  std::vector<std::atomic<LaunchRegion*>> of_marks_;  ///< null: not made yet
  std::atomic<bool> has_process_{false};
  SeenRanges seen_ranges_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LaunchRegion>, std::less<>> by_name_;
  std::map<std::uint64_t, LaunchRegion*> by_range_;  ///< of the whole process
};

}  // namespace contextune::intercept
