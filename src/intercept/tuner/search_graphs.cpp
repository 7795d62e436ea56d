// Launches of graphs within a pass: one call of the driver, work of many sites.
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

std::uint64_t Search::begin_call(SiteIndex site) {
  const std::lock_guard lock(mutex_);
  WorkTag tag = WorkTag::unpack(this->tag(no_site));
  if (open_ != nullptr && static_cast<std::uint32_t>(open_->pass) == tag.pass) {
    tag.slot = open_->begin_call(site);
  }
  return tag.pack();
}

std::uint64_t Search::begin_graph(const std::shared_ptr<const GraphWork>& work) {
  const std::lock_guard lock(mutex_);
  WorkTag tag = WorkTag::unpack(this->tag(no_site));
  if (open_ != nullptr && static_cast<std::uint32_t>(open_->pass) == tag.pass) {
    tag.slot = open_->begin_graph(work);
  }
  return tag.pack();
}

void Search::graph_launched(std::uint64_t packed, const GraphWork& work, bool apart,
                            std::uint32_t records) {
  const std::lock_guard lock(mutex_);
  const WorkTag tag = WorkTag::unpack(packed);
  if (open_ == nullptr || static_cast<std::uint32_t>(open_->pass) != tag.pass) return;
  open_->graph_launched(tag.slot, work, apart, records);
}

}  // namespace contextune::intercept
