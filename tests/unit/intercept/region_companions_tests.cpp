// Who is tuned together in a region, between two ranks of one process.
#include "intercept/ranks/region_companions.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "catch.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

constexpr double soon = 10;

/// Ranks that a launcher declares, with a communicator of some of them.
class TwoRanks {
 public:
  TwoRanks() : log_({folder(), 0, "", LogLevel::Info}) {
    const std::string address = "unix:contextune-companions-" + std::to_string(getpid());
    setenv("CONTEXTUNE_WORLD_SIZE", "2", 1);
    setenv("CONTEXTUNE_ADDRESS", address.c_str(), 1);
    TuningObserver nobody;
    for (int rank = 0; rank < 2; ++rank) {
      setenv("CONTEXTUNE_RANK", std::to_string(rank).c_str(), 1);
      (void)processes_[rank].tuning_of("step", options_, nobody, false);
      contextune_nccl_call part{};
      part.num_made = 1;
      part.comm = this;
      processes_[rank].nccl_begins(part);
    }
    for (const char* name : {"CONTEXTUNE_WORLD_SIZE", "CONTEXTUNE_ADDRESS", "CONTEXTUNE_RANK"})
      unsetenv(name);
  }
  ~TwoRanks() {
    log_.lines().flush();
    std::filesystem::remove_all(std::filesystem::path(log_.lines().path()).parent_path());
  }

  [[nodiscard]] RegionCompanions companions(int rank) {
    SharedTuningSettings settings;
    settings.group = 5;
    settings.presync_timeout = 1e6;  // nobody is given up
    return {processes_[rank], settings, options_};
  }

 private:
  static std::string folder() {
    char made[] = "/tmp/contextune-companions-XXXXXX";
    REQUIRE(mkdtemp(made) != nullptr);
    return made;
  }

  Options options_;
  EventLog log_;
  ProcessRanks processes_[2]{{log_, Distributed::Auto}, {log_, Distributed::Auto}};
};

const DecisionStanding in_pair{0, 77, 2, 1, 0, 0, true};

/// Entry after entry until they are known.
Companions known(RegionCompanions& companions) {
  Companions found;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(soon);
  for (std::uint64_t entry = 0; std::chrono::steady_clock::now() < until; ++entry) {
    found = companions.find({&in_pair, 1}, entry, true, 0.1 * static_cast<double>(entry));
    if (found.state == Companions::State::Known) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return found;
}

}  // namespace

TEST_CASE("A rank that leaves while others look for it is not waited for", "[companions]") {
  TwoRanks ranks;
  RegionCompanions stays = ranks.companions(0);
  RegionCompanions leaves = ranks.companions(1);
  CHECK(stays.find({&in_pair, 1}, 0, true, 0).state == Companions::State::Sought);
  CHECK(leaves.leave({&in_pair, 1}, true).state != Companions::State::Known);
  CHECK(known(stays).settings.ranks == std::vector<std::uint32_t>{0});
}

TEST_CASE("A rank that leaves after others have found it is told whom", "[companions]") {
  TwoRanks ranks;
  RegionCompanions stays = ranks.companions(0);
  RegionCompanions leaves = ranks.companions(1);
  (void)leaves.find({&in_pair, 1}, 0, true, 0);
  CHECK(known(stays).settings.ranks == std::vector<std::uint32_t>{0, 1});
  const Companions told = leaves.leave({&in_pair, 1}, true);
  CHECK(told.state == Companions::State::Known);
  CHECK(told.settings.ranks == std::vector<std::uint32_t>{0, 1});
}
