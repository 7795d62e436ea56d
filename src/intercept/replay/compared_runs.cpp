#include "intercept/replay/compared_runs.hpp"

#include <utility>

#include "gpu/memory/memory_fill.hpp"

namespace contextune::intercept {

ComparedRuns::Trials ComparedRuns::trials_of(
    const std::function<std::uint32_t(const Site&)>& config_of) const {
  Trials trials;
  for (const Site* site : sites()) {
    const std::uint32_t config = config_of(*site);
    if (!site->pinned && config != 0) trials.emplace_back(site, config);
  }
  return trials;
}

bool ComparedRuns::is_right() {
  // Both look for themselves at what the pass left.
  const bool memory = memory_.is_right();
  return replayer_.host_results_agree() && memory;
}

void ComparedRuns::run_with(const Trials& trials) {
  replayer_.run([&](const Site& site) {
    for (const auto& [tried, config] : trials)
      if (tried == &site) return config;
    return site.pinned.value_or(0);
  });
  ++number_;
}

bool ComparedRuns::is_right_with(const Trials& trials) {
  return ranks_.exchange(is_right_here(trials)).right;
}

bool ComparedRuns::is_right_here(const Trials& trials) {
  memory_.restore_initial();
  if (filled_) memory_.fill(*filled_, fill_seed_);
  ranks_.await(ReplayRanks::Run::Trial);
  search_.screening().begin(trials);
  run_with(trials);
  const bool right = filled_ ? is_right_on_filled() : is_right();
  search_.screening().end();
  return right;
}

bool ComparedRuns::is_right_on_filled() {
  bool right = true;
  if (has_reference_) {
    right = memory_.agrees_with_reference();
  } else {
    try {
      memory_.take_reference();
    } catch (const gpu::NoRoom&) {
      right = false;
    }
    has_reference_ = right;
  }
  right = replayer_.host_agrees_with_reference() && right;
  memory_.put_back();
  return right;
}

bool ComparedRuns::is_pass_right(const std::function<void()>& issued) {
  ranks_.await(ReplayRanks::Run::Pass);
  replayer_.run_pass(issued);
  ++number_;
  return ranks_.exchange(is_right()).right;
}

void ComparedRuns::run_planned() {
  replayer_.run([](const Site& site) { return site.planned(); });
  ++number_;
}

bool ComparedRuns::computes_the_same_again() {
  if (memory_.dirty().empty()) return true;
  memory_.restore_final();
  run_with({});
  const bool memory = memory_.is_final();
  return replayer_.host_results_agree() && memory;
}

void ComparedRuns::fill(std::vector<gpu::MemoryRange> ranges, std::uint32_t number,
                        std::uint64_t time) {
  constexpr std::uint64_t most_numbers = std::uint64_t{1} << 32U;
  filled_ = std::move(ranges);
  fill_seed_ = (visit_ * most_numbers + number) * gpu::Fill::num_kinds + time;
  has_reference_ = false;
}

void ComparedRuns::end_fill() {
  filled_.reset();
  memory_.drop_reference();
  replayer_.forget_reference();
}

}  // namespace contextune::intercept
