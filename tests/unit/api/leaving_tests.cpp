#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "catch.hpp"

namespace {

struct Ended {
  std::string output;
  int status = 0;
  bool operator==(const Ended&) const = default;
};

Ended run(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ended ended;
  std::array<char, 256> buffer{};
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) {
    ended.output += buffer.data();
  }
  ended.status = pclose(pipe);
  return ended;
}

}  // namespace

TEST_CASE("A program that ends inside a region ends as it would without contextune", "[leaving]") {
  const std::string client = CONTEXTUNE_TEST_LEAVING_CLIENT;
  for (const char* how :
       {"exit", "quick_exit", "abort", "throw", "sigterm", "sigkill", "thread", "slow", "end"}) {
    INFO(how);
    const Ended tuned = run("exec " + client + " " + how);
    const Ended untuned = run("CONTEXTUNE_DISABLE=1 exec " + client + " " + how);
    CHECK(tuned.output == untuned.output);
    CHECK(tuned.status == untuned.status);
    CHECK(tuned.output.find("in the region") == 0);
  }
  CHECK(WEXITSTATUS(run(client + " exit").status) == 7);
  CHECK(run(client + " end").output == "in the region\ny is 1\nat exit\n");
}

TEST_CASE("A thread that ends inside of what is tuned ends as it would without contextune",
          "[leaving]") {
  const std::string client = CONTEXTUNE_TEST_THREAD_END_CLIENT;
  const char* way = GENERATE("function", "unsaid", "tunable", "body", "choice", "choice in region",
                             "choice with outputs");
  const std::string how = GENERATE("exit", "cancel", "outside");
  const std::string called = " '" + std::string(way) + "' " + how + " ";
  const Ended untuned = run("CONTEXTUNE_DISABLE=1 exec " + client + called + "1");
  CHECK(untuned.output == std::string(how == "outside" ? "" : "end of work\n") + "end of thread\n" +
                              (how == "exit" ? "left by exit" : "cancelled") +
                              "\nstatus 0, y is 1\n");
  // In the first run; where results are compared; in a trial; and once it runs the winner, or while
  // one problem after the other is searched.
  for (const char* last_run : {"1", "2", "4", how == "outside" ? "40" : "1000"}) {
    INFO(called << last_run);
    const Ended tuned = run("exec timeout 20 " + client + called + last_run);
    CHECK(tuned.output == untuned.output);
    CHECK(tuned.status == untuned.status);
  }
}
