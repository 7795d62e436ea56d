#pragma once

#include <string_view>

#include "log/run_report.hpp"

namespace contextune::cli {

/// How a region was tuned, as far as its lines tell. A plain value; points into the report.
struct RegionMode {
  std::string_view word;                     ///< "replay" or "live"; empty: the log does not say
  const log::FallbackReport* why = nullptr;  ///< why not in a better way; null: as asked
};

[[nodiscard]] RegionMode region_mode(const log::ProcessReport& process,
                                     const log::RegionReport& region);

}  // namespace contextune::cli
