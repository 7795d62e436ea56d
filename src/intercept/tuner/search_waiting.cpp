// Entries of a body or a replay, where other ranks are waited for, and how a search ends early.
#include "core/value/fallback_reason.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {
namespace {

// That may come without a pass, in one entry.
constexpr int most_agreements = 64;

}  // namespace

bool Search::begin_waiting(const std::function<bool()>& synchronise,
                           const std::function<bool()>& interrupted) {
  const bool counted = begin_waited(synchronise, interrupted);
  storing_.await_saved();
  return counted;
}

bool Search::begin_waited(const std::function<bool()>& synchronise,
                          const std::function<bool()>& interrupted) {
  // Each round brings everything that is under way, so the next one goes on; the bound is for an
  // engine that waits for something else.
  int agreements = 0;
  for (int round = 0; round < 8;) {
    bool waits_for_ranks = false;
    {
      const std::lock_guard lock(mutex_);
      if (nothing_to_do()) return false;
      if (round == 0) {
        timers_.poll(false);
        drain(false, now_seconds());
      }
      const PassPlan plan = plan_entry(now_seconds(), false);
      after_change();
      if (plan.counted) return true;
      waits_for_ranks = plan.waiting == Waiting::Ranks;
      drop_open_entry();
      // Whoever is to wait for the others does so, though it may be for nothing: see leave().
      if (plan.waiting == Waiting::Pause || (nothing_to_do() && !waits_for_ranks)) return false;
    }
    // Each agreement brings a pass or a reason why there is none.
    if (waits_for_ranks) {
      tuning_->ranks().await(interrupted);
      if (interrupted && interrupted()) return false;
      if (++agreements < most_agreements) continue;
    }
    ++round;
    const bool idle = synchronise();
    if (idle) timers_.poll(true);
    const std::lock_guard lock(mutex_);
    if (idle) {
      note_survived(probation_.winners());
      drain(true, now_seconds());
    } else {
      overrun();
    }
    after_change();
  }
  return false;
}

void Search::stop(FallbackReason reason, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (end_.is_stopped()) return;
  log_.fallback(reason, region_, {}, text);
  reports_.agreement().note(reason, text);
  leave(text.empty() ? std::string(fallback_info(reason).sentence) : text);
  drop_open_entry();
  passes_.forget_awaited();
  settle_all();
  after_change();
}

void Search::leave(std::string why) {
  end_.stop();
  probation_.stop();
  if (why.ends_with('.')) why.pop_back();
  tuning_->ranks().leave(why);
}

}  // namespace contextune::intercept
