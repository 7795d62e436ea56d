#include "store/trial_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <contextune/error.hpp>

#include "core/value/stable_hash.hpp"
#include "environment/root_folder.hpp"
#include "host/host_state.hpp"
#include "store/entry_lock.hpp"
#include "store/folder.hpp"
#include "store/journal_file.hpp"

namespace contextune::store {
namespace {

constexpr const char* journal_folder = "/journal";
constexpr std::size_t most_bytes = 16U << 20U;
constexpr double most_wait_seconds = 1;
constexpr mode_t own_file = 0600;

std::string journal_in(const std::string& folder) {
  if (folder.empty()) return {};
  if (folder.front() == '/') return folder + journal_folder;
  char* const here = ::getcwd(nullptr, 0);
  const std::string path = (here == nullptr ? "." : std::string(here)) + "/" + folder;
  ::free(here);
  return path + journal_folder;
}

std::optional<std::string> text_of(const Folder& folder, const std::string& name) {
  const Descriptor file = folder.open_file(name, O_RDONLY);
  std::string text;
  if (!file || read_all(file.number(), most_bytes, text) != 0) return std::nullopt;
  return text;
}

KnownFile known_in(const Folder& folder) {
  const auto text = text_of(folder, KnownFile::name);
  if (!text) return {};
  const auto known = KnownFile::parse(*text);
  if (!known) {
    throw Error(folder.path(KnownFile::name) +
                " cannot be read, so nobody knows which configs have crashed before; remove it");
  }
  return *known;
}

/// Processes that have ended without closing their journals, by the names of their files.
std::map<std::string, TryingFile> ended_in(const Folder& folder) {
  std::map<std::string, TryingFile> ended;
  for (const std::string& name : folder.names()) {
    if (!name.ends_with(TryingFile::suffix)) continue;
    const Descriptor file = folder.open_file(name, O_RDONLY);
    std::string text;
    // Whoever is there holds it; where locks are not carried, /proc tells.
    if (!file || ::flock(file.number(), LOCK_SH | LOCK_NB) != 0 ||
        read_all(file.number(), most_bytes, text) != 0) {
      continue;
    }
    const auto trying = TryingFile::parse(text);
    if (!trying) {
      ended.emplace(name, TryingFile());  // cut short: nobody is to blame
    } else if (presence_of(trying->process) != Presence::Alive) {
      ended.emplace(name, *trying);
    }
  }
  return ended;
}

void change_known(const Folder& folder, const std::function<void(KnownFile&)>& change,
                  const std::function<void()>& afterwards = {}) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(most_wait_seconds));
  EntryLock lock(folder, KnownFile::name, deadline);
  KnownFile known = known_in(folder);
  change(known);
  lock.replace(known.to_text());
  if (afterwards) afterwards();
}

/// All that is known, with what processes leave that have ended since.
KnownFile take_in_ended(const Folder& folder) {
  if (ended_in(folder).empty()) return known_in(folder);
  KnownFile all;
  std::vector<std::string> taken_in;
  change_known(
      folder,
      [&](KnownFile& known) {
        const auto ended = ended_in(folder);  // again: another process may have been faster
        std::set<TriedConfig> counted;
        for (const auto& [name, trying] : ended) known.add(trying, counted);
        all = known;
        for (const auto& [name, trying] : ended) taken_in.push_back(name);
      },
      [&] {
        // Under the lock, and not before: whoever finds none of them believes what is known.
        for (const std::string& name : taken_in) (void)::unlinkat(folder.number(), name.c_str(), 0);
      });
  return all;
}

std::string names_of(const std::map<TriedConfig, std::string>& in_flight) {
  constexpr std::size_t most_named = 12;
  std::string names;
  std::size_t named = 0;
  for (const auto& [config, text] : in_flight) {
    if (named++ == most_named) {
      names += " and " + std::to_string(in_flight.size() - most_named) + " more";
      break;
    }
    names += (names.empty() ? "" : "; ") + text;
  }
  return names;
}

/// A sentence about configs that were in flight at an end that one of them may have caused.
std::string what_comes_next(const std::map<TriedConfig, std::string>& in_flight, bool blamed,
                            bool is_kept) {
  const std::string names = names_of(in_flight);
  if (!is_kept)
    return "The next run does not know what was in flight, which is kept nowhere: " + names + ".";
  return blamed ? "Later runs leave out the config that was alone in flight: " + names + "."
                : "The next run tries each config alone that was in flight: " + names + ".";
}

/// The same where it is known how the process ended. Empty: nothing was in flight.
std::string what_becomes_of(const TryingFile& ended, ProcessEnd end, const KnownFile& known) {
  if (ended.in_flight.empty()) return {};
  const bool is_alone = ended.in_flight.size() == 1;
  if (end == ProcessEnd::Crash || ended.broken)
    return what_comes_next(ended.in_flight, is_alone, true);
  // It was said to hang before somebody ended it.
  const auto first = known.entries.find(ended.in_flight.begin()->first);
  if (first != known.entries.end()) {
    const bool is_blamed = first->second.suspicion == TrialJournal::Suspicion::Blamed;
    return what_comes_next(ended.in_flight, is_alone && is_blamed, true);
  }
  return (is_alone ? "The config in flight was " : "The configs in flight were ") +
         names_of(ended.in_flight) +
         "; none is blamed for an end that somebody wanted, and the next run tries them again.";
}

}  // namespace

