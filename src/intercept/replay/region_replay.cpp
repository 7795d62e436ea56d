#include "intercept/replay/region_replay.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "intercept/host/clock.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/program/replay_gate.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

constexpr double release_seconds = 0.5;
constexpr int most_busy_drops = 8;
// Visits that were recorded in vain, because something came or went in them.
constexpr std::uint64_t most_visits = 8;

}  // namespace

RegionReplay::RegionReplay(LaunchRegion& region, const RegionServices& services,
                           const Options& options, Search& search, SiteTable& table,
                           RegionCollectives* collectives)
    : region_(region),
      services_(services),
      options_(options),
      tolerance_(ResultTolerance::parse(options.tolerance).value_or(ResultTolerance{})),
      search_(search),
      table_(table),
      collectives_(collectives) {}

RegionReplay::~RegionReplay() = default;

void RegionReplay::find_ranks() {
  if (ranks_ != nullptr || collectives_ == nullptr || !collective_calls().has_peers()) return;
  if (auto lockstep = services_.ranks.groups().lockstep_of(region_.name(), options_))
    ranks_ = std::make_unique<ReplayRanks>(std::move(lockstep));
}

bool RegionReplay::begin_visit(bool thread_bound) noexcept {
  // Memory that another region is at work on would not be what the program has.
  Recording::Obstacle obstacle{FallbackReason::OtherRegion, {}, true};
  const bool claimed = !services_.recorder.busy() && services_.gate.claim();
  if (claimed || ranks_ != nullptr) ++visits_;
  try {
    find_ranks();
    if (claimed) record(thread_bound);
  } catch (const Declined& declined) {
    obstacle = declined.obstacle;
  } catch (const std::exception& error) {
    obstacle = {FallbackReason::ReplayFailed, error.what(), false};
  }
  note_own_bytes();
  if (recording_) return true;
  if (claimed) {
    drop_memory();
    finish_visit();
  }
  if (ranks_ == nullptr) {
    decline(obstacle);
    return false;
  }
  refusal_ = std::move(obstacle);
  return true;
}

void RegionReplay::record(bool thread_bound) {
  find_context();
  note_variables();
  // Memory is looked at and copied: another thread that gives memory back meanwhile would take it
  // from under the copy, and one that writes would write to half of it.
  const ReplayGate::Closed others(services_.gate);
  if (!services_.gate.others_left(leave_seconds) &&
      services_.measurement.cupti().program_has_other_threads()) {
    decline_for(FallbackReason::OtherThread,
                "When the region began, another thread may have been inside a call of the driver.",
                true);
  }
  wait_at_begin(leave_seconds);  // they may have gone on
  const auto versions = services_.recorder.versions();
  prepare();
  const auto first_launch = [this](const KnownKernel& kernel) { return look_at(kernel); };
  const auto limits = copy_limits();
  services_.gate.watch(true);
  recording_ = services_.recorder.begin(thread_bound, versions, limits.host_bytes, first_launch,
                                        [this](std::size_t bytes) { drop_memory(bytes); });
}

void RegionReplay::finish_visit() noexcept {
  host_.reset();  // for as much as it looks at, it takes many megabytes
  services_.gate.watch(false);
  services_.gate.release();
}

void RegionReplay::drop_memory(std::optional<std::size_t> wanted) noexcept {
  const std::unique_lock lock(memory_mutex_, std::try_to_lock);
  // Another thread is at it, or may be at look_at.
  if (replaying_.load() || !lock || services_.recorder.busy() || services_.recorder.active())
    return;
  try {
    if (memory_ != nullptr) unneeded_.push_back(std::move(memory_));
    // Waiting for the GPU ends a capture, and so does freeing.
    if (unneeded_.empty() || services_.captures.any()) return;
    if (!wanted && busy_drops_ == most_busy_drops) {
      if (given_up_) return;
      return decline({FallbackReason::NotIdle,
                      "The GPU was at work whenever copies were to be freed, so no more are made.",
                      false});
    }
    // Freeing waits for all work of the context, and that may itself wait for what the program does
    // next: then it is tried again at the next visit. Where the program would not get what it
    // wants, it waits as long as it is let.
    std::string why;
    const double most = wanted && lacks(*wanted) ? idle_seconds : release_seconds;
    const double seconds = std::max(0.0, most - busy_seconds(context_));
    if (!wait_until_idle(services_.driver, context_, seconds, why, &services_.captures)) {
      ++busy_drops_;
      return;
    }
  } catch (const std::exception&) {
    return;  // no memory to note it, or no thread to wait with
  }
  unneeded_.clear();
  busy_drops_ = 0;
  note_own_bytes();
}

