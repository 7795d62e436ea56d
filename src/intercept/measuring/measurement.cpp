#include "intercept/measuring/measurement.hpp"

#include <algorithm>
#include <utility>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {

Measurement::Measurement(TimerKind kind, Timers timers, EventLog& log)
    : timers_(std::move(timers)),
      log_(log),
      cupti_(std::move(timers_.presence), log, mutex_),
      name_("events") {
  wanted_.push_back(false);  // there is no search 0
  inboxes_.emplace_back();
  chosen_ = timers_.events.get();
  if (kind == TimerKind::Events) return;
  if (timers_.cupti != nullptr) {
    chosen_ = timers_.cupti.get();
    name_.store(chosen_->name(), std::memory_order_relaxed);
  } else {
    log_.fallback(FallbackReason::NoCupti, {}, {}, timers_.why_no_cupti);
  }
}

std::uint16_t Measurement::add_search() {
  const std::lock_guard lock(mutex_);
  if (wanted_.size() > 0xffffU) return 0;
  wanted_.push_back(false);
  inboxes_.emplace_back();
  return static_cast<std::uint16_t>(wanted_.size() - 1);
}

bool Measurement::want(std::uint16_t search, bool wanted) {
  const std::lock_guard lock(mutex_);
  if (wanted_[search] != wanted) {
    wanted_[search] = wanted;
    num_wanted_ = wanted ? num_wanted_ + 1 : num_wanted_ - 1;
  }
  if (num_wanted_ == 0) {
    if (open_.load(std::memory_order_relaxed) != nullptr) close_locked();
    cupti_.set_in_use(false);
    return true;
  }
  if (open_.load(std::memory_order_relaxed) != nullptr) return true;
  cupti_.set_in_use(true);
  if (open_locked()) return true;
  if (wanted) {
    wanted_[search] = false;
    --num_wanted_;
    cupti_.set_in_use(num_wanted_ != 0);
  }
  return !wanted;
}

void Measurement::say(const char* action, double begin) {
  log_.lines().write(LogLevel::Info, "timer",
                     {{"action", action},
                      {"timer", chosen_ != nullptr ? chosen_->name() : ""},
                      {"time_us", (now_seconds() - begin) * 1e6}});
}

bool Measurement::open_locked() {
  std::string why;
  const bool is_cupti = chosen_ != nullptr && chosen_ == timers_.cupti.get();
  const double begin = now_seconds();
  if (chosen_ != nullptr && (is_cupti ? cupti_.open(*chosen_, why) : chosen_->open(why))) {
    say("open", begin);
    dropped_seen_ = chosen_->dropped();
    if (timers_.clock != nullptr) timers_.clock->watch(true);
    name_.store(chosen_->name(), std::memory_order_relaxed);
    open_.store(chosen_, std::memory_order_release);
    return true;
  }
  if (is_cupti) {
    log_.fallback(FallbackReason::NoCupti, {}, {}, why);
    chosen_ = timers_.events.get();
    return open_locked();
  }
  log_.fallback(FallbackReason::NoSamples, {}, {},
                "No launch can be timed: " + (why.empty() ? "there is no timer." : why));
  return false;
}

void Measurement::close_locked() {
  LaunchTimer* timer = open_.exchange(nullptr, std::memory_order_acq_rel);
  timer->flush(false);
  timer->collect(arrived_);
  const double begin = now_seconds();
  timer->close();
  say("close", begin);
  collect_locked();
  if (timers_.clock != nullptr) timers_.clock->watch(false);
}

void Measurement::collect_locked() {
  // Both: after a change from one to the other, the old one may still deliver.
  if (timers_.cupti != nullptr) timers_.cupti->collect(arrived_);
  if (timers_.events != nullptr) timers_.events->collect(arrived_);
  for (const TimedWork& work : arrived_) {
    const WorkTag tag = WorkTag::unpack(work.tag);
    if (tag.search != 0 && tag.search < inboxes_.size()) inboxes_[tag.search].push_back(work);
  }
  arrived_.clear();
  if (const LaunchTimer* timer = open_.load(std::memory_order_relaxed)) {
    const std::uint64_t dropped = timer->dropped();
    if (dropped != dropped_seen_) losses_.fetch_add(1, std::memory_order_release);
    dropped_seen_ = dropped;
  }
}

void Measurement::poll(bool wait) {
  const std::lock_guard lock(mutex_);
  LaunchTimer* timer = open_.load(std::memory_order_relaxed);
  if (timer == nullptr) return collect_locked();
  // Only CUPTI's flush is dear. It costs at most a fifth of the time; that the thread lost the
  // processor in mid-flush once does not count.
  constexpr double share = 5;
  constexpr double most_cost = 1e-3;
  const double pause = share * std::min(poll_cost_, most_cost);
  if (!wait && timer == timers_.cupti.get() && now_seconds() - last_poll_ < pause) return;
  flush_locked(wait);
}

void Measurement::make_room() {
  const std::lock_guard lock(mutex_);
  if (open_.load(std::memory_order_relaxed) != nullptr) flush_locked(false);
}

void Measurement::flush_locked(bool wait) {
  const double begin = now_seconds();
  open_.load(std::memory_order_relaxed)->flush(wait);
  collect_locked();
  last_poll_ = now_seconds();
  poll_cost_ = last_poll_ - begin;
}

void Measurement::take(std::uint16_t search, std::vector<TimedWork>& work) {
  const std::lock_guard lock(mutex_);
  auto& inbox = inboxes_[search];
  work.insert(work.end(), inbox.begin(), inbox.end());
  inbox.clear();
}

void Measurement::give_up_cupti(const char* entry_point) {
  const std::lock_guard lock(mutex_);
  if (timers_.cupti == nullptr || chosen_ != timers_.cupti.get()) return;
  const bool was_open = open_.load(std::memory_order_relaxed) != nullptr;
  if (was_open) close_locked();
  chosen_ = timers_.events.get();
  log_.fallback(FallbackReason::ProgramUsesCupti, {}, {},
                std::string("contextune closed its CUPTI, because the program calls ") +
                    entry_point + "; CUDA events are used from now on.");
  // Passes that are under way have launches timed by neither or by both.
  losses_.fetch_add(1, std::memory_order_release);
  if (was_open) (void)open_locked();
}

ClockReading Measurement::read_clock() {
  const std::lock_guard lock(mutex_);
  return timers_.clock == nullptr ? ClockReading{} : timers_.clock->read();
}

}  // namespace contextune::intercept
