#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "core/value/fallback_reason.hpp"
#include "log/rank_log.hpp"

namespace contextune::intercept {

/// The rank log as the runtime uses it. Each fallback is written once per (reason, region, site,
/// text), each fault once per text, and one reason 1024 times at most. Everybody can ask here
/// whether the device is a simulated one. Any thread; nothing throws.
class EventLog {
 public:
  explicit EventLog(const log::RankLog::Settings& settings) : log_(settings) {}

  [[nodiscard]] log::RankLog& lines() noexcept { return log_; }

  /// From now on lines that carry results say `simulated=yes`.
  void set_simulated() noexcept { simulated_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool simulated() const noexcept {
    return simulated_.load(std::memory_order_relaxed);
  }

  /// Something is not tuned. `region` and `site` may be empty; so may `text`, which then is the
  /// sentence of the vocabulary. Said once, and of one reason 1024 times at most.
  void fallback(FallbackReason reason, std::string_view region, std::string_view site,
                std::string_view text) noexcept;

  /// Bad input: what, where, what was done instead. Said once.
  void fault(std::string_view text) noexcept;

 private:
  enum class Said { First, Before, Last };
  /// Under mutex_. Last: there is no room for another line. Before: that line was, or the last.
  [[nodiscard]] static Said note(std::set<std::string>& said, std::string line);

  log::RankLog log_;
  std::atomic<bool> simulated_{false};
  std::mutex mutex_;
  std::map<FallbackReason, std::set<std::string>> fallbacks_;
  std::set<std::string> faults_;
};

}  // namespace contextune::intercept
