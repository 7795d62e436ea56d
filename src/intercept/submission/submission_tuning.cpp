#include "intercept/submission/submission_tuning.hpp"

#include <time.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace contextune::intercept {
namespace {

/// Another thread's step is looked at for a moment.
constexpr std::uint64_t leader_waits_ns = 20'000;
/// In so many steps the longest period would have come three times.
constexpr std::uint64_t steps_without_period = std::uint64_t{3} * PeriodFinder::longest;
/// Launches weigh so much in all before a look pays.
constexpr int least_weight = 256;
/// After so many launches without a look there is none. Programs may begin with NCCL alone.
constexpr std::uint64_t most_without_look = 16384;
/// After so many launches, the winner of an earlier run is not what takes the process down.
constexpr std::uint64_t launches_to_survive = 4 * LaunchBatch::most_launches;
/// Where fewer of these launches than that went out in graphs, it stays so.
constexpr std::uint64_t most_launches_on_probation = 4096;

}  // namespace

SubmissionTuning::SubmissionTuning(const gpu::Driver& driver, KernelTable& kernels,
                                   Submitter& submitter, ChainedGraphs& graphs, SplicedLoads& loads,
                                   CaptureWatch& captures, OpenRegions& open, EventLog& log,
                                   ProcessStore& store, const SubmissionLimits& limits,
                                   double trial_timeout)
    : in_use_(submitter, graphs, loads),
      report_(log, in_use_),
      open_(open),
      in_flight_(driver, captures, log, trial_timeout),
      events_(driver, captures, submitter),
      stored_(store, limits.max_runs),
      costs_(limits),
      period_(driver, kernels),
      blocks_(events_, in_use_, in_flight_, costs_, period_, log) {}

void SubmissionTuning::start(SubmissionChoices choices) noexcept {
  try {
    const Lock lock(mutex_);
    stored_.open();
    choices.may_chain = choices.may_chain && in_use_.loads().is_on();
    if (stored_.was_fatal()) {
      stage_ = Stage::Fatal;
      in_use_.loads().leave_all(false);
      return report_.fallback(
          FallbackReason::ConfigCrashed,
          "Launches stay as written: an earlier run of this program did not come to its end while "
          "they were chained or gathered. `contextune store blamed` says how.");
    }
    in_flight_.begin(stored_);
    bool same_software = true;
    auto earlier = stored_.load(same_software);
    if (earlier && !stored_.tunes()) earlier->doubted = false;
    if (!stored_.tunes() && !(earlier && earlier->verdict.settled)) return;
    search_for(std::make_unique<SubmissionSearch>(choices, costs_.limits(),
                                                  earlier.value_or(SubmissionState{})));
    if (earlier) {
      in_use_.loads().read_only(earlier->images);
      if (stored_.tunes() && search_->doubt_winner(same_software))
        report_.fallback(FallbackReason::DoubtedWinner);
    }
    const bool settled = search_->settled();
    if (settled) stage_ = Stage::Settled;
    in_use_.use(search_->verdict().winner, settled);
    const std::vector<std::uint64_t> kernels = search_->kernels();
    if (settled) in_use_.leave_losers(kernels);
    if (kernels.size() > 1) in_use_.submitter().number_kernels(kernels);
    if (settled) report_winner("as found in an earlier run");
    if (settled && in_use_.submission().is_as_written()) return;
    if (settled) {
      probation_.is_on = true;
    } else if (!in_use_.submission().is_as_written()) {
      begin_to_look();  // an earlier run has, and its winner may be fatal
    }
    watch();
  } catch (const std::exception& error) {
    report_.fallback(FallbackReason::InternalError, error.what());
  }
}

