#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/search/region_tuning.hpp"
#include "core/search/schedule.hpp"

namespace contextune {

/// A step of a site's schedule, as planned for one pass.
struct PlannedTrial {
  SiteIndex site = 0;
  Step step;
  std::uint32_t runs = 0;
  bool failed = false;
};

/// A config that is to be tried alone.
struct SuspectConfig {
  SiteIndex site = 0;
  std::uint32_t config = 0;
  std::uint64_t passes = 0;  ///< in which its site was not launched
};

/// A counted pass whose result has not come.
struct PendingPass {
  PassId id{};
  std::uint64_t number = 0;  ///< among the counted ones
  Stage stage = Stage::Table;
  Measure measure = Measure::Nothing;
  bool ended = false;
  std::vector<PlannedTrial> trials;
  std::vector<std::uint32_t> configs;  ///< as run, by site
  std::vector<SiteIndex> launched;
  std::uint64_t situation = 0;
  std::optional<SuspectConfig> suspect;  ///< all that is tried in it
  std::size_t slot = 0;                  ///< in the experiment
  std::uint64_t experiment = 0;
};

/// The entry of a region that is going on, the counted passes whose results have not come, and how
/// long they have been waited for.
class PendingPasses {
 public:
  /// An entry begins; unless it is opened as a pass, it is none.
  void enter() { entered_ = true; }
  [[nodiscard]] bool entered() const { return entered_; }
  void open(PendingPass pass);
  /// The counted pass that is going on; null: there is none.
  [[nodiscard]] PendingPass* open_pass();
  /// Whether the entry that is going on may end under that name: another counted pass may not.
  [[nodiscard]] bool may_end(PassId id) const { return !open_ || *open_ == id; }
  /// The entry ends, and with it its pass.
  /// @return that; null: it was none
  PendingPass* end_entry();

  [[nodiscard]] const std::map<PassId, PendingPass>& all() const { return passes_; }
  [[nodiscard]] bool contains(PassId id) const { return passes_.contains(id); }
  [[nodiscard]] bool has_ended(PassId id) const;
  /// It is pending no longer. It must have been.
  PendingPass take(PassId id);
  /// Nothing is known of any of them, and they are not waited for.
  void clear() { passes_.clear(); }

  /// An entry waits for results.
  void wait(double now);
  /// @return the entries that have waited since
  std::uint64_t stop_waiting();
  [[nodiscard]] bool has_waited(std::uint64_t entries, double seconds, double now) const;

 private:
  std::map<PassId, PendingPass> passes_;
  std::optional<PassId> open_;
  bool entered_ = false;
  std::uint64_t waited_ = 0;  ///< entries
  double waiting_since_ = 0;
};

}  // namespace contextune
