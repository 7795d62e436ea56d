#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "core/trials/timer.hpp"
#include "core/trials/tuning_observer.hpp"

namespace contextune::intercept {

/// The work of one launch of one instantiation of a graph, as far as it is measured.
struct GraphWork {
  struct Kernel {
    std::uint64_t shape = 0;   ///< gpu::kernel_shape
    SiteIndex site = no_site;  ///< whose time it is
  };
  struct Launches {
    SiteIndex site = 0;
    std::uint32_t launches = 0;
  };
  std::vector<Kernel> kernels;   ///< in an order that keeps every dependency
  std::vector<Launches> sites;   ///< each once
  std::set<std::uint64_t> tied;  ///< shapes of several sites' kernels that may run in any order
};

/// The kernel records of one launch of a graph. Which kernel of the graph a record is follows from
/// its shape, and among kernels of one shape from the order in which they ran. Not thread-safe.
class GraphRecord {
 public:
  struct Share {
    SiteIndex site = 0;
    double seconds = 0;
    std::uint32_t launches = 0;
  };

  explicit GraphRecord(std::shared_ptr<const GraphWork> work) : work_(std::move(work)) {}

  /// True: with this one all have come.
  bool arrived(const TimedWork& kernel);

  /// Each site's share of the time. Kernels of one shape that may run in any order get the mean of
  /// their times. Empty: the records are not those of the graph.
  [[nodiscard]] std::vector<Share> shares() const;

 private:
  std::shared_ptr<const GraphWork> work_;
  std::vector<TimedWork> kernels_;
};

}  // namespace contextune::intercept
