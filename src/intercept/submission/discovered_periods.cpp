#include "intercept/submission/discovered_periods.hpp"

#include <algorithm>
#include <exception>

#include "intercept/host/clock.hpp"
#include "intercept/program/thread_state.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_kernel_names = 4096;

}  // namespace

void DiscoveredPeriods::launch(const contextune_launch& call) noexcept {
  try {
    const std::uint64_t token = token_of(call);
    std::string name;
    bool is_known = false;
    {
      const std::lock_guard lock(mutex_);
      is_known = names_.contains(token) || names_.size() >= most_kernel_names;
    }
    if (!is_known) {
      CUcontext context = nullptr;
      (void)driver_.cuCtxGetCurrent(&context);
      const KnownKernel* const kernel = kernels_.find(call.function, context);
      if (kernel != nullptr) name = kernel->identity.name;
    }
    see(token, name);
  } catch (const std::exception&) {
    // No memory: not seen, then.
  }
}

void DiscoveredPeriods::step(StepKind kind, std::uint64_t identity) noexcept {
  see(step_token(kind, identity), {});
}

void DiscoveredPeriods::see(std::uint64_t token, const std::string& name) noexcept {
  try {
    const double now = now_seconds();
    const std::lock_guard lock(mutex_);
    if (!name.empty()) names_.emplace(token, name);
    const std::uint64_t number = this_thread_number();
    WatchedThreads::Thread* const thread = threads_.find(number, true);
    if (thread == nullptr) return;
    if (first_ == 0) first_ = now;
    last_ = now;
    const PeriodStep step = thread->finder->see(token);
    if (step == PeriodStep::Inside) return;
    Followed& followed = followed_[number];
    if (thread->finder->steps() == 1) followed = {};  // another thread had its place
    if (step == PeriodStep::Begins && followed.period != 0) {
      Timed& timed = followed.periods[followed.period];
      ++timed.entries;
      timed.seconds += now - followed.began;
    }
    const bool begins = step == PeriodStep::Begins || step == PeriodStep::Restarts;
    followed.period = begins ? thread->finder->followed() : 0;
    followed.began = now;
  } catch (const std::exception&) {
    // No memory: not counted, then.
  }
}

void DiscoveredPeriods::list(const WatchedThreads::Thread& thread, std::vector<Listed>& all) {
  auto& periods = followed_[thread.number].periods;
  const std::vector<FoundPeriod> found = thread.finder->found();
  double steps = 0;
  double seconds = 0;
  for (const FoundPeriod& period : found) {
    steps += static_cast<double>(periods[period.id].entries) * period.length;
    seconds += periods[period.id].seconds;
  }
  for (const FoundPeriod& period : found) {
    const Timed timed = periods[period.id];
    if (timed.entries == 0) continue;  // only ever inside of another, or by chance
    auto same = std::find_if(all.begin(), all.end(), [&](const Listed& other) {
      return other.identity == period.identity && other.length == period.length;
    });
    if (same == all.end()) {
      same = all.insert(all.end(), {period.identity, period.length, 0, {}});
      same->region = describe(thread.finder->tokens(period.id));
    }
    ++same->region.threads;
    same->region.entries += period.entries;
    // The others came while another was followed, which holds it or is held by it.
    const double own_steps = static_cast<double>(timed.entries) * period.length;
    const double a_step = steps > own_steps ? (seconds - timed.seconds) / (steps - own_steps)
                                            : timed.seconds / own_steps;
    const auto untimed =
        static_cast<double>(period.entries - std::min(period.entries, timed.entries));
    same->seconds += timed.seconds + untimed * period.length * a_step;
  }
}

FoundRegion DiscoveredPeriods::describe(std::span<const std::uint64_t> tokens) const {
  FoundRegion region = region_of_steps(tokens);
  region.threads = 0;
  for (const std::uint64_t token : tokens) {
    const auto name = names_.find(token);
    if (name == names_.end()) continue;
    region.first = name->second;
    break;
  }
  return region;
}

std::vector<FoundRegion> DiscoveredPeriods::found() {
  const std::lock_guard lock(mutex_);
  std::vector<Listed> all;
  for (const WatchedThreads::Thread& thread : threads_)
    if (thread.finder != nullptr) list(thread, all);
  for (Listed& listed : all) {
    const double elapsed = (last_ - first_) * listed.region.threads;
    listed.region.share = elapsed > 0 ? std::min(1.0, listed.seconds / elapsed) : 0;
  }
  std::stable_sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) {
    return a.region.share > b.region.share;
  });
  std::vector<FoundRegion> regions;
  regions.reserve(all.size());
  for (Listed& listed : all) regions.push_back(std::move(listed.region));
  return regions;
}

}  // namespace contextune::intercept
