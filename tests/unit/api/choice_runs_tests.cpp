// What a choice is in the runs after its first: each a process of its own, with one store.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
  [[nodiscard]] Ended run(const std::string& how = {},
                          const std::string& program = CONTEXTUNE_TEST_CHOICE_CLIENT) const {
    const std::string command = "CONTEXTUNE_STORE=tune CONTEXTUNE_CACHE_DIR=" + folder.path() +
                                "/store CONTEXTUNE_LOG_DIR=" + folder.path() + " exec " + program +
                                " " + how;
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    Ended ended;
    std::array<char, 256> buffer{};
    while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr)
      ended.output += buffer.data();
    ended.status = pclose(pipe);
    return ended;
  }
  /// The same program, built anew: its linker names it otherwise.
  [[nodiscard]] std::string rebuilt() const {
    std::string bytes = text_of(CONTEXTUNE_TEST_CHOICE_CLIENT);
    // Length of the name, length of the content, NT_GNU_BUILD_ID, name.
    const std::string head("\4\0\0\0\24\0\0\0\3\0\0\0GNU\0", 16);
    const std::size_t at = bytes.find(head);
    REQUIRE(at != std::string::npos);
    bytes[at + head.size()] ^= 1;
    const std::string program = folder.path("rebuilt");
    std::ofstream(program, std::ios::binary) << bytes;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return program;
  }
  /// Lines of the last run.
  [[nodiscard]] std::ptrdiff_t count(const std::string& text) const {
    const std::vector<std::string> all = lines_of(folder.path("rank-0.log"));
    return std::count_if(all.begin(), all.end(),
                         [&](const auto& line) { return line.find(text) != std::string::npos; });
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

TEST_CASE("Winners of functions and choices have to show themselves again in a program built anew",
          "[choice_runs]") {
  const Runs runs;
  const std::string shown = " verdict=kept ";
  CHECK(runs.run().status == 0);
  CHECK(runs.count(shown) == 3);  // of the function, and of both problems of the choice
  CHECK(runs.run().status == 0);
  CHECK(runs.count(shown) == 0);
  const std::string rebuilt = runs.rebuilt();
  CHECK(runs.run({}, rebuilt).output.starts_with("block 128\n"));
  CHECK(runs.count(shown) == 3);
  CHECK(runs.count(" event=trial ") == 0);
  CHECK(runs.run({}, rebuilt).status == 0);
  CHECK(runs.count(shown) == 0);
  CHECK(runs.count(" event=trial ") == 0);
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
