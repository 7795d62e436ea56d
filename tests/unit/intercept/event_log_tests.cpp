#include "intercept/host/event_log.hpp"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"

using namespace contextune;
using contextune::intercept::EventLog;

TEST_CASE("However often one thing happens, the log tells what else does", "[event_log]") {
  char folder[] = "/tmp/contextune-event-log-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  int failed = 0;
  int sticky = 0;
  {
    EventLog log({folder, 1, "", LogLevel::Info});
    for (int i = 0; i < 5000; ++i)
      log.fallback(FallbackReason::BuildFailed, "step", "gemm", "Number " + std::to_string(i));
    log.fallback(FallbackReason::StickyError, "step", {}, {});
    log.fallback(FallbackReason::StickyError, "step", {}, {});
    log.lines().flush();
    std::ifstream file(log.lines().path());
    for (std::string line; std::getline(file, line);) {
      failed += line.find("reason=build_failed ") != std::string::npos ? 1 : 0;
      sticky += line.find("reason=sticky_error ") != std::string::npos ? 1 : 0;
    }
  }
  std::filesystem::remove_all(folder);
  CHECK(failed == 1025);
  CHECK(sticky == 1);
}
