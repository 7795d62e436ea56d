#include "intercept/site/process_store.hpp"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "catch.hpp"
#include "file_text.hpp"
#include "scratch_folder.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

/// A disk that gives nothing of the region `slow` until it is let go.
class SlowDisk final : public Store {
 public:
  StoredEntry load(const StoreIdentity& identity) override {
    std::unique_lock lock(mutex_);
    ++loads_;
    changed_.notify_all();
    if (identity.name == "slow") changed_.wait(lock, [this] { return let_go_; });
    StoredSite site;
    site.name = identity.name;
    return {{site}, std::nullopt};
  }
  bool save(const StoreIdentity& identity, const std::vector<StoredSite>& sites,
            const std::optional<StoredConfirm>&) override {
    std::unique_lock lock(mutex_);
    ++saves_;
    changed_.notify_all();
    if (identity.name == "slow") changed_.wait(lock, [this] { return let_go_; });
    for (const StoredSite& site : sites) saved_.push_back(site.reason);
    return true;
  }
  /// Why what was saved had won, in order.
  [[nodiscard]] std::vector<WinnerReason> saved() {
    const std::lock_guard lock(mutex_);
    return saved_;
  }
  void wait_for_saves(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return saves_ >= count; });
  }
  void wait_for_loads(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return loads_ >= count; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int loads_ = 0;
  int saves_ = 0;
  std::vector<WinnerReason> saved_;
  bool let_go_ = false;
};

struct SlowStore {
  SlowStore() : log({folder.path(), 0, "", LogLevel::Warn}) {}

  void save(const std::string& region, WinnerReason reason) {
    StoredSite site;
    site.name = "gemm";
    site.reason = reason;
    store.save({StoredKind::Region, region, {}}, {{site, {}}}, std::nullopt);
  }

  const ScratchFolder folder;
  EventLog log;
  SlowDisk* disk = new SlowDisk;
  ProcessStore store{
      std::unique_ptr<Store>(disk), "", Options{}, log, [] { return TuningEnvironment{}; },
      [](auto) { return true; }};
};

}  // namespace

TEST_CASE("Nobody waits for what another thread reads of another region", "[store]") {
  SlowStore slow;
  auto other = std::async(std::launch::async, [&] { return &slow.store.entry_of("slow"); });
  slow.disk->wait_for_loads(1);
  auto quick = std::async(std::launch::async, [&] { return &slow.store.entry_of("quick"); });
  const bool came = quick.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  slow.disk->let_go();
  REQUIRE(came);
  CHECK(quick.get()->sites.size() == 1);
  CHECK(other.get()->sites.size() == 1);
}

TEST_CASE("Threads that read one region at a time are given the same entry", "[store]") {
  SlowStore slow;
  const auto read = [&] { return &slow.store.entry_of("slow"); };
  auto first = std::async(std::launch::async, read);
  auto second = std::async(std::launch::async, read);
  slow.disk->wait_for_loads(2);
  slow.disk->let_go();
  CHECK(first.get() == second.get());
}

TEST_CASE("A note of a site does not stand in for its winner that waits to be written", "[store]") {
  SlowStore slow;
  slow.save("slow", WinnerReason::Fastest);
  slow.disk->wait_for_saves(1);
  slow.save("step", WinnerReason::Fastest);
  slow.save("step", WinnerReason::NoSamples);
  slow.save("step", WinnerReason::NoSamples);
  slow.disk->let_go();
  slow.store.wait(20);
  CHECK(slow.disk->saved() == std::vector{WinnerReason::Fastest, WinnerReason::Fastest,
                                          WinnerReason::NoSamples, WinnerReason::NoSamples});
}

TEST_CASE("A process that ends says of which regions not all is written", "[store]") {
  SlowStore slow;
  slow.save("slow", WinnerReason::Fastest);
  slow.disk->wait_for_saves(1);
  slow.save("step", WinnerReason::Fastest);
  slow.store.finish(0.01);
  slow.log.lines().flush();
  const std::string said = text_of(slow.log.lines().path());
  for (const char* const region : {"slow", "step"})
    CHECK(said.find(std::string("reason=store_unwritable region=") + region) != std::string::npos);
  slow.disk->let_go();
  slow.store.wait(20);
  CHECK(slow.disk->saved().size() == 2);
}

TEST_CASE("A process that ends when all is written has nothing to say", "[store]") {
  SlowStore slow;
  slow.save("step", WinnerReason::Fastest);
  slow.store.finish(20);
  slow.log.lines().flush();
  CHECK_FALSE(std::filesystem::exists(slow.log.lines().path()));
}
