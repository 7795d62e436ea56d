#pragma once

#include <map>
#include <string>

namespace replay_bench {

/// What one tuning did, from the lines of its rank log. Seconds.
struct Tuning {
  int passes = 0;   ///< of the search
  int entries = 0;  ///< of the region until it was over
  double seconds = 0;
  double before = 0;  ///< the region with the defaults, as the confirmation saw it
  double after = 0;   ///< with the winners
  std::map<std::string, std::string> winners;  ///< config by site

  bool replayed = false;
  int visit = 0;
  int replays = 0;  ///< passes, and the runs that show each config to be right
  double replay_seconds = 0;
  double save = 0;     ///< once
  double restore = 0;  ///< before each run
  double hash = 0;     ///< after some
  double footprint_bytes = 0;
  double dirty_bytes = 0;
  double device_bytes = 0;
  double host_bytes = 0;
};

/// @throws std::runtime_error if the log cannot be read or tells of no finished tuning
[[nodiscard]] Tuning read_tuning(const std::string& folder);

}  // namespace replay_bench
