#pragma once

#include <map>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// The news of a run, a line each: a region was entered, its tuning came to another stage.
/// Not thread-safe.
class Progress {
 public:
  [[nodiscard]] std::vector<std::string> news(const std::vector<log::ProcessReport>& processes);

 private:
  std::map<std::string, std::string> stages_;
};

/// Where the run is, in one line; empty before there is anything to tell.
[[nodiscard]] std::string status_text(const std::vector<log::ProcessReport>& processes);

}  // namespace contextune::cli