void SubmissionTuning::pin(const PinnedLaunches& pinned) noexcept {
  try {
    const Lock lock(mutex_);
    is_pinned_ = true;
    if (!pinned.in_turns) stage_ = Stage::Settled;
    in_use_.loads().read_others();
    if (pinned.in_turns) {
      search_for(std::make_unique<SubmissionSearch>(SubmissionChoices{}, costs_.limits()));
      search_->take_turns(pinned.submission);
      begin_to_look();
    }
    in_use_.use(pinned.submission, !pinned.in_turns);
    if (pinned.submission.is_as_written()) return;
    watch();
  } catch (const std::exception& error) {
    report_.fallback(FallbackReason::InternalError, error.what());
  }
}

void SubmissionTuning::search_for(std::unique_ptr<SubmissionSearch> search) noexcept {
  search_ = std::move(search);
  blocks_.measure_for(*search_);
}

void SubmissionTuning::weigh(Weighed what) noexcept {
  costs_.see_launch();
  const std::uint64_t seen = seen_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (what == Weighed::LaunchOfNccl) seen_of_nccl_.fetch_add(1, std::memory_order_relaxed);
  // Threads may lose some to each other.
  const int weight = std::max(0, weight_.load(std::memory_order_relaxed) + static_cast<int>(what));
  weight_.store(weight, std::memory_order_relaxed);
  if (weight < least_weight && seen < most_without_look) return;
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !may_look()) return;
  if (weight >= least_weight) return begin_to_look();
  try {
    is_left_to_nccl_ = true;
    in_use_.loads().leave_all(false);
    end_search(Stage::Blocked);
  } catch (const std::exception&) {
    // No memory: launches go out as they do.
  }
}

void SubmissionTuning::begin_to_look() noexcept {
  in_use_.submitter().want_other_calls(true);
  looks_.store(true, std::memory_order_relaxed);
}

void SubmissionTuning::watch() noexcept {
  watches_.store(true, std::memory_order_relaxed);
  open_.watch_always();
}

SubmissionTuning::Lock SubmissionTuning::lock_for_a_while() noexcept {
  constexpr std::uint64_t patience_ns = 1'000'000'000;
  Lock lock(mutex_, std::try_to_lock);
  for (const std::uint64_t begin = monotonic_ns();
       !lock.owns_lock() && monotonic_ns() - begin < patience_ns; (void)lock.try_lock()) {
    timespec pause{0, 100'000};
    (void)nanosleep(&pause, nullptr);
  }
  return lock;
}

double SubmissionTuning::seconds_left_for_loads() noexcept {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  // With a winner from an earlier run, what it saves was measured.
  const bool pays = is_pinned() || (in_use_.submission().chained &&
                                    (search_ == nullptr || search_->verdict().settled));
  return costs_.left_for_loads(search_.get(), in_use_, pays);
}

void SubmissionTuning::spend(double seconds) noexcept {
  const Lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && search_ != nullptr) search_->spend(seconds);
}

CUresult SubmissionTuning::launch(const contextune_launch& call, ThreadState& thread,
                                  bool by_nccl) noexcept {
  if (!is_settled()) {
    if (looks())
      see({token_of(call), Submitter::stream_for(call), call.function});
    else
      weigh(by_nccl ? Weighed::LaunchOfNccl : Weighed::Launch);
  } else if (is_on_probation()) {
    see_probation(Submitter::stream_for(call));
  }
  Submitter& submitter = in_use_.submitter();
  return submitter.is_on() ? submitter.launch(call, thread.submitted)
                           : submitter.launch_as_written(call);
}

void SubmissionTuning::results_may_be_there() noexcept {
  if (is_on_probation()) check_probation();
  if (is_settled() || !looks()) return;
  try {
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;  // whoever has it looks
    if (is_settled() || search_ == nullptr || !events_.are_possible() || !blocks_.is_time_to_read())
      return;
    if (blocks_.any_unread()) read_results();
    if (!blocks_.any_pending()) in_flight_.clear_if_idle();
  } catch (const std::exception&) {
    // Read later.
  }
}

