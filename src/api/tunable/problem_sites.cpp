#include "api/tunable/problem_sites.hpp"

namespace contextune::api {

ProblemSite* ProblemSites::find(const intercept::Region* region, int device) const noexcept {
  for (ProblemSite* site = last(); site != nullptr; site = site->next)
    if (site->region == region && site->device == device) return site;
  return nullptr;
}

ProblemSite* ProblemSites::find_settled(int device) const noexcept {
  for (ProblemSite* site = last(); site != nullptr; site = site->next)
    if (site->device == device && site->site != nullptr && site->region->finished()) return site;
  return nullptr;
}

ProblemSite* ProblemSites::add(intercept::Region& region, int device, intercept::Site* site) {
  auto* const added = new ProblemSite{&region, device, site, last()};
  while (!last_.compare_exchange_weak(added->next, added, std::memory_order_acq_rel)) {
  }
  return added;
}

}  // namespace contextune::api
