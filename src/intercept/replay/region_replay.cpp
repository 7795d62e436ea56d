#include "intercept/replay/region_replay.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/recording/declined.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

constexpr double idle_seconds = RegionMemory::idle_seconds;
constexpr double leave_seconds = 1;  // for other threads to come back from the driver
// For a replay that waits for other ranks. A rank that stands still for a while keeps them in NCCL
// without contextune, too.
constexpr double together_seconds = 600;
// Visits that were recorded in vain, because something came or went in them.
constexpr std::uint64_t most_visits = 8;

}  // namespace

RegionReplay::RegionReplay(LaunchRegion& region, const RegionServices& services,
                           const Options& options, Search& search, SiteTable& table)
    : region_(region),
      services_(services),
      options_(options),
      tolerance_(ResultTolerance::parse(options.tolerance).value_or(ResultTolerance{})),
      search_(search),
      table_(table),
      ranks_(region, services, options_),
      memory_(services, options_, tolerance_),
      comparison_(region, services, search, ranks_, tolerance_) {}

RegionReplay::~RegionReplay() = default;

void RegionReplay::find_ranks() {
  if (region_.collectives() != nullptr) ranks_.find();
}

bool RegionReplay::begin_visit(bool thread_bound) noexcept {
  // Memory that another region is at work on would not be what the program has.
  Recording::Obstacle obstacle{FallbackReason::OtherRegion, {}, true};
  const bool claimed = !services_.recorder.busy() && services_.gate.claim();
  if (claimed || ranks_.any()) ++visits_;
  try {
    find_ranks();
    if (claimed) record(thread_bound);
  } catch (const Declined& declined) {
    obstacle = declined.obstacle;
  } catch (const std::exception& error) {
    obstacle = {FallbackReason::ReplayFailed, error.what(), false};
  }
  memory_.note_own_bytes();
  if (recording_) return true;
  if (claimed) {
    drop_memory();
    finish_visit();
  }
  if (!ranks_.any()) {
    decline(obstacle);
    return false;
  }
  refusal_ = std::move(obstacle);
  return true;
}

void RegionReplay::record(bool thread_bound) {
  find_context();
  memory_.note_variables();
  // Memory is looked at and copied: another thread that gives memory back meanwhile would take it
  // from under the copy, and one that writes would write to half of it.
  const ReplayGate::Closed others(services_.gate);
  if (!services_.gate.others_left(leave_seconds) &&
      services_.measurement.cupti().program_has_other_threads()) {
    decline_for(FallbackReason::OtherThread,
                "When the region began, another thread may have been inside a call of the driver.",
                true);
  }
  // What it has begun is not in the recording, and its end is not shown.
  if (services_.gate.any_in_message()) {
    decline_for(FallbackReason::OtherThread,
                "When the region began, another thread was inside a call of NCCL.", true);
  }
  wait_at_begin(leave_seconds);  // they may have gone on
  const auto versions = services_.recorder.versions();
  memory_.prepare();
  const auto first_launch = [this](const KnownKernel& kernel) { return memory_.look_at(kernel); };
  const auto limits = memory_.copy_limits();
  services_.gate.watch(true);
  recording_ = services_.recorder.begin(thread_bound, versions, limits.host_bytes, first_launch,
                                        [this](std::size_t bytes) { drop_memory(bytes); });
}

void RegionReplay::find_context() {
  memory_.find_context();
  wait_at_begin(idle_seconds);
}

void RegionReplay::go_on_unless_stopped() const {
  if (services_.stopped.load()) decline_for(FallbackReason::ReplayFailed, "Tuning has ended.");
}

void RegionReplay::wait_at_begin(double seconds) {
  go_on_unless_stopped();
  if (services_.captures.any()) decline_for(FallbackReason::Capture, {}, true);
  std::string why;
  // The time since a wait in vain, for another region or to free copies, is not waited again.
  seconds = std::max(0.0, seconds - busy_seconds(memory_.context()));
  if (!wait_until_idle(services_.driver, memory_.context(), seconds, why, &services_.captures)) {
    decline_for(FallbackReason::NotIdle, "When the region began, " + why + ".");
  }
}

void RegionReplay::finish_visit() noexcept {
  memory_.end_watch();  // for as much as it looks at, it takes many megabytes
  services_.gate.watch(false);
  services_.gate.release();
}

void RegionReplay::drop_memory(std::optional<std::size_t> wanted) noexcept {
  const auto obstacle = memory_.drop(wanted);
  if (obstacle && !given_up_) decline(*obstacle);
}

void RegionReplay::forget_context(CUcontext context, bool gone) noexcept {
  memory_.forget_context(context, gone);
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
  memory_.set_in_use(true);
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
  ranks_.end();
  memory_.set_in_use(false);
  drop_memory();
  // A program that never lets the GPU become idle again has no better moment.
  if (search_.finished()) services_.measurement.cupti().release_now();
  // Its handler may end the program within this call, where an end writes nothing more.
  if (services_.gate.signal_waits()) services_.log.lines().flush();
  services_.gate.open();
  finish_visit();
  search_.ranks().occupied(0, {});  // what other ranks were to wait for is over
}

