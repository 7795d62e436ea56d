#include "intercept/measuring/entry_hold.hpp"

#include <algorithm>
#include <cassert>
#include <exception>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {
namespace {

// Launches of a GPU that is never kept waiting follow one another at once.
constexpr double least_idle_share = 0.05;

// The time limit: a host that was interrupted is not taken for a body that waits.
constexpr double times_as_long = 4;
constexpr double least_limit_seconds = 5e-3;
constexpr int most_overruns = 3;

}  // namespace

void EntryHold::heard(const PassRecord& entry) noexcept {
  waits_for_host_ = entry.idle_share() > least_idle_share;
  if (entry.has_calls_of_several()) refuse();
}

void EntryHold::begin_entry() noexcept {
  drop_entry();
  begin_ = now_seconds();
}

void EntryHold::drop_entry() noexcept {
  if (std::exchange(is_held_, false)) (void)hold_->release();
  is_due_ = is_first_run_ = false;
}

void EntryHold::time_entry() noexcept {
  is_due_ = is_wanted();
  is_first_run_ = is_due_ && twice_ && !once_only_;
  has_two_runs_ = is_first_run_;
}

void EntryHold::end_first_run() noexcept {
  is_first_run_ = false;
  if (is_held_) hold_->join();
}

void EntryHold::touch(StreamHandle stream) noexcept {
  if (!is_due_) return;
  if (!is_held_) {
    try {
      if (hold_ == nullptr) hold_ = make_();
    } catch (const std::exception&) {  // no memory
    }
    const double seconds = has_two_runs_ ? 2 * host_seconds_ : host_seconds_;
    is_held_ =
        hold_ != nullptr && hold_->begin(std::max(least_limit_seconds, times_as_long * seconds));
  }
  if (is_held_) {
    const gpu::StreamHold::Refusal why = hold_->add(stream);
    if (why == gpu::StreamHold::Refusal::None) return;
    if (why == gpu::StreamHold::Refusal::Capture) return drop_entry();  // the next one has none
  }
  refusal_ = is_held_ ? Refusal::DriverRefuses : Refusal::NoMemory;
  refuse();
}

void EntryHold::end_entry() noexcept {
  is_first_run_ = false;
  if (!std::exchange(is_held_, false)) {
    host_seconds_ = std::min(host_seconds_, now_seconds() - begin_);
    return;
  }
  overruns_ = hold_->release() ? 0 : overruns_ + 1;
  if (overruns_ < most_overruns) return;
  if (has_two_runs_) {  // perhaps whoever repeats the body waits, and not the body
    once_only_ = true;
    overruns_ = 0;
    return;
  }
  refusal_ = Refusal::BodyWaits;
  refuse();
}

void EntryHold::refuse() noexcept {
  refused_ = true;
  is_due_ = is_first_run_ = is_held_ = false;
  hold_.reset();  // which lets go what is held
}

}  // namespace contextune::intercept
