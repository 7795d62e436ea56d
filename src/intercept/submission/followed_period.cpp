#include "intercept/submission/followed_period.hpp"

#include <algorithm>
#include <utility>

namespace contextune::intercept {
namespace {

constexpr std::uint64_t steps_of_search = 1024;

}  // namespace

FollowedStep FollowedPeriod::see(std::uint64_t token, bool is_launch) {
  WatchedThreads::Thread* const thread = threads_.find(this_thread_number(), is_launch, leader_);
  if (thread == nullptr) return FollowedStep::Ignored;
  seen_ = thread;
  const PeriodStep seen = thread->finder->see(token);
  const bool begins_here = seen == PeriodStep::Begins || seen == PeriodStep::Restarts;
  if (leader_ == 0 && !only_launches_ && thread->finder->steps() % steps_of_search == 0 &&
      thread->finder->finding() == Finding::NothingRepeats) {
    only_launches_ = true;
  }
  bool deserts = false;
  if (leader_ != 0 && leader_ != thread->number) {
    if (!begins_here || !threads_.is_absent(leader_)) return FollowedStep::Ignored;
    leader_ = 0;
    id_ = 0;
    deserts = true;
  }
  const bool is_broken = seen == PeriodStep::Broken || seen == PeriodStep::Restarts;
  if (is_broken) {
    begins_ = false;
    // Where most come to an end, so do those that are a little longer.
    unbroken_entries_ = std::max(std::exchange(begun_entries_, 0), unbroken_entries_ * 3 / 4);
  }
  if (begins_here) begins_ = true;
  if (deserts) return FollowedStep::Deserts;
  return is_broken ? FollowedStep::Broken : FollowedStep::GoesOn;
}

bool FollowedPeriod::follow(CUfunction function) noexcept {
  leader_ = seen_->number;
  const std::uint32_t followed = seen_->finder->followed();
  const bool is_another = std::exchange(id_, followed) != followed;
  if (is_another) {
    first_function_ = function;
    begun_entries_ = unbroken_entries_ = 0;
  }
  ++begun_entries_;
  return is_another;
}

void FollowedPeriod::begin_with_launches() noexcept {
  only_launches_ = true;
  threads_.clear();
  begins_ = false;
  leader_ = 0;
  id_ = 0;
}

std::optional<FoundRegion> FollowedPeriod::region() const {
  if (leader_ == 0) return std::nullopt;
  FoundRegion region;
  FoundPeriod own;
  for (const WatchedThreads::Thread& one : threads_) {
    if (one.number != leader_) continue;
    for (const FoundPeriod& period : one.finder->found())
      if (period.id == id_) own = period;
    region = region_of_steps(one.finder->tokens(id_));
  }
  region.threads = 0;
  for (const WatchedThreads::Thread& one : threads_) {
    if (one.finder == nullptr) continue;
    for (const FoundPeriod& period : one.finder->found()) {
      if (period.identity != own.identity || period.length != own.length) continue;
      region.entries += period.entries;
      ++region.threads;
    }
  }
  return region;
}

std::string FollowedPeriod::first_kernel() const {
  CUcontext context = nullptr;
  (void)driver_.cuCtxGetCurrent(&context);
  const KnownKernel* const first =
      first_function_ != nullptr ? kernels_.find(first_function_, context) : nullptr;
  return first != nullptr ? first->identity.name : std::string();
}

}  // namespace contextune::intercept
