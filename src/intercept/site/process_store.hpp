#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <contextune/options.hpp>

#include "core/trials/store.hpp"
#include "core/trials/stored_winner.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/site/site_code.hpp"
#include "store/trial_journal.hpp"

namespace contextune::intercept {

/// The store as this process uses it: an entry is read once, when its region is first entered, and
/// written behind the scenes. Any thread; nothing throws but std::bad_alloc. Lives as long as the
/// process.
class ProcessStore {
 public:
  /// A region's entry as it was read.
  struct Entry {
    StoreIdentity identity;
    std::uint64_t environment = 0;  ///< names what it was read for
    std::vector<StoredSite> sites;
    std::optional<StoredConfirm> confirm;  ///< as StoredEntry has it
    bool keeps_devices_apart = false;      ///< they are not all the same
  };

  using MaySave = std::function<bool(std::span<const std::uint32_t> ranks)>;

  /// @param store       null: nothing is stored
  /// @param folder      where it is; empty: nowhere
  /// @param environment where this process is; asked when an entry is opened
  /// @param may_save    whether it is for this process to write what these ranks have, and not for
  ///                    another one on its host; none: what all have
  ProcessStore(std::unique_ptr<Store> store, const std::string& folder, const Options& options,
               EventLog& log, std::function<TuningEnvironment()> environment, MaySave may_save);

  /// Reads ahead what is stored of these regions, before the program enters them.
  void prepare(const std::vector<std::string>& regions);

  /// The entry of that region, as far as it is about it; without sites if nothing is stored, or
  /// nothing is to be used.
  [[nodiscard]] const Entry& entry_of(const std::string& region, const StoredAs& as = {});

  /// The stored facts of a site, as far as they are to be used.
  /// @param key without what only one rank has to do with
  [[nodiscard]] static const StoredSite* find(const Entry& entry, const std::string& name,
                                              const Key& key);

  /// Whether sites that are not stored are tuned.
  [[nodiscard]] bool tunes() const noexcept { return use_ != StoreUse::Stored; }

  /// A site as it is to be stored, but for the hash of its instructions.
  struct Saved {
    StoredSite site;
    SiteCode code;
    std::vector<std::uint32_t> ranks{};  ///< that have it, as WinnerEvent has them
    bool says_code_only = false;         ///< a note; where the code cannot be read, there is none
  };
  /// Writes behind the scenes, and reads instructions there.
  void save(const StoreIdentity& identity, std::vector<Saved> sites,
            std::optional<StoredConfirm> confirm);

  /// The journal of what is being tried, for the next run to know if it takes this process down.
  [[nodiscard]] store::TrialJournal& journal() noexcept { return journal_; }

  /// A search has winners on probation from now on, or none any more.
  void probation_begins() noexcept { change_probation(true); }
  void probation_ends() noexcept { change_probation(false); }
  /// Called at each of both; set before any. Nothing may throw.
  void set_on_probation(std::function<void(bool begins)> call) { call_ = std::move(call); }
  [[nodiscard]] bool any_on_probation() const noexcept {
    return on_probation_.load(std::memory_order_relaxed) != 0;
  }

  /// For which a program that stands still anyway waits for what it found: a few milliseconds, but
  /// for a disk that is busy.
  static constexpr double most_saving_seconds = 1;
  /// Waits until all of that has been written, at most so many seconds.
  void wait(double seconds);
  /// The process ends: waits as wait(), then says what of it has not been written.
  void finish(double seconds) noexcept;

 private:
  struct Job {
    StoreIdentity identity;
    std::vector<Saved> sites;
    std::optional<StoredConfirm> confirm;
  };

  void change_probation(bool begins) noexcept {
    on_probation_.fetch_add(begins ? 1 : -1, std::memory_order_relaxed);
    if (call_) call_(begins);
  }
  [[nodiscard]] std::unique_ptr<Entry> read(const std::string& region, const StoredAs& as,
                                            const TuningEnvironment& here);
  void start_thread();
  void work() noexcept;
  void write(const Job& job) noexcept;

  const std::unique_ptr<Store> store_;
  const StoreUse use_;
  const bool always_tune_;
  const bool version_check_;
  EventLog& log_;
  const std::function<TuningEnvironment()> find_environment_;
  const MaySave may_save_;
  store::TrialJournal journal_;
  std::atomic<int> on_probation_{0};  ///< searches
  std::function<void(bool)> call_;    ///< by change_probation
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::map<std::string, std::unique_ptr<Entry>> prepared_;
  std::vector<Job> jobs_;
  std::string writing_;  ///< the name of what has been taken from them
  bool running_ = false;
};

}  // namespace contextune::intercept