void SubmissionTuning::see_probation(CUstream stream) noexcept {
  try {
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || !probation_.is_on || probation_.survived != nullptr) return;
    in_flight_.add(in_use_.submission(), 0, stream);
    const std::uint64_t launches = ++probation_.launches;
    // Before its graphs are built, gathered launches go out one by one.
    const std::uint64_t gone =
        in_use_.submission().gathered == 0 ? launches : in_use_.submitter().totals().graphs.kernels;
    const bool are_enough = gone >= launches_to_survive || launches >= most_launches_on_probation;
    if (!are_enough || !events_.are_possible()) return;
    probation_.survived = events_.record(stream);
    if (probation_.survived != nullptr) in_use_.submitter().want_other_calls(true);
  } catch (const std::exception&) {
    // Looked at again.
  }
}

void SubmissionTuning::check_probation() noexcept {
  try {
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || !events_.are_possible()) return;
    if (probation_.survived == nullptr) return in_flight_.clear_if_idle();
    const CUresult ended = events_.query(*probation_.survived);
    if (ended == CUDA_ERROR_NOT_READY) return;
    probation_.survived.reset();
    in_use_.submitter().want_other_calls(false);
    if (ended != CUDA_SUCCESS) return;  // so it stays in flight
    probation_.is_on = false;
    in_flight_.clear();
  } catch (const std::exception&) {
    // Looked at again.
  }
}

void SubmissionTuning::step(StepKind kind, std::uint64_t identity) noexcept {
  if (!is_settled() && looks()) see({step_token(kind, identity)});
}

void SubmissionTuning::launches_graph(const GraphCall& call) noexcept {
  if (is_on_probation()) see_probation(call.stream);
  if (is_settled()) return;
  if (!looks()) return weigh(Weighed::Graph);
  const auto identity = reinterpret_cast<std::uintptr_t>(call.exec);
  see({step_token(StepKind::GraphLaunch, identity), call.stream});
}

void SubmissionTuning::see(const Step& step) noexcept {
  try {
    // Another thread may be in the driver with it, on a full stream that only this launch empties.
    Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      if (!period_.leads_here()) return;
      for (const std::uint64_t begin = monotonic_ns();
           !lock.owns_lock() && monotonic_ns() - begin < leader_waits_ns; (void)lock.try_lock()) {
      }
    }
    if (!lock.owns_lock()) return period_.miss();
    if (is_settled() || search_ == nullptr) return;
    costs_.time_step([&] { look(step); });
  } catch (const std::exception&) {
    blocks_.drop_open();
  }
}

void SubmissionTuning::look(const Step& step) {
  const bool is_launch = step.stream != nullptr;
  const bool only_launches = period_.only_launches();
  if (!is_launch && only_launches) return;
  if (period_.take_missed()) blocks_.drop_open();
  const FollowedStep seen = period_.see(step.token, is_launch);
  if (seen == FollowedStep::Ignored) return;
  if (is_launch) costs_.see_launch();
  // Where nothing repeats, at least the program's other calls are left alone.
  if (period_.only_launches() && !only_launches) in_use_.submitter().want_other_calls(false);
  if (seen == FollowedStep::Deserts) {
    blocks_.drop_open();
    blocks_.forget_periods();
  }
  if (seen == FollowedStep::Broken && blocks_.is_open() && blocks_.break_open())
    return period_.begin_with_launches();
  if (!is_launch) return;
  if (period_.take_beginning()) costs_.time_entry([&] { enter(step); });
  period_.see_function(step.function);
  blocks_.add(step.function == nullptr, step.stream);
}

void SubmissionTuning::enter(const Step& step) {
  if (period_.follow(step.function)) blocks_.follow();
  const std::uint64_t now = monotonic_ns();
  if (blocks_.is_held_off(now)) return blocks_.rest();
  if (!blocks_.is_open()) {
    if (events_.are_possible()) blocks_.begin(events_.record(step.stream));
    return;
  }
  switch (blocks_.enter(now, step.stream)) {
    case MeasuredBlocks::Entry::Within:
      return;
    case MeasuredBlocks::Entry::Overlong:
      if (period_.keep_inside()) return blocks_.drop_open();
      return end_block(step.stream);
    case MeasuredBlocks::Entry::Completes:
      return end_block(step.stream);
  }
}

