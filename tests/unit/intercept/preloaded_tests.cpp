// The demo program on the simulated driver, bare and with the whole of contextune preloaded.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "catch.hpp"
#include "tests/file_text.hpp"
#include "tests/scratch_folder.hpp"

namespace files = std::filesystem;

namespace {

const std::string build = CONTEXTUNE_BINARY_DIR;

/// A folder for one program.
struct Folder : ScratchFolder {
  [[nodiscard]] std::string log() const { return text_of(path("log/rank-0.log")); }
};

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
  bool operator==(const Outcome&) const = default;
};

using Variables = std::map<std::string, std::string>;

Variables preloaded(const Folder& folder) {
  return {{"LD_PRELOAD", build + "/lib/libcontextune_preload.so"},
          {"NVTX_INJECTION64_PATH", build + "/lib/libcontextune_preload.so"},
          {"CONTEXTUNE_REGION", "nvtx:decode"},
          {"CONTEXTUNE_SPACE", build + "/demo/demo.lua"},
          {"CONTEXTUNE_LOG_DIR", folder.path("log")},
          {"CONTEXTUNE_N_WARMUP", "0"},
          {"CONTEXTUNE_N_REPEAT", "1"},
          {"CONTEXTUNE_REFINE", "false"},
          {"CONTEXTUNE_CONFIRM", "false"},
          {"CONTEXTUNE_MAX_SLOWDOWN", "0"}};
}

/// @param kill_on a text in the log upon which the program is killed; empty: never
Outcome demo(const Folder& folder, const Variables& variables, int steps,
             const std::string& kill_on = {}) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    (void)freopen(folder.path("out").c_str(), "w", stdout);
    (void)freopen(folder.path("err").c_str(), "w", stderr);
    setenv("LD_LIBRARY_PATH", (build + "/simcuda").c_str(), 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const std::string program = build + "/demo/contextune_demo";
    // Computed on the host: a quarter of its rows will do.
    execl(program.c_str(), program.c_str(), "--rows", "64", "--steps",
          std::to_string(steps).c_str(), nullptr);
    _exit(127);
  }
  const auto running = [child] {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  };
  while (!kill_on.empty() && running()) {
    if (folder.log().find(kill_on) != std::string::npos) {
      kill(child, SIGKILL);
      break;
    }
    usleep(1000);
  }
  Outcome outcome;
  REQUIRE(waitpid(child, &outcome.status, 0) == child);
  outcome.out = text_of(folder.path("out"));
  outcome.err = text_of(folder.path("err"));
  return outcome;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

}  // namespace

TEST_CASE("The demo computes the same while it is tuned", "[preloaded]") {
  const Folder folder;
  const Outcome bare = demo(folder, {}, 60);
  REQUIRE(bare.status == 0);
  REQUIRE(bare.out.find("checksum") != std::string::npos);
  const std::string mode = GENERATE(std::string("auto"), std::string("live"));
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_MODE"] = mode;
  const Outcome tuned = demo(folder, variables, 60);
  CHECK(tuned == bare);
  const std::string log = folder.log();
  INFO(log);
  CHECK(count(log, " event=start ") == 1);
  CHECK(count(log, " event=replay ") == (mode == "auto" ? 1 : 0));
  CHECK(count(log, " event=site ") == 4);
  CHECK(count(log, " event=winner ") == 4);
  CHECK(log.find("timer=cupti") != std::string::npos);
  CHECK(log.find("simulated=yes") != std::string::npos);
  CHECK(log.find("launches_outside=0") != std::string::npos);
  CHECK(count(log, " event=fault ") == 0);
}

TEST_CASE("The demo is tuned in its first visit of the region", "[preloaded]") {
  const Folder folder;
  const Outcome bare = demo(folder, {}, 2);
  CHECK(demo(folder, preloaded(folder), 2) == bare);
  const std::string log = folder.log();
  INFO(log);
  CHECK(log.find(" event=replay region=decode visit=1 operations=5 ") != std::string::npos);
  CHECK(count(log, " event=winner ") == 4);
}

TEST_CASE("What replay may not copy in the memory that it is given is tuned live", "[preloaded]") {
  const Folder folder;
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_REPLAY_MEMORY"] = "64K";
  CHECK(demo(folder, variables, 60) == demo(folder, {}, 60));
  const std::string log = folder.log();
  INFO(log);
  CHECK(log.find("reason=replay_memory region=decode") != std::string::npos);
  CHECK(count(log, " event=replay ") == 0);
  CHECK(count(log, " event=winner ") == 4);
}

