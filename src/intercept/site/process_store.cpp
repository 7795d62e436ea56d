#include "intercept/site/process_store.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <utility>

#include "core/value/stable_hash.hpp"
#include "gpu/driver/environment_facts.hpp"
#include "host/own_descriptors.hpp"
#include "host/own_thread.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

std::uint64_t hash_of(const TuningEnvironment& environment) {
  StableHash hash;
  for (const Facts* facts : {&environment.hardware, &environment.software}) {
    hash.add(static_cast<std::uint64_t>(facts->size()));
    for (const auto& [name, value] : *facts) {
      hash.add(name);
      hash.add(value);
    }
  }
  return hash.value();
}

Key without_device(const Key& key) {
  Key rest;
  for (const Key::Entry& part : key.entries())
    if (part.first != "device") rest.add(part.first, part.second);
  return rest;
}

bool same_site(const StoredSite& a, const StoredSite& b) {
  return a.name == b.name && a.key == b.key;
}

}  // namespace

ProcessStore::ProcessStore(std::unique_ptr<Store> store, const std::string& folder,
                           const Options& options, EventLog& log,
                           std::function<TuningEnvironment()> environment, MaySave may_save)
    : store_(options.store == StoreUse::Off ? nullptr : std::move(store)),
      use_(options.store),
      always_tune_(options.always_tune),
      version_check_(options.version_check),
      log_(log),
      find_environment_(std::move(environment)),
      may_save_(std::move(may_save)),
      journal_(store_ == nullptr ? std::string() : folder, [&log](const std::string& sentence) {
        log.fallback(FallbackReason::StoreUnwritable, {}, {}, sentence);
      }) {}

void ProcessStore::prepare(const std::vector<std::string>& regions) {
  if (store_ == nullptr) return;
  (void)journal_.suspicion({});
  const TuningEnvironment here = find_environment_();
  bool any = false;
  for (const std::string& region : regions) {
    auto& entry = prepared_[region] = read(region, {}, here);
    any = any || !entry->sites.empty();
  }
  if (any) journal_.prepare();  // an entry with stored winners has to be quick
}

std::unique_ptr<ProcessStore::Entry> ProcessStore::read(const std::string& region,
                                                        const StoredAs& as,
                                                        const TuningEnvironment& here) {
  auto entry = std::make_unique<Entry>();
  const bool is_region = as.kind == StoredKind::Region;
  entry->identity = {as.kind, is_region ? region : as.name, here};
  entry->environment = hash_of(here);
  const Facts& hardware = here.hardware;
  entry->keeps_devices_apart = std::any_of(hardware.begin(), hardware.end(), [](const auto& fact) {
    return fact.first == gpu::other_gpus;
  });
  if (!always_tune_) {
    StoredEntry stored = store_->load(entry->identity);
    entry->sites = std::move(stored.sites);
    entry->confirm = stored.confirm;
  }
  if (!is_region) {
    const Key key = without_device(as.key);
    std::erase_if(entry->sites, [&](const StoredSite& site) {
      return site.name != as.site || without_device(site.key) != key;
    });
  }
  return entry;
}

const ProcessStore::Entry& ProcessStore::entry_of(const std::string& region, const StoredAs& as) {
  if (store_ != nullptr) (void)journal_.suspicion({});  // reads what is known, without our locks
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = entries_.find(region); known != entries_.end()) return *known->second;
  }
  // The driver is asked and the disk read without the lock: neither is to hold up other regions.
  // Asked for each entry: the program may have made its first communicator since the last one. An
  // entry that is open already stays what it was opened as, so that the next run, which opens it at
  // the same point, finds what this one writes.
  std::optional<TuningEnvironment> here;
  if (store_ != nullptr) here = find_environment_();
  std::unique_ptr<Entry> found;
  {
    const std::lock_guard lock(mutex_);
    // An entry that was read ahead counts where nothing has turned out since: how many ranks there
    // are, or which NCCL the program has.
    const auto prepared = prepared_.find(region);
    if (prepared != prepared_.end() && prepared->second != nullptr && here &&
        prepared->second->identity.environment == *here)
      found = std::move(prepared->second);
  }
  if (found == nullptr) found = here ? read(region, as, *here) : std::make_unique<Entry>();
  log::StoreEvent event;
  event.region = region;
  event.action = "found";
  event.sites = found->sites.size();
  event.same_software = static_cast<std::size_t>(
      std::count_if(found->sites.begin(), found->sites.end(),
                    [](const StoredSite& site) { return site.same_software; }));
  event.confirm = found->confirm;
  event.simulated = log_.simulated();
  if (version_check_ || !tunes())
    std::erase_if(found->sites, [](const StoredSite& site) { return !site.same_software; });
  const std::lock_guard lock(mutex_);
  auto& place = entries_[region];
  if (place != nullptr) return *place;  // another thread has read it meanwhile
  place = std::move(found);
  if (event.sites > 0) log::write_store(log_.lines(), event);
  return *place;
}

