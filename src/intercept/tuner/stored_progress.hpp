#pragma once

#include <atomic>
#include <cstdint>

#include "intercept/site/process_store.hpp"
#include "intercept/tuner/search_results.hpp"

namespace contextune::intercept {

/// The findings of one search, as they are written while its program runs on: so often that it
/// costs little, and waited for where the program may end before. Under the search's lock, but for
/// what waits.
class StoredProgress {
 public:
  StoredProgress(SearchResults& results, ProcessStore& store) : results_(results), store_(store) {}

  /// A pass of that stage begins.
  /// @return whether the findings of the one before are to be kept at once: it is over
  [[nodiscard]] bool enters(Stage stage) noexcept;
  /// Has what was measured so far stored, from time to time or at once.
  void keep(double now, bool at_once);
  /// Has the winners stored.
  void save() {
    if (results_.save()) saving_ = true;
  }
  /// Has noted what the store does not know of the sites that were shown.
  /// @return false: there is nothing
  [[nodiscard]] bool note_unfinished() {
    const bool any = results_.note_unfinished();
    if (any) saving_ = true;
    return any;
  }
  void note_failed(SiteIndex site, std::uint32_t config, TrialStatus why) {
    if (results_.note_failed(site, config, why)) was_noted();
  }
  /// Something was noted in the store for the next run.
  void was_noted() noexcept { notes_.store(true, std::memory_order_relaxed); }

  /// Waits for what was saved, while the program stands still anyway.
  void await_saved();
  /// Waits for what was noted, shortly. Cheap where nothing was.
  void await_notes();
  /// Waits for all, shortly.
  void await_all();

 private:
  SearchResults& results_;
  ProcessStore& store_;
  Stage stage_ = Stage::Table;  ///< of the pass before
  double next_ = 0;             ///< when what was measured is stored next; 0: nothing was begun
  std::atomic<bool> saving_{false};  ///< winners are being written
  std::atomic<bool> notes_{false};   ///< of what was found out are being written
};

}  // namespace contextune::intercept
