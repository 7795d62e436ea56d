#include "intercept/collectives/found_collectives.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/value/stable_hash.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {
namespace {

/// The least number of collectives in an entry: short stretches are joined. A number decides, since
/// ranks are to count alike.
constexpr std::uint32_t least_collectives = 8;
/// By then a region whose winners are stored is finished.
constexpr std::uint64_t entries_of_known_winners = 16;

}  // namespace

void FoundCollectives::start(Make make, std::function<void()> measures, ProcessStore& store,
                             ReplayGate& gate) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    finder_ = std::make_unique<PeriodFinder>();
    make_ = std::move(make);
    measures_ = std::move(measures);
    store_ = &store;
    gate_ = &gate;
    looks_.store(true, std::memory_order_relaxed);
  } catch (const std::exception&) {
    // No memory: collectives keep what NCCL chooses.
  }
}

std::uint64_t FoundCollectives::token_of(const contextune_nccl_call& call) noexcept {
  std::size_t communicator = 0;
  while (communicator < communicators_.size() && communicators_[communicator] != nullptr &&
         communicators_[communicator] != call.comm)
    ++communicator;
  if (communicator < communicators_.size()) communicators_[communicator] = call.comm;
  StableHash hash;
  hash.add(static_cast<std::uint64_t>(call.fn));
  hash.add(static_cast<std::uint64_t>(communicator));
  hash.add(call.count);
  hash.add(static_cast<std::uint64_t>(call.datatype));
  hash.add(static_cast<std::uint64_t>(call.op));
  return hash.value();
}

FoundCollectives::Action FoundCollectives::look(const contextune_nccl_call& call) {
  const std::lock_guard lock(mutex_);
  if (finder_ == nullptr || !looks()) return Action::Nothing;
  Action action = Action::Nothing;
  if (call.kind == contextune_nccl_collective) {
    if (call.group_depth > 0 && !std::exchange(sees_groups_, true)) gate_->show_messages(true);
    const PeriodStep step = finder_->see(token_of(call));
    if (step == PeriodStep::Broken || step == PeriodStep::Restarts) {
      is_due_ = false;
      begun_ = 0;
      action = Action::End;
    }
    if (step == PeriodStep::Begins || step == PeriodStep::Restarts) {
      if (std::exchange(period_, finder_->followed()) != finder_->followed()) begun_ = 0;
      const std::uint32_t length = std::max(1U, finder_->followed_length());
      const std::uint32_t joined = (least_collectives + length - 1) / length;
      if (begun_++ % joined == 0) {
        const std::uint64_t repeated = std::min(finder_->followed_steps(), least_repeated);
        if (repeated == least_repeated) is_due_ = true;
        if (repeated > most_repeated()) most_repeated_.store(repeated, std::memory_order_relaxed);
      }
    }
  }
  const bool may_begin = call.group_depth == 0 && (call.kind == contextune_nccl_collective ||
                                                   call.fn == contextune_fn_ncclGroupStart);
  return may_begin && std::exchange(is_due_, false) ? Action::Begin : action;
}

void FoundCollectives::see(const contextune_nccl_call& call) noexcept {
  if (!looks()) return;
  const Uncancelled uncancelled;
  try {
    switch (look(call)) {
      case Action::Begin:
        if (begins_.exchange(true, std::memory_order_acquire)) return;
        begin_entry();
        begins_.store(false, std::memory_order_release);
        return;
      case Action::End:
        return end_entry();
      case Action::Nothing:
        return;
    }
  } catch (const std::exception&) {
    // No memory: it is not known what it is.
    end_entry();
  }
}

void FoundCollectives::begin_entry() {
  if (!runs_) {
    runs_.emplace(*store_);
    region_ = make_(*runs_);
    if (region_ != nullptr) gate_->show_messages(true);
  }
  if (region_ == nullptr || region_->finished()) {
    end_entry();
    runs_->answered();
    look_no_more();
    return;
  }
  if (++entries_ == entries_of_known_winners) runs_->compares();
  region_->entries().begin_next_in_process();
  open_.store(region_, std::memory_order_release);
  if (region_->is_measuring()) measures_();
}

void FoundCollectives::look_no_more() noexcept {
  const std::lock_guard lock(mutex_);
  if (!looks_.exchange(false)) return;
  if (sees_groups_) gate_->show_messages(false);
  if (region_ != nullptr) gate_->show_messages(false);
}

void FoundCollectives::end_entry() noexcept {
  LaunchRegion* const open = open_.exchange(nullptr, std::memory_order_acq_rel);
  if (open != nullptr) open->entries().end_in_process();
}

}  // namespace contextune::intercept
