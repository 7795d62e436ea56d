// What a choice and a function are in the runs after their first: each a process of its own, with
// one store.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
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
  /// @param variables "NAME=VALUE" of them
  [[nodiscard]] Ended run(const std::string& how = {}, const std::string& variables = {},
                          const std::string& program = CONTEXTUNE_TEST_CHOICE_CLIENT) const {
    const std::string command =
        "exec env " + variables + " CONTEXTUNE_STORE=tune CONTEXTUNE_CACHE_DIR=" + folder.path() +
        "/store CONTEXTUNE_LOG_DIR=" + folder.path() + " " + program + " " + how;
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
  /// Of the last run.
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

/// Searches of the client: one of its function, and two of its choice.
constexpr std::ptrdiff_t num_searches = 3;

std::ptrdiff_t lines_with(const std::string& log, const std::string& first,
                          const std::string& then = {}) {
  std::istringstream lines(log);
  std::ptrdiff_t found = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.find(first) != line.npos && line.find(then) != line.npos) ++found;
  return found;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// What the client says but for times, which another measurement has others of.
std::string what_won(const Ended& ended) {
  return std::regex_replace(ended.output, std::regex(" us=[0-9.]+"), "");
}

/// It starts with stored winners, and takes their word.
void check_kept(const std::string& log) {
  CHECK(lines_with(log, " event=trial ") == 0);
  CHECK(lines_with(log, " event=confirm ", " verdict=skipped ") == num_searches);
  CHECK(lines_with(log, " event=winner ", " reason=stored ") == num_searches);
}

/// As if nothing were stored; what was found is.
void check_tuned(const std::string& log) {
  for (const char* region :
       {"region=scale{} ", "region=\"choice add{key=8}\"", "region=\"choice add{key=4}\""}) {
    CHECK(lines_with(log, " event=trial ", region) > 0);
  }
  CHECK(lines_with(log, " event=winner ", " reason=stored ") == 0);
  CHECK(lines_with(log, " event=winner ", " reason=fastest ") == num_searches);
  CHECK(lines_with(log, " event=store region=scale action=saved ") == 1);
  CHECK(lines_with(log, " event=store region=add action=saved ") > 0);
}

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
  // Of each of its two problems, and as what it is.
  CHECK(std::regex_search(stored, std::regex("implementation.{1,40}wrong")));
  CHECK(occurrences(stored, "\"wrong_result\"") == 2);
  CHECK(occurrences(stored, "\"failed\"") == 0);
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
  CHECK(runs.run({}, {}, rebuilt).output.starts_with("block 128\n"));
  CHECK(runs.count(shown) == 3);
  CHECK(runs.count(" event=trial ") == 0);
  CHECK(runs.run({}, {}, rebuilt).status == 0);
  CHECK(runs.count(shown) == 0);
  CHECK(runs.count(" event=trial ") == 0);
}

