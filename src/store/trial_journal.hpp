#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "store/mapped_file.hpp"
#include "store/process_identity.hpp"

namespace contextune::store {

class Folder;

/// Names one config of one site, the same in every run.
struct TriedConfig {
  std::uint64_t site = 0;    ///< hash of region, name and key
  std::uint64_t config = 0;  ///< hash of its values
  auto operator<=>(const TriedConfig&) const = default;
};

/// All of it as text.
[[nodiscard]] TriedConfig tried_config(const std::string& region, const std::string& site,
                                       const std::string& key, const std::string& config);

/// Keeps what is being tried where it outlives this process: a config that takes the process down
/// is found in the next run. So is a winner of an earlier run, until this process has survived it.
/// A folder "journal" in that of the store holds
///
/// | file | what it is |
/// |---|---|
/// | `<pid>-<start>-<boot>.trying` | what one process is trying now; locked as long as it lives |
/// | `known` | suspects and those that are blamed, of processes that have ended |
///
/// All are text, a line each: `<site> <config> <what is known> <text>`; the first kind may have
/// zeros after its end.
///
/// A process that ends by exit() takes its file away. Configs that were in flight at any other end
/// are suspects. A config that was alone in flight is blamed at once where it is known that the
/// process crashed, its CUDA context broke or the config did not end. Else it is blamed at the
/// third end at which it was alone in flight. A suspect that was tried and survived is one no
/// longer.
///
/// Nothing throws but std::bad_alloc, and `errno` stays as it was. Any thread.
class TrialJournal {
 public:
  /// How much is known of a config that was in flight when a process ended.
  enum class Suspicion { None, Suspect, Blamed };

  /// @param folder that of the store; "journal" in it is made with the first trial. Empty: there is
  ///               none, and nothing is kept.
  /// @param say    gets a sentence when something cannot be read or written, once
  TrialJournal(const std::string& folder, std::function<void(const std::string&)> say);
  TrialJournal(const TrialJournal&) = delete;
  TrialJournal& operator=(const TrialJournal&) = delete;
  ~TrialJournal();

  /// The suspicion from processes before this one; looked up when it is asked for first.
  [[nodiscard]] Suspicion suspicion(const TriedConfig& config);

  /// `text` is for people: site and config.
  struct Trial {
    TriedConfig config;
    std::string text;
    bool operator==(const Trial&) const = default;
  };
  [[nodiscard]] static Trial trial_of(const std::string& region, const std::string& site,
                                      const std::string& key, const std::string& config);
  /// All that `owner` has in flight from now on. Trials that it had before have been survived.
  void set(const void* owner, std::vector<Trial> trials);

  /// The same of one more; costs one small write, however many there are.
  void add(const void* owner, Trial trial);

  /// Does now what the first add() or set() would have to do before it can write.
  void prepare();

  /// The GPU does not get through with what is in flight. That is known to later processes from now
  /// on, however this one ends: what is alone in flight is blamed, of several each is a suspect.
  /// A config that is survived after all is neither. @return what they will do, in a sentence
  std::string hung();

  /// A suspect is not tried again, as if it were known to have taken a process down.
  void blame(const TriedConfig& config);

  /// The CUDA context is in error: whatever is in flight may have done that.
  void broke();

  /// The process ends as its program wants it. Configs that were in flight when its context broke
  /// stay.
  void close();

 private:
  void learn();
  void write();
  [[nodiscard]] bool append(const Trial& trial);
  void remove_own();
  void open_own();
  void forget(const std::vector<TriedConfig>& survivors);
  void make_known(const std::map<TriedConfig, std::string>& all, Suspicion suspicion);
  [[nodiscard]] bool is_in_flight(const TriedConfig& config) const;
  void say(const std::string& sentence) noexcept;

  const std::string path_;
  const std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  bool learnt_ = false;
  bool failed_ = false;
  bool said_ = false;
  bool broken_ = false;
  std::map<TriedConfig, Suspicion> known_;
  std::set<TriedConfig> hung_;
  std::map<const void*, std::vector<Trial>> in_flight_;
  std::unique_ptr<MappedFile> own_;
  ProcessIdentity self_;  ///< once there is a file
  std::string own_name_;
  std::size_t own_bytes_ = 0;  ///< that were written last
};

/// How a process ended, as its parent saw it.
enum class ProcessEnd {
  Nobodys,  ///< by itself, or by a signal that somebody sent (or the kernel, for want of memory)
  Crash     ///< by a signal that a fault raises, or abort() does
};

/// Keeps how a process ended, as its parent knows it: without that, what was in flight only may
/// have ended it. `folder` is that of the store.
/// @return what was in flight, and what the next run makes of it, in sentences; empty: nothing was
std::string judge_end(const std::string& folder, std::int64_t pid, ProcessEnd end) noexcept;

/// Texts of all configs that are blamed. @throws Error
[[nodiscard]] std::vector<std::string> blamed_configs(const std::string& folder);

/// They may be tried again. @return how many there were. @throws Error
std::size_t forget_blamed(const std::string& folder);

}  // namespace contextune::store
