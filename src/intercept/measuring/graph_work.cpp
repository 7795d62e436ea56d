#include "intercept/measuring/graph_work.hpp"

#include <algorithm>
#include <map>

namespace contextune::intercept {

bool GraphRecord::arrived(const TimedWork& kernel) {
  kernels_.push_back(kernel);
  return kernels_.size() == work_->kernels.size();
}

std::vector<GraphRecord::Share> GraphRecord::shares() const {
  std::vector<TimedWork> ran = kernels_;
  std::ranges::stable_sort(ran, {}, &TimedWork::start);
  std::map<std::uint64_t, std::vector<double>> times;  // by shape, in the order of their starts
  for (const TimedWork& one : ran) times[one.shape].push_back(one.end - one.start);
  for (const std::uint64_t shape : work_->tied) {
    auto& tied = times[shape];
    double sum = 0;
    for (const double seconds : tied) sum += seconds;
    for (double& seconds : tied) seconds = sum / static_cast<double>(tied.size());
  }
  std::map<std::uint64_t, std::size_t> taken;
  std::map<SiteIndex, Share> shares;
  for (const GraphWork::Kernel& kernel : work_->kernels) {
    const auto& of_shape = times[kernel.shape];
    const std::size_t next = taken[kernel.shape]++;
    if (next >= of_shape.size()) return {};
    if (kernel.site == no_site) continue;
    Share& share = shares[kernel.site];
    share.site = kernel.site;
    share.seconds += of_shape[next];
    ++share.launches;
  }
  std::vector<Share> all;
  all.reserve(shares.size());
  for (const auto& [site, share] : shares) all.push_back(share);
  return all;
}

}  // namespace contextune::intercept