TEST_CASE("A winner of another version of its code does not count", "[choice_runs]") {
  const Runs runs;
  const std::string first = "FUNCTION_VERSION=1 CHOICE_VERSION=1 FAST_VERSION=1 ";
  const auto searched = [&](const std::string& versions, std::ptrdiff_t function,
                            std::ptrdiff_t choice, const std::string& program) {
    const std::string is_fast = "block 128\n";
    CHECK(runs.run({}, versions, program).output.starts_with(is_fast));
    const std::string log = runs.log();
    CHECK(lines_with(log, " event=winner ", " region=scale{} site=scale ") == 1);
    CHECK(lines_with(log, " event=winner ", " reason=fastest ") == function + choice);
    CHECK(lines_with(log, " event=fallback ", " reason=other_declaration ") == function + choice);
    // The same again.
    CHECK(runs.run({}, versions, program).output.starts_with(is_fast));
    check_kept(runs.log());
  };
  const std::string program = CONTEXTUNE_TEST_CHOICE_CLIENT;
  CHECK(runs.run({}, first).status == 0);
  searched(first, 0, 0, program);
  searched("FUNCTION_VERSION=2 CHOICE_VERSION=1 FAST_VERSION=1 ", 1, 0, program);
  searched("FUNCTION_VERSION=2 CHOICE_VERSION=2 FAST_VERSION=1 ", 0, 2, program);
  searched("FUNCTION_VERSION=2 CHOICE_VERSION=2 FAST_VERSION=2 ", 0, 2, program);
  // The version stands for the build.
  searched("FUNCTION_VERSION=2 CHOICE_VERSION=2 FAST_VERSION=2 ", 0, 0, runs.rebuilt());
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

TEST_CASE("An implementation that does not end is named, and the next run is tuned without it",
          "[choice_runs]") {
  const std::string how = GENERATE(as<std::string>(), "hang", "stuck");
  const std::string variables = "CONTEXTUNE_TRIAL_TIMEOUT=0.5 SIMCUDA_FAULT=hang:add:block=96";
  const Runs runs;
  const Ended ended = runs.run(how, variables);
  CHECK(ended.output == "block 128\n");
  CHECK((WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGINT));
  CHECK(lines_with(runs.log(), " reason=trial_timeout ", "{key=8}: implementation=fast") == 1);
  const Ended next = runs.run(how, variables);
  CHECK(next.status == 0);
  CHECK(next.output.starts_with("block 128\n"));
  CHECK(next.output.find("fast state=4 ") != std::string::npos);
  CHECK(next.output.find("middle state=0 samples=2 us=") != std::string::npos);
  CHECK(lines_with(runs.log(), "reason=config_crashed", "'implementation=fast' of 'add{key=8}'") ==
        1);
  CHECK(lines_with(runs.log(), " event=trial ", "region=scale{} ") == 0);  // nor is that lost
}

TEST_CASE("Winners that were found with other software are confirmed before they count",
          "[choice_runs]") {
  const Runs runs;
  const Ended first = runs.run();
  check_tuned(runs.log());
  CHECK(runs.run("", "SIMCUDA_VERSION=13.1").output == first.output);
  const std::string log = runs.log();
  CHECK(lines_with(log, " event=trial ") == 0);
  CHECK(lines_with(log, " event=confirm ", " verdict=kept ") == num_searches);
  CHECK(lines_with(log, " event=winner ", " reason=stored ") == num_searches);
  // Then they are winners with this software too.
  CHECK(runs.run("", "SIMCUDA_VERSION=13.1").output == first.output);
  check_kept(runs.log());
}

TEST_CASE("Winners that are no faster with other software are found anew", "[choice_runs]") {
  const Runs runs;
  CHECK(runs.run().output.starts_with("block 128\n"));
  const Ended other = runs.run("slow", "SIMCUDA_VERSION=13.1");
  CHECK(other.output.starts_with("block 256\n"));
  CHECK(what_won(other).find("middle state=0 samples=2 winner\n") != std::string::npos);
  CHECK(lines_with(runs.log(), " reason=stale_winners ") == num_searches);
  CHECK(runs.run("slow", "SIMCUDA_VERSION=13.1").output == other.output);
  CHECK(lines_with(runs.log(), " event=trial ") == 0);
}

TEST_CASE("With version_check, what was found with other software is tuned again",
          "[choice_runs]") {
  const Runs runs;
  const Ended first = runs.run();
  CHECK(runs.run("", "CONTEXTUNE_VERSION_CHECK=1").output == first.output);
  check_kept(runs.log());
  const std::string other = "SIMCUDA_VERSION=13.1 CONTEXTUNE_VERSION_CHECK=1";
  const Ended again = runs.run("", other);
  CHECK(what_won(again) == what_won(first));
  check_tuned(runs.log());
  CHECK(runs.run("", other).output == again.output);
  check_kept(runs.log());
}

TEST_CASE("With always_tune all is tuned as if nothing were stored, and stored again",
          "[choice_runs]") {
  const Runs runs;
  const Ended first = runs.run();
  for (int i = 0; i < 2; ++i) {
    CHECK(what_won(runs.run("", "CONTEXTUNE_ALWAYS_TUNE=1")) == what_won(first));
    check_tuned(runs.log());
  }
  CHECK(runs.run("slow", "CONTEXTUNE_ALWAYS_TUNE=1").output.starts_with("block 256\n"));
  CHECK(runs.run().output.starts_with("block 256\n"));
  CHECK(lines_with(runs.log(), " event=trial ") == 0);
}