void RegionReplay::note_own_bytes() noexcept {
  std::size_t bytes = memory_ == nullptr ? 0 : memory_->costs().device_bytes;
  for (const auto& one : unneeded_) bytes += one->costs().device_bytes;
  const auto difference = static_cast<std::ptrdiff_t>(bytes - own_bytes_);
  services_.memory.own_bytes().add(device_, difference);
  own_bytes_ = bytes;
}

void RegionReplay::forget_context(CUcontext context, bool gone) noexcept {
  if (context != context_ || (memory_ == nullptr && unneeded_.empty())) return;
  services_.recorder.obstruct(FallbackReason::ReplayAllocation, "The region destroys a context.",
                              true);
  if (!gone) drop_memory(0);
  if (services_.recorder.busy()) return;  // by another thread, whose context the program destroys
  const std::lock_guard lock(memory_mutex_);
  // Memory that could not be freed goes with the context; its addresses will be other memory's.
  (void)memory_.release();
  for (auto& one : unneeded_) (void)one.release();
  unneeded_.clear();
  note_own_bytes();
}

void RegionReplay::end_visit() noexcept {
  if (!recording_) {
    try {
      vote({}, std::exchange(refusal_, std::nullopt));
    } catch (const Declined& declined) {
      decline(declined.obstacle);
    } catch (const std::exception& error) {
      refusal_.reset();
      decline({FallbackReason::ReplayFailed, error.what(), false});
    }
    return;
  }
  recording_ = false;
  services_.gate.close();
  if (services_.stopped.load()) {
    // The program ends, and may not have waited for this; the driver is asked nothing more.
    (void)services_.recorder.end();
    services_.gate.open();
    finish_visit();
    return decline({FallbackReason::ReplayFailed, "Tuning has ended.", false});
  }
  wait_for_others();
  Recording recording = services_.recorder.end();
  replaying_.store(true);
  try {
    repeat(std::move(recording));
  } catch (const Declined& declined) {
    decline(declined.obstacle);
  } catch (const RanksLost& error) {
    decline({FallbackReason::NoAgreement, error.what(), false});
  } catch (const MixedMemory& error) {
    memory_is_lost(error.what());
  } catch (const StuckReplay& error) {
    memory_is_lost(error.what());
  } catch (const std::exception& error) {
    decline({FallbackReason::ReplayFailed, error.what(), false});
  }
  together_ = false;
  replaying_.store(false);
  drop_memory();
  // A program that never lets the GPU become idle again has no better moment.
  if (search_.finished()) services_.measurement.cupti().release_now();
  services_.gate.open();
  finish_visit();
  search_.ranks().occupied(0, {});  // what other ranks were to wait for is over
}

void RegionReplay::repeat(Recording recording) {
  std::optional<Recording::Obstacle> obstacle;
  try {
    check(recording);
  } catch (const Declined& declined) {
    obstacle = declined.obstacle;
  } catch (const MixedMemory&) {
    throw;
  } catch (const std::exception& error) {
    obstacle = {FallbackReason::ReplayFailed, error.what(), false};
  }
  vote(recording, std::move(obstacle));
  if (recording.operations.empty()) {
    given_up_ = visits_ >= most_visits;
    return;
  }
  try {
    carry_out(std::move(recording));
  } catch (const std::exception& error) {
    if (together_) ranks_->leave(std::string("a replay failed: ") + error.what());
    throw;
  }
}

void RegionReplay::check(const Recording& recording) {
  if (recording.obstacle) throw Declined{*recording.obstacle};
  go_on_unless_stopped();
  if (services_.captures.any()) decline_for(FallbackReason::Capture, {}, true);
  if (recording.operations.empty()) return;
  std::string why;
  if (!wait_until_idle(services_.driver, context_, idle_seconds, why, &services_.captures)) {
    decline_for(FallbackReason::NotIdle, "When the region ended, " + why + ".");
  }
  if (host_->keep_unexplained(recording) &&
      services_.measurement.cupti().program_has_other_threads()) {
    decline_for(FallbackReason::HostMemory,
                "Host memory within the GPU's reach changed in the region, and no copy did that.");
  }
  try {
    if (!memory_->finish()) learn();
  } catch (const gpu::NoRoom& error) {
    decline_for(FallbackReason::ReplayMemory, error.what());
  }
}

