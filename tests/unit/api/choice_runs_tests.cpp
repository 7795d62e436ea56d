// What a choice is in the runs after its first: each a process of its own, with one store.
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "tests/file_text.hpp"
#include "tests/scratch_folder.hpp"

namespace {

struct Ended {
  std::string output;
  int status = 0;
};

/// One program, with a store and a log of its own.
struct Runs {
  [[nodiscard]] Ended run(const std::string& how = {}) const {
    const std::string command = "CONTEXTUNE_STORE=tune CONTEXTUNE_CACHE_DIR=" + folder.path() +
                                "/store CONTEXTUNE_LOG_DIR=" + folder.path() +
                                " exec " CONTEXTUNE_TEST_CHOICE_CLIENT " " + how;
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    Ended ended;
    std::array<char, 256> buffer{};
    while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr)
      ended.output += buffer.data();
    ended.status = pclose(pipe);
    return ended;
  }
  [[nodiscard]] std::string log() const { return text_of(folder.path("rank-0.log")); }
  /// What is stored of the choice.
  [[nodiscard]] std::string stored() const {
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(folder.path("store/add")))
      if (file.path().extension() == ".json") all += text_of(file.path().string());
    return all;
  }

  ScratchFolder folder;
};

}  // namespace

TEST_CASE("A choice that starts with a stored winner knows what was measured of it",
          "[choice_runs]") {
  const Runs runs;
  const Ended first = runs.run();
  CHECK(first.output.find("fast state=0 samples=2 us=11.711 winner\n") != std::string::npos);
  CHECK(runs.run().output == first.output);
}

TEST_CASE("A run that starts tuned leaves the store as it was", "[choice_runs]") {
  const Runs runs;
  CHECK(runs.run().output.find("wrong state=3") != std::string::npos);
  const std::string stored = runs.stored();
  CHECK(stored.find("implementation") != std::string::npos);
  CHECK(runs.run().status == 0);
  CHECK(runs.run().status == 0);
  CHECK(runs.stored() == stored);
}

TEST_CASE("An implementation that takes the process down is found, and what was beside it is not",
          "[choice_runs]") {
  const Runs runs;
  // Nobody watches this process: it may also have been ended by somebody, twice.
  for (int i = 0; i < 3; ++i) {
    const Ended ended = runs.run("crash");
    CHECK(ended.output == "block 128\n");
    CHECK((WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGABRT));
  }
  const Ended found = runs.run("crash");
  CHECK(found.status == 0);
  CHECK(found.output.starts_with("block 128\n"));
  CHECK(found.output.find("fast state=4 ") != std::string::npos);
  CHECK(found.output.find("middle state=0 samples=2") != std::string::npos);
  CHECK(runs.log().find("reason=config_crashed text=\"'implementation=fast' of 'add{key=8}'") !=
        std::string::npos);
  CHECK(runs.run("crash").status == 0);
}
