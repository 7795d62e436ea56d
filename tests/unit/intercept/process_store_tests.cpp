#include "intercept/site/process_store.hpp"

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "store/file_store.hpp"
#include "store/listing.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

/// A store on disk, and processes that use it one after the other.
class Stored {
 public:
  Stored() = default;
  ~Stored() {
    log_.lines().flush();  // into that folder
    std::filesystem::remove_all(folder_);
  }
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;

  [[nodiscard]] std::unique_ptr<ProcessStore> process() {
    auto files = std::make_unique<store::FileStore>(
        cache(), [](FallbackReason, const std::string& sentence) { FAIL(sentence); });
    return std::make_unique<ProcessStore>(
        std::move(files), cache(), Options{}, log_, [this] { return here(); },
        [](auto) { return true; });
  }
  [[nodiscard]] TuningEnvironment here() const {
    return {{{"gpu", "NVIDIA H200"}, {"ranks", has_communicator_ ? "8" : "1"}},
            {{"driver", "13.0"}, {"nccl", has_communicator_ ? "2.28.3" : "none"}}};
  }
  /// As ncclCommInitRank does, of which the process knows nothing before.
  void make_communicator() { has_communicator_ = true; }
  /// What a process has found of a region.
  void save(const std::string& region, const StoredAs& as, std::int64_t key) {
    const auto process = this->process();
    const StoreIdentity identity = process->entry_of(region, as).identity;
    process->save(identity, {{site(key), {}}}, std::nullopt);
    process->wait(10);
  }
  [[nodiscard]] static StoredSite site(std::int64_t key) {
    StoredSite made;
    made.name = "gemm";
    made.key = {{"key", key}};
    made.trials = {{{{"block", std::int64_t{64}}}, TrialStatus::Measured, 3, 2e-6, 2e-6, 2e-6},
                   {{{"block", key}}, TrialStatus::Measured, 3, 1e-6, 1e-6, 1e-6}};
    made.winner = {{"block", key}};
    made.seconds = 1e-6;
    made.default_seconds = 2e-6;
    return made;
  }
  [[nodiscard]] std::vector<store::Entry> entries() const {
    std::vector<store::Entry> all;
    for (const auto& file : store::list_store(cache(), store::Trust::Own).files)
      all.push_back(file.content.entry);
    return all;
  }

 private:
  [[nodiscard]] std::string cache() const { return folder_ + "/cache"; }

  static std::string made_folder() {
    std::string folder = "/tmp/contextune-process-store-XXXXXX";
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    return folder;
  }

  std::string folder_ = made_folder();
  bool has_communicator_ = false;
  EventLog log_{{folder_, 1, "", LogLevel::Info}};
};

StoredAs function_of(std::int64_t key) {
  return {StoredKind::Function, "gemm", "gemm", {{"key", key}}};
}

}  // namespace

TEST_CASE("The keys of a function are one entry, of which each is told only its own", "[store]") {
  Stored stored;
  stored.save("gemm{key=128}", function_of(128), 128);
  stored.save("gemm{key=256}", function_of(256), 256);
  const auto all = stored.entries();
  REQUIRE(all.size() == 1);
  CHECK(all[0].kind == StoredKind::Function);
  CHECK(all[0].name == "gemm");
  CHECK(all[0].sites.size() == 2);
  const auto process = stored.process();
  const auto& entry = process->entry_of("gemm{key=256}", function_of(256));
  REQUIRE(entry.sites.size() == 1);
  CHECK(entry.sites[0].winner == Config{{"block", std::int64_t{256}}});
  CHECK(process->entry_of("gemm{key=512}", function_of(512)).sites.empty());
}

TEST_CASE("A region, a function and a choice of one name are different entries", "[store]") {
  Stored stored;
  StoredAs choice = function_of(128);
  choice.kind = StoredKind::Choice;
  stored.save("gemm", {}, 128);
  stored.save("gemm{key=128}", function_of(128), 128);
  stored.save("choice gemm{key=128}", choice, 128);
  CHECK(stored.entries().size() == 3);
}

TEST_CASE("What was stored of a function as a region of its own is not taken for the function's",
          "[store]") {
  Stored stored;
  stored.save("gemm{key=128}", {}, 128);
  CHECK(stored.process()->entry_of("gemm{key=128}", {}).sites.size() == 1);
  CHECK(stored.process()->entry_of("gemm{key=128}", function_of(128)).sites.empty());
}

TEST_CASE("A function on equal devices has one winner for all", "[store]") {
  Stored stored;
  stored.save("gemm{key=128}@device1", function_of(128), 128);
  CHECK(stored.process()->entry_of("gemm{key=128}", function_of(128)).sites.size() == 1);
}

TEST_CASE("A region is stored for the NCCL and the ranks that there are at its first entry",
          "[store]") {
  Stored stored;
  const auto process = stored.process();
  const StoreIdentity early = process->entry_of("process").identity;
  stored.make_communicator();
  const StoreIdentity late = process->entry_of("decode").identity;
  CHECK(late.environment == stored.here());
  CHECK(process->entry_of("decode").environment != process->entry_of("process").environment);
  // What was opened before is written where the next run, which opens it as early, looks for it.
  CHECK(process->entry_of("process").identity.environment == early.environment);
  process->save(late, {{Stored::site(128), {}}}, std::nullopt);
  process->wait(10);
  const auto all = stored.entries();
  REQUIRE(all.size() == 1);
  CHECK(all[0].hardware == stored.here().hardware);
  REQUIRE(all[0].software.size() == 1);
  CHECK(all[0].software.begin()->second == stored.here().software);
}

TEST_CASE("Keys of a function that were met before and after NCCL are not written as one",
          "[store]") {
  Stored stored;
  const auto process = stored.process();
  const StoreIdentity early = process->entry_of("gemm{key=128}", function_of(128)).identity;
  stored.make_communicator();
  const StoreIdentity late = process->entry_of("gemm{key=256}", function_of(256)).identity;
  // Several, so that some wait while another is written.
  for (int i = 0; i < 8; ++i) {
    process->save(early, {{Stored::site(128), {}}}, std::nullopt);
    process->save(late, {{Stored::site(256), {}}}, std::nullopt);
  }
  process->wait(10);
  const auto all = stored.entries();
  REQUIRE(all.size() == 2);
  for (const store::Entry& entry : all) {
    const bool is_early = entry.hardware == early.environment.hardware;
    CHECK(entry.sites.size() == 1);
    CHECK(entry.sites.front().site.key == Stored::site(is_early ? 128 : 256).key);
  }
}