TEST_CASE("A program that is killed leaves what was known", "[preloaded]") {
  const Folder folder;
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_MODE"] = GENERATE(std::string("replay"), std::string("live"));
  const Outcome killed = demo(folder, variables, 100000, "pass=5 ");
  CHECK(WIFSIGNALED(killed.status));
  CHECK(killed.err.empty());
  CHECK(count(folder.log(), " event=trial ") >= 20);
}

TEST_CASE("Switched off there is no log, and nothing else", "[preloaded]") {
  const Folder folder;
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_DISABLE"] = "1";
  CHECK(demo(folder, variables, 20) == demo(folder, {}, 20));
  CHECK_FALSE(files::exists(folder.path("log")));
}

TEST_CASE("Bad input is named in the log and the program is left alone", "[preloaded]") {
  const Folder folder;
  const Outcome bare = demo(folder, {}, 20);
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_N_REPEAT"] = "many";
  variables["CONTEXTUNE_REGION"] = "nvtx:nowhere;graphs";
  variables["CONTEXTUNE_SPACE"] = folder.path("broken.lua");
  variables["CONTEXTUNE_ONLY"] = "(";
  variables["CONTEXTUNE_REPEAT"] = "3";
  variables["CONTEXTUNE_HOME_OF_OTHERS"] = "3";
  std::ofstream(folder.path("broken.lua")) << "kernel \"x\" {\n  apply = \n}\n";
  CHECK(demo(folder, variables, 20) == bare);
  const std::string log = folder.log();
  INFO(log);
  CHECK(log.find("CONTEXTUNE_N_REPEAT=many") != std::string::npos);
  CHECK(log.find("broken.lua:") != std::string::npos);
  CHECK(log.find("is no mark; use nvtx:NAME") != std::string::npos);
  CHECK(log.find("option only") != std::string::npos);
  CHECK(log.find("CONTEXTUNE_REPEAT is no variable") != std::string::npos);
  CHECK(log.find("CONTEXTUNE_N_REPEAT is") != std::string::npos);
  CHECK(log.find("OF_OTHERS") == std::string::npos);
  CHECK(log.find("reason=region_never_entered") != std::string::npos);
}

TEST_CASE("A log folder that cannot be written costs only the log", "[preloaded]") {
  const Folder folder;
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_LOG_DIR"] = "/proc/no/such/folder";
  CHECK(demo(folder, variables, 40) == demo(folder, {}, 40));
}

TEST_CASE("Without NVTX's variable the log says why no range is seen", "[preloaded]") {
  const Folder folder;
  Variables variables = preloaded(folder);
  const bool has_variable = GENERATE(true, false);
  if (!has_variable) variables.erase("NVTX_INJECTION64_PATH");
  variables["CONTEXTUNE_REGION"] = "nvtx:nowhere";
  (void)demo(folder, variables, 5);
  const std::string log = folder.log();
  INFO(log);
  CHECK(log.find("reason=region_never_entered") != std::string::npos);
  CHECK((log.find("NVTX_INJECTION64_PATH is not set") != std::string::npos) == !has_variable);
}

TEST_CASE("Every kind of mark leaves the demo's results alone", "[preloaded]") {
  const Folder folder;
  const Outcome bare = demo(folder, {}, 60);
  const std::string region = GENERATE(std::string("process"), std::string("kernel:^rotate"),
                                      std::string("profiler"), std::string("graph"));
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_REGION"] = region;
  variables["CONTEXTUNE_AUTO"] = "true";
  CHECK(demo(folder, variables, 60) == bare);
  const std::string log = folder.log();
  INFO(log);
  if (region == "profiler" || region == "graph") {
    CHECK(log.find("reason=region_never_entered") != std::string::npos);
  } else {
    CHECK(count(log, " event=winner ") >= 4);
    CHECK(log.find("provider=attributes") != std::string::npos);
  }
}

TEST_CASE("Discovery lists the demo's kernels", "[preloaded]") {
  const Folder folder;
  Variables variables = preloaded(folder);
  variables["CONTEXTUNE_DISCOVER"] = "true";
  CHECK(demo(folder, variables, 200) == demo(folder, {}, 200));
  const std::string log = folder.log();
  INFO(log);
  for (const char* kernel : {"rotate", "remember", "attend", "project", "normalise"}) {
    CHECK(log.find(std::string("kernel=") + kernel + " ") != std::string::npos);
  }
  CHECK(log.find("launches=200") != std::string::npos);
  CHECK(count(log, " event=trial ") == 0);
}
