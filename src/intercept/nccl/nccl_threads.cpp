#include "intercept/nccl/nccl_threads.hpp"

#include <algorithm>
#include <exception>
#include <iterator>

#include "intercept/host/thread_census.hpp"

namespace contextune::intercept {
namespace {

/// The group that this thread has open makes communicators, at its end.
constinit thread_local bool group_makes = false;

bool ends_this_group(const contextune_nccl_call& call) noexcept {
  return call.fn == contextune_fn_ncclGroupEnd && call.group_depth <= 1;
}

}  // namespace

void NcclThreads::before(const contextune_nccl_call& call) noexcept {
  if (call.num_made == 0 || group_makes) return;
  group_makes = call.group_depth > 0;
  try {
    const std::lock_guard lock(mutex_);
    if (making_ == 0) before_ = thread_ids();
    ++making_;
  } catch (const std::exception&) {
    // No memory: the threads stay unknown.
  }
}

void NcclThreads::after(const contextune_nccl_call& call) noexcept {
  const bool lone = call.num_made != 0 && call.group_depth == 0;
  if (!lone && !(group_makes && ends_this_group(call))) return;
  group_makes = false;
  try {
    const std::lock_guard lock(mutex_);
    if (making_ == 0 || --making_ != 0 || before_.empty()) return;
    const std::vector<pid_t> now = thread_ids();
    std::vector<pid_t> known;
    // Those that have ended are no longer NCCL's: their numbers are given out again.
    std::set_intersection(ids_.begin(), ids_.end(), now.begin(), now.end(),
                          std::back_inserter(known));
    std::vector<pid_t> started;
    std::set_difference(now.begin(), now.end(), before_.begin(), before_.end(),
                        std::back_inserter(started));
    ids_.clear();
    std::set_union(known.begin(), known.end(), started.begin(), started.end(),
                   std::back_inserter(ids_));
  } catch (const std::exception&) {
    // No memory: the threads stay unknown.
  }
}

std::vector<pid_t> NcclThreads::ids() const {
  const std::lock_guard lock(mutex_);
  return ids_;
}

}  // namespace contextune::intercept
