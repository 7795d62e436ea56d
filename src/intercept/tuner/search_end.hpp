#pragma once

#include <atomic>
#include <cstddef>

namespace contextune::intercept {

/// Whether one search is over. A search that has finished goes on where sites come later, unless it
/// was stopped. Under the search's lock, but for is_finished() and has_run_winners().
class SearchEnd {
 public:
  [[nodiscard]] bool is_finished() const noexcept {
    return finished_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool is_stopped() const noexcept { return stopped_; }
  /// Nothing is to be done, unless there are others than that many sites.
  [[nodiscard]] bool is_for(std::size_t num_sites) const noexcept {
    return stopped_ ||
           (finished_.load(std::memory_order_relaxed) && num_sites == sites_when_finished_);
  }

  /// Its tuning has changed.
  /// @return whether it is at its end; finish() may be due
  [[nodiscard]] bool has_come(bool tuning_is_finished, std::size_t num_sites) noexcept;
  void finish() noexcept { finished_.store(true, std::memory_order_release); }
  /// For good.
  void stop() noexcept { stopped_ = true; }

  /// A site has come.
  void go_on() noexcept { finished_.store(false, std::memory_order_release); }
  /// Something has come that is to be looked at, though there are no more sites.
  void reopen() noexcept {
    sites_when_finished_ = 0;
    go_on();
  }

  /// The entry that ended last ran nothing but winners, and there is nothing more to find out.
  [[nodiscard]] bool has_run_winners() const noexcept {
    return has_run_winners_.load(std::memory_order_relaxed);
  }
  void note_run(bool nothing_but_winners) noexcept {
    has_run_winners_.store(nothing_but_winners, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> finished_{false};
  bool stopped_ = false;
  std::size_t sites_when_finished_ = 0;
  bool ever_finished_ = false;
  int idle_entries_ = 0;  ///< with nothing to do, while sites may still come
  std::atomic<bool> has_run_winners_{false};
};

}  // namespace contextune::intercept