TriedConfig tried_config(const std::string& region, const std::string& site, const std::string& key,
                         const std::string& config) {
  StableHash of_site;
  of_site.add(region);
  of_site.add(site);
  of_site.add(key);
  StableHash of_config;
  of_config.add(config);
  return {of_site.value(), of_config.value()};
}

TrialJournal::Trial TrialJournal::trial_of(const std::string& region, const std::string& site,
                                           const std::string& key, const std::string& config) {
  return {tried_config(region, site, key, config),
          "region " + region + ", site " + site + "{" + key + "}: " + config};
}

TrialJournal::TrialJournal(const std::string& folder, std::function<void(const std::string&)> say)
    : path_(journal_in(folder)), say_(std::move(say)) {}

TrialJournal::~TrialJournal() = default;

void TrialJournal::say(const std::string& sentence) noexcept {
  failed_ = true;
  if (std::exchange(said_, true)) return;
  try {
    say_(sentence);
  } catch (const std::exception&) {
    // Not said, then.
  }
}

void TrialJournal::learn() {
  if (std::exchange(learnt_, true) || path_.empty()) return;
  const host::HostState kept;
  try {
    const auto folder = Folder::open(path_, Trust::Own);
    if (!folder) return;
    KnownFile known;
    try {
      known = take_in_ended(*folder);
    } catch (const Error&) {
      known = known_in(*folder);  // whoever holds the lock takes in the rest
    }
    for (const auto& [config, entry] : known.entries) known_.emplace(config, entry.suspicion);
  } catch (const std::exception& error) {
    say(error.what());
  }
}

TrialJournal::Suspicion TrialJournal::suspicion(const TriedConfig& config) {
  const std::lock_guard lock(mutex_);
  learn();
  const auto at = known_.find(config);
  return at == known_.end() ? Suspicion::None : at->second;
}

void TrialJournal::open_own() {
  if (own_) return;
  const Folder folder = Folder::create(path_);
  self_ = ProcessIdentity::of_this_process();
  own_name_ = TryingFile::name_of(self_);
  const std::string path = folder.path(own_name_);
  const Descriptor file = folder.open_file(own_name_, O_RDWR | O_CREAT | O_TRUNC, own_file);
  if (!file) refuse_with_errno(path, "cannot be created", errno);
  (void)::flock(file.number(), LOCK_EX | LOCK_NB);
  auto own = std::make_unique<MappedFile>(file, path);
  if (!*own) refuse_with_errno(path, "cannot be mapped", errno);
  own_ = std::move(own);
}

void TrialJournal::write() {
  if (path_.empty() || failed_) return;
  const host::HostState kept;
  try {
    open_own();
    TryingFile file;
    file.process = self_;
    file.broken = broken_;
    for (const auto& [owner, trials] : in_flight_)
      for (const Trial& trial : trials) file.in_flight.emplace(trial.config, trial.text);
    const std::string text = file.to_text();
    const int error = own_->put(0, text);
    if (error != 0) refuse_with_errno(path_ + "/" + own_name_, "cannot be written", error);
    own_bytes_ = text.size();
  } catch (const std::exception& error) {
    say(error.what());
  }
}

bool TrialJournal::append(const Trial& trial) {
  if (path_.empty() || failed_) return true;
  if (own_bytes_ == 0) return false;
  const host::HostState kept;
  const std::string line = TryingFile::line_of(trial.config, trial.text);
  const std::string end = TryingFile::closing();
  if (own_->put(own_bytes_ - end.size(), line + end) != 0) return false;
  own_bytes_ += line.size();
  return true;
}

void TrialJournal::add(const void* owner, Trial trial) {
  const std::lock_guard lock(mutex_);
  if (broken_) return;
  std::vector<Trial>& mine = in_flight_[owner];
  mine.push_back(std::move(trial));
  if (!append(mine.back())) write();
}

void TrialJournal::set(const void* owner, std::vector<Trial> trials) {
  const std::lock_guard lock(mutex_);
  if (broken_) return;  // what was in flight then stays
  std::vector<Trial>& mine = in_flight_[owner];
  if (mine == trials) return;
  std::vector<Trial> before = std::exchange(mine, std::move(trials));
  if (mine.empty()) in_flight_.erase(owner);
  write();
  std::vector<TriedConfig> survivors;
  for (const Trial& trial : before) {
    const auto known = known_.find(trial.config);
    const bool is_cleared = known != known_.end() &&
                            (known->second == Suspicion::Suspect || hung_.contains(trial.config));
    if (is_cleared && !is_in_flight(trial.config)) survivors.push_back(trial.config);
  }
  if (!survivors.empty()) forget(survivors);
}