void RegionReplay::wait_for_others() noexcept {
  if (!services_.recorder.active()) return;
  try {
    // Those that wait for work of the region come back when it is done.
    std::string why;
    if (services_.captures.any())
      return services_.recorder.obstruct(FallbackReason::Capture, {}, true);
    if (!wait_until_idle(services_.driver, memory_.context(), idle_seconds, why,
                         &services_.captures)) {
      return services_.recorder.obstruct(FallbackReason::NotIdle,
                                         "When the region ended, " + why + ".");
    }
    // A replay would write over work that another thread has begun and the GPU not yet. Inside
    // NCCL, that thread may hold what the replay's own calls need.
    const bool left = services_.gate.others_left(leave_seconds);
    const double until = now_seconds() + leave_seconds;
    while (process_collectives().any_under_way() && now_seconds() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (process_collectives().any_under_way()) {
      return services_.recorder.obstruct(FallbackReason::OtherThread,
                                         "Another thread is inside a call of NCCL.", true);
    }
    if (left || !services_.measurement.cupti().program_has_other_threads()) return;
    services_.recorder.obstruct(FallbackReason::OtherThread,
                                "Another thread may be inside a call of the driver.", true);
  } catch (const std::exception& error) {
    services_.recorder.obstruct(FallbackReason::ReplayFailed, error.what());
  }
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
    ranks_.leave(std::string("a replay failed: ") + error.what());
    throw;
  }
}

void RegionReplay::check(const Recording& recording) {
  if (recording.obstacle) throw Declined{*recording.obstacle};
  go_on_unless_stopped();
  if (services_.captures.any()) decline_for(FallbackReason::Capture, {}, true);
  if (recording.operations.empty()) return;
  std::string why;
  if (!wait_until_idle(services_.driver, memory_.context(), idle_seconds, why,
                       &services_.captures)) {
    decline_for(FallbackReason::NotIdle, "When the region ended, " + why + ".");
  }
  if (memory_.host().keep_unexplained(recording) &&
      services_.measurement.cupti().program_has_other_threads()) {
    decline_for(FallbackReason::HostMemory,
                "Host memory within the GPU's reach changed in the region, and no copy did that.");
  }
  memory_.finish();
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
    if (refusal.empty() && !ranks_.any() && !vote.communicators.empty())
      refusal =
          "The region's collectives wait for ranks that are not tuned together with this rank.";
    if (!refusal.empty()) own = {FallbackReason::Collective, std::move(refusal), false};
  }
  if (!own && ranks_.any() && ranks_.lockstep().waited_seconds() > options_.presync_timeout &&
      replays_ == 0) {
    own = {FallbackReason::Collective, "The region's ranks come to its end too far apart.", false};
  }
  if (!ranks_.any()) {
    if (own) throw Declined{std::move(*own)};
    return;
  }
  vote.can = !own;
  if (own) {
    vote.may_later = own->retry && visits_ < most_visits;
    vote.why = own->text.empty() ? std::string(fallback_info(own->reason).sentence) : own->text;
  }
  const ReplayVerdict verdict = ranks_.vote(vote);
  if (verdict.replays) return;
  if (!own) own = {FallbackReason::Collective, verdict.why, false};
  own->retry = verdict.may_later;
  throw Declined{std::move(*own)};
}

Replayer::Patience RegionReplay::patience() const {
  // With others, one of them may be late for reasons of its own.
  constexpr double allowance = 10;
  return ranks_.together()
             ? Replayer::Patience{together_seconds, allowance * options_.trial_timeout}
             : Replayer::Patience{RegionMemory::step_seconds, options_.trial_timeout};
}

void RegionReplay::carry_out(Recording recording) {
  const double begin = now_seconds();
  Replayer replayer(region_, services_, search_, table_, memory_.context(), std::move(recording),
                    tolerance_, patience());
  VisitTrials trials(region_, services_, search_, table_, replayer, memory_, ranks_, comparison_,
                     visits_);
  ranks_.begin();
  if (ranks_.together()) search_.ranks().repeat_together({});
  std::exception_ptr failure;
  try {
    trials.tune();
  } catch (const MixedMemory&) {
    throw;
  } catch (const StuckReplay&) {
    throw;
  } catch (...) {
    failure = std::current_exception();
  }
  replays_ += trials.number();
  if (failure) wait_after_failure(replayer);
  memory_.copies().restore_final();
  if (failure) std::rethrow_exception(failure);
  given_up_ = visits_ >= most_visits && !search_.finished();
  write_line(replayer, trials, now_seconds() - begin);
}

void RegionReplay::wait_after_failure(Replayer& replayer) {
  std::string why;
  try {
    const double seconds = ranks_.together() ? together_seconds : idle_seconds;
    if (wait_until_idle(services_.driver, memory_.context(), seconds, why)) return;
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

void RegionReplay::memory_is_lost(const std::string& why) noexcept {
  // Another thread ends the program, and what it has of device memory nobody can look at any more.
  if (gpu::has_ended(services_.driver)) {
    (void)memory_.host().put_back();
    return decline({FallbackReason::ReplayFailed,
                    "The program ended, and the driver with it, before the replay did.", false});
  }
  std::string text = "contextune: the replay of region '" + region_.name() +
                     "' failed and the program's memory cannot be put back: " + why +
                     "; the program is stopped here, since its results would be wrong.";
  // Its process ends by our own hand, whoever looks after it.
  const std::string next = services_.store.journal().hung();
  text += next.empty() ? " Run it with --mode live.\n" : " " + next + "\n";
  services_.log.fault(text);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

void RegionReplay::write_line(const Replayer& replayer, const VisitTrials& trials,
                              double seconds) noexcept {
  const ReplayMemory::Costs& costs = memory_.copies().costs();
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
  if (trials.repeats()) event.timed_after = *trials.repeats() ? "itself" : "restore";
  event.why_restored = trials.why_restored();
  if (ranks_.together()) {
    event.num_ranks = ranks_.lockstep().ranks().size();
    event.waited_seconds = ranks_.lockstep().waited_seconds();
    event.longest_wait_seconds = ranks_.lockstep().longest_wait_seconds();
  }
  event.simulated = services_.log.simulated();
  log::write_replay(services_.log.lines(), event);
}

}  // namespace contextune::intercept
