#pragma once

#include <atomic>

#include "intercept/site/region.hpp"

namespace contextune::api {

/// A problem of a tunable or of a choice in one region, on one device. Written once.
struct ProblemSite {
  intercept::Region* region = nullptr;
  int device = 0;
  intercept::Site* site = nullptr;  ///< null: cannot be tuned there
  ProblemSite* next = nullptr;      ///< that was added before it
};

/// The sites of one problem, the last one first. Any thread, without a lock; none is ever taken
/// away.
class ProblemSites {
 public:
  [[nodiscard]] ProblemSite* last() const noexcept { return last_.load(std::memory_order_acquire); }
  [[nodiscard]] ProblemSite* find(const intercept::Region* region, int device) const noexcept;
  /// The last one in a region that has finished its search; null if there is none.
  [[nodiscard]] ProblemSite* find_settled(int device) const noexcept;
  /// Threads that add the same site at the same time leave it twice, which changes no answer.
  /// @throws std::bad_alloc
  ProblemSite* add(intercept::Region& region, int device, intercept::Site* site);

 private:
  std::atomic<ProblemSite*> last_{nullptr};
};

}  // namespace contextune::api
