#include "store/file_store.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include <contextune/error.hpp>

#include "core/trials/stored_winner.hpp"
#include "core/value/utc_time.hpp"
#include "host/host_state.hpp"
#include "store/entry_file.hpp"
#include "store/identity.hpp"
#include "store/merge.hpp"
#include "store/refuted_winners.hpp"
#include "store/update.hpp"

namespace contextune::store {
namespace {

std::string absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path result = std::filesystem::absolute(path, error);
  return error ? path : result.lexically_normal().string();
}

Deadline after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(seconds));
}

std::int64_t system_now() {
  return static_cast<std::int64_t>(std::time(nullptr));
}

// Years that four digits cannot hold are none that a clock should show.
constexpr std::int64_t last_second = 253402300799;  // of 9999

}  // namespace

std::string timestamp(std::int64_t seconds_since_1970) {
  const std::int64_t seconds = std::clamp<std::int64_t>(seconds_since_1970, 0, last_second);
  return utc_text(std::chrono::sys_seconds(std::chrono::seconds(seconds))) + 'Z';
}

FileStore::FileStore(const std::string& folder, Say say, Settings settings)
    : folder_(absolute(folder)), say_(std::move(say)), settings_(std::move(settings)) {
  if (!settings_.now) settings_.now = system_now;
}

StoredEntry FileStore::load(const StoreIdentity& identity) try {
  const host::HostState host_state;
  try {
    return load_now(identity);
  } catch (const Error& error) {
    say(FallbackReason::StoreUnreadable, error.what());
  } catch (const std::exception& error) {
    say(FallbackReason::StoreUnreadable, folder_ + ": " + error.what());
  }
  return {};
} catch (...) {
  return {};
}

StoredEntry FileStore::load_now(const StoreIdentity& identity) {
  if (folder_.empty()) return {};
  const auto root = Folder::open(folder_, Trust::Own);
  if (!root) return {};
  const TuningEnvironment& here = identity.environment;
  const EntryPlace place = place_of(identity.kind, identity.name, here.hardware);
  const auto folder = root->open_inner(place.folder, Trust::Own);
  if (!folder) return {};
  const EntryFile file = read_entry_file(*folder, place.file, Trust::Own);
  if (file.state == FileState::Damaged) {
    try {
      const std::string said =
          set_damaged_aside(*folder, place.file, after(settings_.wait_seconds));
      if (!said.empty()) say(FallbackReason::StoreUnreadable, said);
    } catch (const Error& error) {
      say(FallbackReason::StoreUnreadable,
          file.problem + "; it is left alone, as it cannot be set aside: " + error.what());
    }
    return {};
  }
  if (file.state == FileState::Newer || file.state == FileState::Refused)
    say(FallbackReason::StoreUnreadable, file.problem);
  for (const std::string& refuted : refuted_winners(file.entry))
    say(FallbackReason::RefutedWinner, folder->path(place.file) + ": " + refuted);
  StoredEntry stored;
  const std::string software = software_id(here.software);
  for (const EntrySite& known : file.entry.sites) {
    StoredSite& site = stored.sites.emplace_back(known.site);
    site.same_software = known.software == software;
    if (refutation(known.site)) site.reason = WinnerReason::NoSamples;
  }
  if (file.entry.confirm && file.entry.confirm->software == software)
    stored.confirm = file.entry.confirm->figures;
  return stored;
}

bool FileStore::save(const StoreIdentity& identity, const std::vector<StoredSite>& sites,
                     const std::optional<StoredConfirm>& confirm) try {
  const host::HostState host_state;
  if (sites.empty() && !confirm) return true;
  if (folder_.empty()) {
    say(FallbackReason::StoreUnwritable,
        "there is no folder for the store: neither CONTEXTUNE_CACHE_DIR, XDG_CACHE_HOME nor HOME "
        "names one; give one with --cache-dir");
    return false;
  }
  try {
    const UpdateTarget target{folder_, identity.kind, identity.name, identity.environment.hardware,
                              after(settings_.wait_seconds)};
    const std::string now = timestamp(settings_.now());
    const UpdateNotes notes = update_entry(target, [&](Entry& entry) {
      add_tuning(entry, identity.environment.software, sites, confirm, now);
    });
    if (!notes.damaged.empty()) say(FallbackReason::StoreUnreadable, notes.damaged);
    if (!notes.dropped.empty()) say(FallbackReason::StoreFull, notes.dropped);
    return true;
  } catch (const Error& error) {
    say(FallbackReason::StoreUnwritable, error.what());
  } catch (const std::exception& error) {
    say(FallbackReason::StoreUnwritable, folder_ + ": " + error.what());
  }
  return false;
} catch (...) {
  return false;
}

void FileStore::say(FallbackReason reason, const std::string& sentence) noexcept try {
  constexpr std::size_t most_said = 1024;  // a program that never ends must not grow
  {
    const std::scoped_lock lock(mutex_);
    if (said_.size() >= most_said || !said_.emplace(reason, sentence).second) return;
  }
  if (say_) say_(reason, sentence);
} catch (...) {
  return;
}

}  // namespace contextune::store
