#include "intercept/tuner/search_ranks.hpp"

#include <utility>

#include "intercept/host/clock.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

bool SearchRanks::begin_together(const std::function<bool()>& is_ready, double patience) {
  bool is_alone = false;
  {
    const std::lock_guard lock(search_.mutex_);
    const PassRecord* const entry = search_.passes_.entry();
    if (search_.end_.is_stopped() || entry == nullptr) return true;
    auto lockstep =
        entry->agreed && barrier_ == nullptr ? search_.tuning_->ranks().lockstep() : nullptr;
    if (lockstep != nullptr)
      barrier_ = std::make_unique<PassBarrier>(std::move(lockstep), patience);
    is_alone = !entry->agreed || barrier_ == nullptr;
  }
  using Outcome = PassBarrier::Outcome;
  const Outcome outcome = !is_alone    ? barrier_->arrive(is_ready)
                          : is_ready() ? Outcome::Begins
                                       : Outcome::Overran;
  if (outcome == Outcome::Begins) {
    const std::lock_guard lock(search_.mutex_);
    PassRecord* const entry = search_.passes_.entry();
    if (entry != nullptr && entry->row) entry->row->began = now_seconds();
    return true;
  }
  if (outcome == Outcome::Lost) {
    const std::string why = "before a pass, " + barrier_->why();
    std::unique_lock lock(search_.mutex_);
    if (search_.tuning_->ranks().go_on_alone(why)) {
      search_.drop_open_entry();
      barrier_.reset();
      search_.after_change();
      return false;
    }
    lock.unlock();
    search_.stop(FallbackReason::NoAgreement, "All sites run their default: " + why + ".");
    return false;
  }
  const std::lock_guard lock(search_.mutex_);
  search_.drop_open_entry();
  if (outcome == Outcome::Overran) {
    search_.overrun();
  } else {
    search_.tuning_->ranks().cut_short();
  }
  search_.after_change();
  return false;
}

RegionRanks::Answer SearchRanks::ask(const std::function<bool()>& is_ready, double patience,
                                     std::string& why) {
  using Answer = RegionRanks::Answer;
  bool says_yes = false;
  const auto answer = [&] { return says_yes = is_ready(); };
  {
    const std::lock_guard lock(search_.mutex_);
    if (search_.end_.is_stopped()) {
      why = "its search has ended";
      return Answer::Lost;
    }
    const bool is_alone = search_.tuning_->ranks().is_alone();
    auto lockstep = is_alone || barrier_ != nullptr ? nullptr : search_.tuning_->ranks().lockstep();
    if (lockstep != nullptr)
      barrier_ = std::make_unique<PassBarrier>(std::move(lockstep), patience);
    if (!is_alone && barrier_ == nullptr) {
      why = "other ranks may tune it as well, and cannot be asked";
      return Answer::Lost;
    }
    if (is_alone) barrier_.reset();
  }
  if (barrier_ == nullptr) return answer() ? Answer::All : Answer::NotThis;
  switch (barrier_->arrive(answer)) {
    case PassBarrier::Outcome::Begins:
      return Answer::All;
    case PassBarrier::Outcome::Overran:
      return Answer::NotThis;
    case PassBarrier::Outcome::CutShort:
      return Answer::NotAll;
    case PassBarrier::Outcome::Lost:
      break;
  }
  const std::lock_guard lock(search_.mutex_);
  why = barrier_->why();
  barrier_.reset();
  if (!search_.tuning_->ranks().go_on_alone("before a second run, " + why)) return Answer::Lost;
  search_.after_change();
  return says_yes ? Answer::All : Answer::NotThis;
}

void SearchRanks::leave_passes(const std::string& why) {
  if (barrier_ != nullptr) barrier_->leave(why);
}

void SearchRanks::pause() {
  {
    const std::lock_guard lock(search_.mutex_);
    if (search_.end_.is_stopped()) return;
    search_.tuning_->ranks().pause();
    search_.keep_so_far(now_seconds(), true);
  }
  // A signal that waits for this may be the program's last.
  search_.storing_.await_all();
  search_.log_.lines().flush();
}

void SearchRanks::repeat_together(std::span<const std::uint32_t> ranks) {
  const std::lock_guard lock(search_.mutex_);
  if (!search_.end_.is_stopped()) search_.tuning_->ranks().repeat_together(ranks);
}

void SearchRanks::limit_to(std::span<const std::uint32_t> ranks) {
  const std::lock_guard lock(search_.mutex_);
  if (!search_.end_.is_stopped()) search_.tuning_->ranks().limit_to(ranks);
}

void SearchRanks::occupied(double seconds, const std::string& why) {
  const std::lock_guard lock(search_.mutex_);
  if (!search_.end_.is_stopped()) search_.tuning_->ranks().occupied(seconds, why);
}

void SearchRanks::say_untuned(FallbackReason reason, const std::string& text) {
  search_.log_.fallback(reason, search_.region_, {}, text);
  const std::lock_guard lock(search_.mutex_);
  search_.reports_.agreement().note(reason, text);
}

std::string SearchRanks::why_untuned() const {
  const std::lock_guard lock(search_.mutex_);
  return search_.reports_.agreement().why();
}

void SearchRanks::reopen() {
  const std::lock_guard lock(search_.mutex_);
  if (!search_.end_.is_stopped()) search_.end_.reopen();
}

bool SearchRanks::keep_in_step(DecisionPort& port) {
  const std::lock_guard lock(search_.mutex_);
  return !search_.end_.is_stopped() && search_.tuning_->ranks().keep_in_step(port);
}

bool SearchRanks::settle(double now) {
  const std::lock_guard lock(search_.mutex_);
  const bool settled = search_.tuning_->ranks().settle(TuningRanks::Due::Decision, now);
  search_.after_change();
  return settled;
}

}  // namespace contextune::intercept