const StoredSite* ProcessStore::find(const Entry& entry, const std::string& name, const Key& key) {
  for (const StoredSite& site : entry.sites)
    if (site.name == name && site.key == key) return &site;
  return nullptr;
}

void ProcessStore::save(const StoreIdentity& identity, std::vector<Saved> sites,
                        std::optional<StoredConfirm> confirm) {
  if (store_ == nullptr || !tunes()) return;
  std::erase_if(sites, [this](const Saved& one) { return !may_save_(one.ranks); });
  if (sites.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto waiting = std::find_if(jobs_.rbegin(), jobs_.rend(),
                                    [&](const Job& job) { return job.identity == identity; });
  // A note says only what is new of its site, and what waits has to be written all the same.
  const auto adds_to = [&](const Job& job) {
    return std::any_of(sites.begin(), sites.end(), [&](const Saved& one) {
      return one.site.reason == WinnerReason::NoSamples &&
             std::any_of(job.sites.begin(), job.sites.end(),
                         [&](const Saved& other) { return same_site(one.site, other.site); });
    });
  };
  if (waiting == jobs_.rend() || adds_to(*waiting)) {
    jobs_.push_back({identity, std::move(sites), confirm});
  } else {
    for (Saved& one : sites) {
      std::erase_if(waiting->sites,
                    [&](const Saved& other) { return same_site(one.site, other.site); });
      waiting->sites.push_back(std::move(one));
    }
    if (confirm) waiting->confirm = confirm;
  }
  if (!running_) start_thread();
}

void ProcessStore::start_thread() {
  try {
    host::start_own_thread("contextune-save", [this] { work(); });
    running_ = true;
  } catch (const std::exception& error) {
    jobs_.clear();
    log_.fallback(FallbackReason::StoreUnwritable, {}, {},
                  std::string("No thread could be started to write the winners: ") + error.what());
  }
}

void ProcessStore::work() noexcept {
  (void)host::own_descriptors();
  std::unique_lock lock(mutex_);
  while (!jobs_.empty()) {
    const Job job = std::move(jobs_.front());
    jobs_.erase(jobs_.begin());
    writing_ = job.identity.name;
    lock.unlock();
    write(job);
    lock.lock();
  }
  running_ = false;
  changed_.notify_all();
}

void ProcessStore::write(const Job& job) noexcept {
  try {
    std::vector<StoredSite> sites;
    for (const Saved& one : job.sites) {
      std::string code = one.code.read();
      if (code.empty() && one.code.declaration.empty() && one.says_code_only) continue;
      sites.push_back(one.site);
      sites.back().declaration = one.code.declaration;
      sites.back().code = std::move(code);
      sites.back().image = one.code.stamp();
    }
    if (sites.empty() || !store_->save(job.identity, sites, job.confirm)) return;
    log::StoreEvent event;
    event.region = job.identity.name;
    const bool is_news = std::any_of(job.sites.begin(), job.sites.end(), [](const Saved& one) {
      return one.site.reason != WinnerReason::NoSamples && one.site.reason != WinnerReason::SoFar;
    });
    event.action = is_news ? "saved" : "noted";
    event.sites = event.same_software = sites.size();
    event.simulated = log_.simulated();
    log::write_store(log_.lines(), event);
  } catch (const std::exception&) {
    // No memory to say so.
  }
}

void ProcessStore::wait(double seconds) {
  std::unique_lock lock(mutex_);
  (void)changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                          [this] { return !running_; });
}

void ProcessStore::finish(double seconds) noexcept {
  try {
    wait(seconds);
    std::set<std::string> unwritten;
    {
      const std::lock_guard lock(mutex_);
      if (!running_) return;
      unwritten.insert(writing_);
      for (const Job& job : jobs_) unwritten.insert(job.identity.name);
    }
    for (const std::string& name : unwritten) {
      log_.fallback(FallbackReason::StoreUnwritable, name, {},
                    "The program has ended before all that was found could be written to the "
                    "store: the disk is slow, or another process does not let go of it.");
    }
  } catch (const std::exception&) {
    // No memory to say so.
  }
}

}  // namespace contextune::intercept
