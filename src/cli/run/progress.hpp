#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// What is left of the table of a region, on the rank that is furthest behind.
struct TableLeft {
  std::uint64_t configs = 0;  ///< of all sites, tried or not
  std::uint64_t tried = 0;    ///< of them, at least once
  std::uint64_t passes = 0;   ///< that are left at most
  bool is_known = false;      ///< the log says of every site how many passes it takes
};

/// What a log says of it so far. @param each_alone sites do not share their passes
[[nodiscard]] TableLeft table_left(const log::RegionReport& region, bool each_alone);

/// The news of a run, a line each, and where it is. Not thread-safe.
class Progress {
 public:
  /// A region was entered, or its tuning came to another stage.
  [[nodiscard]] std::vector<std::string> news(const std::vector<log::ProcessReport>& processes);

  /// Where the run is, in one line, with what is left where that can be known; empty before there
  /// is anything to tell. @param now seconds of any monotonic clock
  [[nodiscard]] std::string status(const std::vector<log::ProcessReport>& processes, double now);

 private:
  /// How fast the passes of a table have become fewer.
  struct Pace {
    std::string stage;
    double stage_began = 0;
    double began = 0;             ///< when so many were left
    std::uint64_t left_then = 0;  ///< 0: nothing is known yet
    std::uint64_t left_last = 0;
  };

  [[nodiscard]] std::string region_status(const std::string& name,
                                          const std::vector<log::ProcessReport>& processes,
                                          double now);
  [[nodiscard]] static std::string seconds_left(Pace& pace, const TableLeft& left, double now);

  std::map<std::string, std::string> stages_;
  std::map<std::string, Pace> paces_;  ///< by region
};

}  // namespace contextune::cli