void RegionReplay::vote(const Recording& recording, std::optional<Recording::Obstacle> own) {
  ReplayVote vote;
  if (!own) {
    std::string refusal;
    vote.communicators = communicators_of(recording, refusal);
    const bool may_round =
        process_collectives().space().rounding.allow_rounding && !vote.communicators.empty();
    if (refusal.empty() && may_round && tolerance_.is_bitwise()) {
      refusal =
          "--allow-rounding lets collectives change last bits, and results are compared exactly; "
          "see --tolerance.";
    }
    if (refusal.empty() && ranks_ == nullptr && !vote.communicators.empty())
      refusal =
          "The region's collectives wait for ranks that are not tuned together with this rank.";
    if (!refusal.empty()) own = {FallbackReason::Collective, std::move(refusal), false};
  }
  if (!own && ranks_ != nullptr && ranks_->lockstep().waited_seconds() > options_.presync_timeout &&
      replays_ == 0) {
    own = {FallbackReason::Collective, "The region's ranks come to its end too far apart.", false};
  }
  if (ranks_ == nullptr) {
    if (own) throw Declined{std::move(*own)};
    return;
  }
  vote.can = !own;
  if (own) {
    vote.may_later = own->retry && visits_ < most_visits;
    vote.why = own->text.empty() ? std::string(fallback_info(own->reason).sentence) : own->text;
  }
  const ReplayVerdict verdict = ranks_->vote(vote);
  together_ = verdict.together;
  if (verdict.replays) return;
  if (!own) own = {FallbackReason::Collective, verdict.why, false};
  own->retry = verdict.may_later;
  throw Declined{std::move(*own)};
}

Replayer::Patience RegionReplay::patience() const {
  // With others, one of them may be late for reasons of its own.
  constexpr double allowance = 10;
  return together_ ? Replayer::Patience{together_seconds, allowance * options_.trial_timeout}
                   : Replayer::Patience{step_seconds, options_.trial_timeout};
}

void RegionReplay::carry_out(Recording recording) {
  const double begin = now_seconds();
  Replayer replayer(region_, services_, search_, table_, context_, std::move(recording), tolerance_,
                    patience());
  told_to_stop_ = false;
  repeats_.reset();
  why_restored_.clear();
  if (together_) search_.ranks().repeat_together({});
  std::exception_ptr failure;
  try {
    tune(replayer);
  } catch (const MixedMemory&) {
    throw;
  } catch (const StuckReplay&) {
    throw;
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) wait_after_failure(replayer);
  memory_->restore_final();
  if (failure) std::rethrow_exception(failure);
  given_up_ = visits_ >= most_visits && !search_.finished();
  write_line(replayer, now_seconds() - begin);
}

void RegionReplay::wait_after_failure(Replayer& replayer) {
  std::string why;
  try {
    const double seconds = together_ ? together_seconds : idle_seconds;
    if (wait_until_idle(services_.driver, context_, seconds, why)) return;
  } catch (const std::exception&) {
    // No thread to wait with. Whatever comes of it, memory must not stay as the pass left it.
    try {
      return replayer.wait_for_all();
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  throw StuckReplay(why);
}

void RegionReplay::decline(const Recording::Obstacle& obstacle) noexcept {
  given_up_ = given_up_ || !obstacle.retry || visits_ >= most_visits;
  services_.log.fallback(obstacle.reason, region_.name(), {}, obstacle.text);
}

void RegionReplay::write_line(const Replayer& replayer, double seconds) noexcept {
  const ReplayMemory::Costs& costs = memory_->costs();
  log::ReplayEvent event;
  event.region = region_.name();
  event.visit = visits_;
  event.operations = replayer.num_operations();
  event.replays = replays_;
  event.seconds = seconds;
  event.footprint_bytes = costs.footprint_bytes;
  event.dirty_bytes = costs.dirty_bytes;
  event.device_bytes = costs.device_bytes;
  event.host_bytes = costs.host_bytes;
  event.hash_seconds = costs.hash_seconds;
  event.save_seconds = costs.save_seconds;
  event.restore_seconds = costs.restore_seconds;
  if (repeats_) event.timed_after = *repeats_ ? "itself" : "restore";
  event.why_restored = why_restored_;
  if (together_) {
    event.num_ranks = ranks_->lockstep().ranks().size();
    event.waited_seconds = ranks_->lockstep().waited_seconds();
    event.longest_wait_seconds = ranks_->lockstep().longest_wait_seconds();
  }
  event.simulated = services_.log.simulated();
  log::write_replay(services_.log.lines(), event);
}

}  // namespace contextune::intercept