void SubmissionTuning::end_block(CUstream stream) {
  if (!events_.are_possible()) return blocks_.drop_open();
  bool counts = false;
  SubmissionEvents::Event end = blocks_.end(stream, counts);
  if (end == nullptr) return;
  if (counts) read_results();
  if (!is_settled()) blocks_.begin(std::move(end));
}

void SubmissionTuning::read_results() {
  blocks_.read();
  Submitter& submitter = in_use_.submitter();
  if (search_->wants_kernels()) {
    std::vector<std::uint64_t> kernels = submitter.chained_kernels();
    submitter.number_kernels(kernels);
    search_->number_kernels(std::move(kernels));
  }
  tell_step();
  if (search_->settled()) return settle();
  // Looking on would cost the program more, and find out nothing.
  if (search_->is_blocked()) return end_search(Stage::Blocked);
  submitter.want_other_calls(!period_.only_launches() || blocks_.any_unread());
}

void SubmissionTuning::tell_step() {
  const SubmissionStep& step = search_->step();
  if (is_pinned() || step == told_) return;
  // Blocks that are screened go out one after the other, with fewer ways each time: no news.
  const bool is_new = step.kind != told_.kind || step.candidate != told_.candidate ||
                      step.against != told_.against || step.pairs != told_.pairs;
  told_ = step;
  if (is_new) report_.step(step, costs_.seconds_since_first());
}

std::optional<FoundRegion> SubmissionTuning::found_region() const {
  std::optional<FoundRegion> region = period_.region();
  if (!region) return region;
  const double elapsed = costs_.seconds_since_first();
  region->share = elapsed > 0 ? std::min(1.0, blocks_.seconds() / elapsed) : 0;
  return region;
}

void SubmissionTuning::end_search(Stage stage) {
  stage_ = stage;
  in_flight_.clear();  // what was found was survived
  blocks_.forget_pending();
  in_use_.use(search_->verdict().winner, true);
  in_use_.graphs().use_no_other();
  in_use_.submitter().want_other_calls(false);
  if (!in_use_.submission().is_as_written()) return;
  watches_.store(false, std::memory_order_relaxed);
  open_.watch_no_more();
}

void SubmissionTuning::settle() {
  if (is_settled()) return;
  end_search(Stage::Settled);
  FoundRegion region = found_region().value_or(FoundRegion{});
  region.first = period_.first_kernel();
  report_winner(text_of(region));
  save();
  period_.forget_steps();
}

void SubmissionTuning::save() {
  SubmissionState state = search_->state();
  state.run_seconds = costs_.seconds_since_first();
  if (!stored_.save(std::move(state), in_use_.submitter().images())) return;
  report_.fallback(FallbackReason::NotSettled,
                   "Only a part of the region's kernels could be chained: giving all of them "
                   "waits would have taken too long in this run. The next run goes on from here.");
}

void SubmissionTuning::report_winner(const std::string& found) const {
  report_.region(found);
  const SubmissionVerdict verdict = search_->verdict();
  report_.verdict(verdict, gains_of_pairs(search_->state(), verdict.winner));
}

void SubmissionTuning::report_turns() const {
  const auto region = found_region();
  if (!region) {
    return report_.fallback(
        FallbackReason::NothingRepeats,
        "No stretch of the program's launches was seen to repeat, so nothing was compared.");
  }
  report_.region(text_of(*region));
  SubmissionVerdict verdict = search_->verdict_of_turns();
  const SubmissionState state = search_->state();
  std::vector<double> gains;
  if (!state.pairs.empty()) gains = gains_of_pairs(state, state.pairs.front().candidate);
  if (verdict.low <= 0) verdict.winner = {};
  if (verdict.pairs > 1) report_.verdict(verdict, std::move(gains));
}

