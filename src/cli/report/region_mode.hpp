#pragma once

#include <string_view>
#include <unordered_map>

#include "log/run_report.hpp"

namespace contextune::cli {

/// How a region was tuned, as far as its lines tell. A plain value; points into the report.
struct RegionMode {
  std::string_view word;                     ///< "replay" or "live"; empty: the log does not say
  const log::FallbackReport* why = nullptr;  ///< why not in a better way; null: as asked
};

/// How the regions of one process were tuned. Points into its report.
class RegionModes {
 public:
  explicit RegionModes(const log::ProcessReport& process);

  [[nodiscard]] RegionMode of(const log::RegionReport& region) const;

 private:
  bool asked_live_;
  std::unordered_map<std::string_view, const log::FallbackReport*> why_live_;  ///< by region
};

}  // namespace contextune::cli
