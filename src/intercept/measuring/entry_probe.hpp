#pragma once

#include <optional>

#include "core/search/region_tuning.hpp"
#include "intercept/measuring/pass_record.hpp"

namespace contextune::intercept {

/// An entry that is watched only to know when its work has ended, and which winners ran in it. Not
/// thread-safe: a part of one search.
class EntryProbe {
 public:
  using Trials = PassRecord::Trials;

  /// @param winners those in use that are not survived yet; outlives the probe
  explicit EntryProbe(const Trials& winners) noexcept : winners_(winners) {}

  /// @param is_all the tuning knows nothing of that entry
  /// @param expects the first entry is expected to have winners
  /// @return false: there is nothing to find out, or another one's work has not ended
  [[nodiscard]] bool begin(PassId pass, bool is_all, bool expects);
  /// Its entry is under way.
  [[nodiscard]] bool is_open() const noexcept { return probe_ && probe_->open; }
  /// Its entry is over, and its work is awaited.
  [[nodiscard]] bool is_awaited() const noexcept { return probe_ && !probe_->open; }
  /// Its entry has not ended, and will not.
  void drop() {
    if (is_open()) probe_.reset();
  }
  /// An entry has ended.
  /// @param has_span its work is timed
  /// @return whether the entry was nothing but the probe
  [[nodiscard]] bool end(bool has_span);
  /// A span's time has come; NaN: it is not known.
  /// @param survived gets what ran in it
  /// @return false: it is another one's
  [[nodiscard]] bool close(PassId pass, double seconds, Trials& survived);

 private:
  struct Probe {
    PassId pass{};
    bool is_all = false;
    bool open = true;
    Trials used;
  };

  const Trials& winners_;
  std::optional<Probe> probe_;
  bool has_probed_ = false;
};

}  // namespace contextune::intercept