bool TrialJournal::is_in_flight(const TriedConfig& config) const {
  for (const auto& [owner, trials] : in_flight_)
    for (const Trial& trial : trials)
      if (trial.config == config) return true;
  return false;
}

void TrialJournal::forget(const std::vector<TriedConfig>& survivors) {
  const host::HostState kept;
  for (const TriedConfig& config : survivors) known_.erase(config);
  try {
    const auto folder = Folder::open(path_, Trust::Own);
    if (!folder) return;
    change_known(*folder, [&](KnownFile& known) {
      for (const TriedConfig& config : survivors) known.entries.erase(config);
    });
  } catch (const std::exception& error) {
    say(error.what());
  }
}

std::string TrialJournal::hung() {
  const std::lock_guard lock(mutex_);
  if (broken_) return {};
  std::map<TriedConfig, std::string> all;
  for (const auto& [owner, trials] : in_flight_)
    for (const Trial& trial : trials) all.emplace(trial.config, trial.text);
  if (all.empty()) return {};
  const Suspicion suspicion = all.size() == 1 ? Suspicion::Blamed : Suspicion::Suspect;
  for (const auto& [config, text] : all) hung_.insert(config);
  make_known(all, suspicion);
  return what_comes_next(all, suspicion == Suspicion::Blamed, !path_.empty() && !failed_);
}

void TrialJournal::blame(const TriedConfig& config) {
  const std::lock_guard lock(mutex_);
  make_known({{config, {}}}, Suspicion::Blamed);
}

void TrialJournal::make_known(const std::map<TriedConfig, std::string>& all, Suspicion suspicion) {
  for (const auto& [config, text] : all) {
    Suspicion& known = known_[config];
    known = std::max(known, suspicion);
  }
  if (path_.empty() || failed_) return;
  const host::HostState kept;
  try {
    change_known(Folder::create(path_), [&](KnownFile& known) {
      for (const auto& [config, text] : all) {
        KnownFile::Entry& entry = known.entries[config];
        entry.suspicion = std::max(entry.suspicion, suspicion);
        if (!text.empty()) entry.text = text;
      }
    });
  } catch (const std::exception& error) {
    say(error.what());
  }
}

void TrialJournal::prepare() {
  const std::lock_guard lock(mutex_);
  if (!broken_ && own_bytes_ == 0) write();
}

void TrialJournal::broke() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(broken_, true) || in_flight_.empty()) return;
  write();
}

void TrialJournal::remove_own() {
  if (!own_name_.empty() && !root_folder_has_changed())
    (void)::unlink((path_ + "/" + own_name_).c_str());
}

void TrialJournal::close() {
  const std::lock_guard lock(mutex_);
  const host::HostState kept;
  if (!broken_ || in_flight_.empty()) remove_own();
  failed_ = true;  // nothing more is kept
}

std::string judge_end(const std::string& folder, std::int64_t pid, ProcessEnd end) noexcept try {
  const host::HostState kept;
  const auto journal = Folder::open(journal_in(folder), Trust::Own);
  if (!journal) return {};
  std::string sentences;
  for (const std::string& name : journal->names()) {
    if (!name.starts_with(TryingFile::prefix_of(pid)) || !name.ends_with(TryingFile::suffix))
      continue;
    const auto text = text_of(*journal, name);
    auto trying = text ? TryingFile::parse(*text) : std::nullopt;
    // A process of that number on another host is another one.
    if (!trying || presence_of(trying->process) != Presence::Gone) continue;
    sentences = what_becomes_of(*trying, end, known_in(*journal));
    if (end == ProcessEnd::Nobodys && !trying->broken) {
      (void)::unlinkat(journal->number(), name.c_str(), 0);
      continue;
    }
    trying->end = TryingFile::End::Crashed;
    const std::string judged = trying->to_text();
    const Descriptor file = journal->open_file(name, O_WRONLY);
    if (file) (void)write_at(file.number(), 0, judged);
  }
  return sentences;
} catch (const std::exception&) {
  return {};  // what was in flight stays a suspect, which is tried again
}

std::vector<std::string> blamed_configs(const std::string& folder) {
  std::vector<std::string> blamed;
  const auto journal = Folder::open(journal_in(folder), Trust::Own);
  if (!journal) return blamed;
  for (const auto& [config, entry] : take_in_ended(*journal).entries)
    if (entry.suspicion == TrialJournal::Suspicion::Blamed) blamed.push_back(entry.text);
  return blamed;
}

std::size_t forget_blamed(const std::string& folder) {
  const auto journal = Folder::open(journal_in(folder), Trust::Own);
  std::size_t forgotten = 0;
  if (!journal || known_in(*journal).entries.empty()) return forgotten;
  change_known(*journal, [&](KnownFile& known) {
    forgotten = std::erase_if(known.entries, [](const auto& entry) {
      return entry.second.suspicion == TrialJournal::Suspicion::Blamed;
    });
  });
  return forgotten;
}

}  // namespace contextune::store
