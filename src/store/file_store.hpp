#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/trials/store.hpp"
#include "core/value/fallback_reason.hpp"

namespace contextune::store {

/// How problems are said: StoreUnreadable or StoreUnwritable, and a sentence that names file and
/// place. Called from inside load and save, in their thread; what it throws is lost.
using Say = std::function<void(FallbackReason reason, const std::string& sentence)>;

/// The winners on disk: one JSON file for each region, function or choice on each kind of hardware.
/// FORMAT.md beside this says what is in it. Made to live in a process that knows nothing of it:
/// nothing is thrown, printed or signalled, `errno` stays as it was, and no wait is longer than
/// `wait_seconds`. Nothing is created before the first save. Any thread; several processes and
/// hosts.
class FileStore final : public Store {
 public:
  struct Settings {
    double wait_seconds = 5;  ///< for a file that another process is writing
    /// Seconds since 1970, as `tuned_at` has them; the system's clock if there is none.
    std::function<std::int64_t()> now;
  };

  /// @param folder as cache_folder() finds it; a relative one counts from where the process is now.
  ///        Empty: there is none, which is said when something is to be saved.
  FileStore(const std::string& folder, Say say, Settings settings);
  FileStore(const std::string& folder, Say say) : FileStore(folder, std::move(say), Settings{}) {}

  [[nodiscard]] StoredEntry load(const StoreIdentity& identity) override;
  bool save(const StoreIdentity& identity, const std::vector<StoredSite>& sites,
            const std::optional<StoredConfirm>& confirm) override;

 private:
  [[nodiscard]] StoredEntry load_now(const StoreIdentity& identity);
  void say(FallbackReason reason, const std::string& sentence) noexcept;

  std::string folder_;  ///< absolute; empty: there is none
  Say say_;
  Settings settings_;
  std::mutex mutex_;
  std::set<std::pair<FallbackReason, std::string>> said_;  ///< each is said once
};

/// "2026-11-20T20:33:53Z".
[[nodiscard]] std::string timestamp(std::int64_t seconds_since_1970);

}  // namespace contextune::store
