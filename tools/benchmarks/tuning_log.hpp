#pragma once

#include <string>

namespace tuning_bench {

/// Where the time of one tuning went, from the lines of its rank log. Seconds.
struct Parts {
  double open = 0;  ///< of CUPTI
  double table = 0;
  double refine = 0;
  double confirm = 0;
  double release = 0;  ///< of CUPTI, closing included
  int table_passes = 0;
  std::string timer;
};

/// @throws std::runtime_error if the log cannot be read or tells of no tuning
[[nodiscard]] Parts read_parts(const std::string& folder);

}  // namespace tuning_bench