void SubmissionTuning::forget_context(CUcontext context) noexcept {
  in_flight_.forget_context(context);
  events_.forget_context(context);
  const Lock lock = lock_for_a_while();
  if (!lock.owns_lock() || search_ == nullptr) return;
  blocks_.lose_events();
  probation_.survived.reset();
  events_.forget_context(context);  // those that came back just now
}

void SubmissionTuning::finish() noexcept {
  try {
    const Lock lock = lock_for_a_while();
    if (!lock.owns_lock()) return;  // a thread stands in the driver with it
    const Stage stage = stage_;
    const bool takes_turns = this->is_pinned() && search_ != nullptr;
    const bool is_pinned =
        this->is_pinned() && (takes_turns || !in_use_.submission().is_as_written());
    if (stage == Stage::Finished || (search_ == nullptr && !is_pinned && stage != Stage::Fatal)) {
      return;
    }
    stage_ = Stage::Finished;
    const bool is_open = !is_pinned && (stage == Stage::Searching || stage == Stage::Blocked);
    if (takes_turns) report_turns();
    if (is_open) end_unsettled();
    stored_.save_length(costs_.seconds_since_first());
    SubmissionReport::End end;
    end.state = takes_turns                      ? "turns"
                : is_pinned                      ? "pinned"
                : stage == Stage::Fatal          ? "fatal"
                : !is_open                       ? "settled"
                : period_.is_found()             ? "open"
                : !looks() && most_are_of_nccl() ? "nccl"
                                                 : "nothing";
    if (search_ != nullptr) end.found = search_->state();
    end.shown = search_ == nullptr          ? in_use_.submission()
                : end.found.verdict.settled ? end.found.verdict.winner
                                            : search_->verdict().winner;
    end.is_open = is_open;
    end.max_runs = costs_.limits().max_runs;
    report_.end(end);
    stored_.wait();
  } catch (const std::exception&) {
    // Not said, then.
  }
}

std::optional<RegionOutcome> SubmissionTuning::outcome() noexcept {
  const Lock lock = lock_for_a_while();
  if (!lock.owns_lock() || search_ == nullptr) return std::nullopt;
  const SubmissionVerdict& verdict = search_->verdict();
  if (!period_.is_found() && !verdict.settled) return std::nullopt;
  RegionOutcome outcome;
  outcome.state = verdict.settled              ? RegionOutcome::State::Finished
                  : stage_ == Stage::Searching ? RegionOutcome::State::Searching
                                               : RegionOutcome::State::Stopped;
  outcome.sites = 1;
  const bool is_kept = !verdict.winner.is_as_written();
  outcome.tuned = is_kept ? 1 : 0;
  if (verdict.pairs == 0) return outcome;
  constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();
  outcome.confirm = {is_kept ? ConfirmVerdict::Kept : ConfirmVerdict::Defaults,
                     not_measured,
                     not_measured,
                     verdict.gain,
                     verdict.low,
                     verdict.pairs};
  outcome.high = verdict.high;
  return outcome;
}

void SubmissionTuning::end_unsettled() {
  // The driver is not asked any more: what the region begins with stays without a name.
  if (const auto region = found_region()) report_.region(text_of(*region));
  if (is_left_to_nccl_) {
    search_->nothing_repeats();
    return save();
  }
  if (!looks()) {
    if (!most_are_of_nccl())
      report_.fallback(FallbackReason::NothingRepeats,
                       "The program launched too few kernels for a look to pay.");
    return;
  }
  report_.fallback(period_.is_found() ? FallbackReason::NotSettled
                                      : FallbackReason::NothingRepeats);
  if (!period_.is_found()) {
    if (costs_.steps() < steps_without_period) return;
    search_->nothing_repeats();
  }
  save();
}

}  // namespace contextune::intercept
