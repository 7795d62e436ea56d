#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// The clocks of the hosts of a job, put beside one another: the ranks of a group hear a verdict
/// at nearly the same time, whatever their clocks say.
class HostClocks {
 public:
  explicit HostClocks(const std::vector<const log::ProcessReport*>& processes);

  /// Seconds to be taken from the times of that process, so that they are those of the host of its
  /// run's first rank. 0 where the host is the same or not known, or no verdict was heard on both.
  [[nodiscard]] double ahead(const log::ProcessReport& process) const;

  struct Difference {
    std::string host;
    double ahead = 0;              ///< seconds
    std::size_t num_verdicts = 0;  ///< that say so; 0: there is none, and it is not known
  };
  /// A line for each host but the first of its run.
  [[nodiscard]] const std::vector<Difference>& differences() const { return differences_; }

 private:
  std::map<std::pair<std::string, std::string>, double> ahead_;  ///< by run and host
  std::vector<Difference> differences_;
};

}  // namespace contextune::cli
