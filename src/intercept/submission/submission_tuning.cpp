#include "intercept/submission/submission_tuning.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <limits>
#include <utility>

#include "core/submission/submission_stored.hpp"
#include "core/submission/submission_text.hpp"
#include "log/events.hpp"
#include "log/tuning_log.hpp"

namespace contextune::intercept {
namespace {

/// Long beside an event and a change of config, short beside what a program takes.
constexpr std::uint64_t block_target_ns = 1'000'000;
/// In a program that has used the GPU for a moment only, and may end after another one.
constexpr std::uint64_t short_block_target_ns = 100'000;
constexpr std::uint64_t short_blocks_of_elapsed = 100;
constexpr std::uint64_t most_targets = 3;
constexpr std::uint64_t look_every_ns = 20'000;
/// At most one in so many launches of a block may have been held in vain: a graph was not there
/// yet.
constexpr std::uint64_t most_disturbed_share = 8;
/// An entry that takes longer is left for one that repeats inside of it.
constexpr std::uint64_t longest_entry_ns = 5'000'000;
/// Another thread's step is looked at for a moment.
constexpr std::uint64_t leader_waits_ns = 20'000;
constexpr int most_lost_in_a_row = 16;
constexpr std::uint64_t steps_of_search = 1024;
/// The tuning times one in so many steps; a look longer than longest_look_ns was interrupted.
constexpr std::uint64_t steps_of_sample = 64;
constexpr std::uint64_t longest_look_ns = 2'000;
/// The rest is for blocks that show what chaining gains.
constexpr double share_for_loads = 0.9;
/// With the way that an earlier run found: then it is not what takes the process down.
constexpr std::uint64_t launches_to_survive = 4 * LaunchBatch::most_launches;
/// Where fewer of them than that went out in graphs, it stays so.
constexpr std::uint64_t most_launches_on_probation = 4096;
constexpr std::uint64_t held_off_ns = 50'000'000;
constexpr std::uint64_t most_held_off_ns = 5'000'000'000;
/// In so many steps the longest period would have come three times.
constexpr std::uint64_t steps_without_period = std::uint64_t{3} * PeriodFinder::longest;
constexpr const char* region_name = StoredSubmission::region;
constexpr const char* site_name = StoredSubmission::site;

std::uint64_t monotonic_ns() {
  timespec time{};
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

SubmissionTuning::SubmissionTuning(const gpu::Driver& driver, KernelTable& kernels,
                                   Submitter& submitter, ChainedGraphs& graphs, SplicedLoads& loads,
                                   CaptureWatch& captures, OpenRegions& open, EventLog& log,
                                   ProcessStore& store, const SubmissionLimits& limits,
                                   double trial_timeout)
    : driver_(driver),
      kernels_(kernels),
      submitter_(submitter),
      graphs_(graphs),
      loads_(loads),
      captures_(captures),
      open_(open),
      log_(log),
      store_(store),
      limits_(limits),
      in_flight_(driver, captures, log, trial_timeout),
      events_(driver) {}

void SubmissionTuning::start(SubmissionChoices choices) noexcept {
  try {
    const Lock lock(mutex_);
    stored_ = std::make_unique<const StoredSubmission>(store_);
    choices.may_chain = choices.may_chain && loads_.is_on();
    if (stored_->was_fatal()) {
      is_fatal_ = is_settled_ = true;
      loads_.leave_all(false);
      return log_.fallback(
          FallbackReason::ConfigCrashed, region_name, site_name,
          "Launches stay as written: an earlier run of this program did not come to its end while "
          "they were chained or gathered. `contextune store blamed` says how.");
    }
    in_flight_.begin(*stored_);
    bool same_software = true;
    auto earlier = stored_->load(same_software);
    if (earlier && !stored_->tunes()) earlier->doubted = false;
    if (!stored_->tunes() && !(earlier && earlier->verdict.settled)) return;
    search_ =
        std::make_unique<SubmissionSearch>(choices, limits_, earlier.value_or(SubmissionState{}));
    if (earlier) {
      loads_.read_only(earlier->images);
      if (stored_->tunes() && search_->doubt_winner(same_software))
        log_.fallback(FallbackReason::DoubtedWinner, region_name, site_name, {});
    }
    is_settled_ = search_->settled();
    put_in_use(search_->verdict().winner);
    // Kernels that did not win run as the program has them.
    if (is_settled_ && !in_use_.chained) loads_.leave_all(in_use_.gathered != 0);
    if (const std::vector<std::uint64_t> kernels = search_->kernels(); kernels.size() > 1) {
      submitter_.number_kernels(kernels);
      std::vector<std::uint64_t> left;
      for (std::size_t i = 0; i < kernels.size(); ++i)
        if ((in_use_.ordinary >> i & 1U) != 0) left.push_back(kernels[i]);
      if (is_settled_) loads_.leave(std::move(left));
    }
    if (is_settled_) write_winner("as found in an earlier run");
    if (is_settled_ && in_use_.is_as_written()) return;
    submitter_.want_other_calls(!is_settled_);
    is_on_probation_ = is_settled_.load();
    watches_.store(true, std::memory_order_relaxed);
    open_.watch_always();
  } catch (const std::exception& error) {
    log_.fallback(FallbackReason::InternalError, region_name, site_name, error.what());
  }
}

void SubmissionTuning::pin(const PinnedLaunches& pinned) noexcept {
  try {
    const Lock lock(mutex_);
    is_pinned_ = true;
    is_settled_ = !pinned.in_turns;
    loads_.read_others();
    if (pinned.in_turns) {
      search_ = std::make_unique<SubmissionSearch>(SubmissionChoices{}, limits_);
      search_->take_turns(pinned.submission);
      submitter_.want_other_calls(true);
    }
    put_in_use(pinned.submission);
    if (pinned.submission.is_as_written()) return;
    watches_.store(true, std::memory_order_relaxed);
    open_.watch_always();
  } catch (const std::exception& error) {
    log_.fallback(FallbackReason::InternalError, region_name, site_name, error.what());
  }
}

void SubmissionTuning::put_in_use(const Submission& submission) noexcept {
  in_use_ = submission;
  submitter_.use(submission);
  using Use = ChainedGraphs::Use;
  graphs_.use(submission.chained ? Use::Now
              : is_settled_      ? Use::Never
                                 : Use::Perhaps,
              submission.ordinary);
}

std::uint64_t SubmissionTuning::disturbed() noexcept {
  return submitter_.totals().single + graphs_.totals().disturbed;
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
  SubmissionBudget without_search(limits_.max_slowdown, limits_.grace_seconds);
  if (search_ != nullptr) {
    search_->elapsed(seconds_since_first());
    charge();
  } else {
    without_search.elapsed(seconds_since_first());
    without_search.spend(loads_.totals().seconds + graphs_.totals().seconds);
  }
  const SubmissionBudget& budget = search_ != nullptr ? search_->budget() : without_search;
  // With a winner from an earlier run, what it saves was measured.
  const bool pays =
      is_pinned() || (in_use_.chained && (search_ == nullptr || search_->verdict().settled));
  return (pays ? 20 : share_for_loads) * budget.allowance() - budget.spent();
}

void SubmissionTuning::spend(double seconds) noexcept {
  const Lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && search_ != nullptr) search_->spend(seconds);
}

void SubmissionTuning::charge() {
  const double all = loads_.totals().seconds + graphs_.totals().seconds +
                     submitter_.totals().graphs.build_seconds +
                     1e-9 * static_cast<double>(looks_ns_);
  search_->spend(all - std::exchange(charged_, all));
}

double SubmissionTuning::seconds_since_first() const noexcept {
  return first_ns_ == 0 ? 0 : 1e-9 * static_cast<double>(monotonic_ns() - first_ns_);
}

CUresult SubmissionTuning::launch(const contextune_launch& call, ThreadState& thread) noexcept {
  if (!is_settled_) {
    see({token_of(call), Submitter::stream_for(call), call.function});
  } else if (is_on_probation_.load(std::memory_order_relaxed)) {
    see_probation(Submitter::stream_for(call));
  }
  return submitter_.is_on() ? submitter_.launch(call, thread.submitted)
                            : submitter_.launch_as_written(call);
}

void SubmissionTuning::hold_off() noexcept {
  const std::uint64_t now = monotonic_ns();
  std::uint64_t first = 0;
  if (held_off_first_ns_.compare_exchange_strong(first, now)) first = now;
  held_off_until_ns_.store(std::min(now + held_off_ns, first + most_held_off_ns),
                           std::memory_order_relaxed);
}

void SubmissionTuning::results_may_be_there() noexcept {
  if (is_on_probation_.load(std::memory_order_relaxed)) check_probation();
  if (is_settled_) return;
  try {
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;  // whoever has it looks
    const std::uint64_t now = monotonic_ns();
    if (is_settled_ || search_ == nullptr || captures_.possible() ||
        now - looked_ns_ < look_every_ns) {
      return;
    }
    looked_ns_ = now;
    if (!pending_.empty() || probe_) read_results();
    if (pending_.empty()) in_flight_.clear_if_idle();
  } catch (const std::exception&) {
    // Read later.
  }
}

void SubmissionTuning::see_probation(CUstream stream) noexcept {
  try {
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || !is_on_probation_ || probation_ != nullptr) return;
    in_flight_.add(in_use_, 0, stream);
    ++launches_on_probation_;
    // Before its graphs are built, gathered launches go out one by one.
    const std::uint64_t gone =
        in_use_.gathered == 0 ? launches_on_probation_ : submitter_.totals().graphs.kernels;
    const bool is_over = launches_on_probation_ >= most_launches_on_probation;
    if ((gone < launches_to_survive && !is_over) || captures_.possible()) return;
    submitter_.hand_over();
    probation_ = record(stream);
    if (probation_ != nullptr) submitter_.want_other_calls(true);
  } catch (const std::exception&) {
    // Looked at again.
  }
}

void SubmissionTuning::check_probation() noexcept {
  try {
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || captures_.possible()) return;
    if (probation_ == nullptr) return in_flight_.clear_if_idle();
    const gpu::CurrentContext current(driver_, probation_->context);
    const CUresult ended = driver_.cuEventQuery(probation_->event);
    if (ended == CUDA_ERROR_NOT_READY) return;
    probation_.reset();
    submitter_.want_other_calls(false);
    if (ended != CUDA_SUCCESS) return;  // so it stays in flight
    is_on_probation_ = false;
    in_flight_.clear();
  } catch (const std::exception&) {
    // Looked at again.
  }
}

void SubmissionTuning::step(StepKind kind, std::uint64_t identity) noexcept {
  if (!is_settled_) see({step_token(kind, identity)});
}

void SubmissionTuning::launches_graph(const GraphCall& call) noexcept {
  if (is_on_probation_.load(std::memory_order_relaxed)) see_probation(call.stream);
  if (is_settled_) return;
  const auto identity = reinterpret_cast<std::uintptr_t>(call.exec);
  see({step_token(StepKind::GraphLaunch, identity), call.stream});
}

void SubmissionTuning::see(const Step& step) noexcept {
  try {
    // Another thread may be in the driver with it, on a full stream that only this launch empties.
    Lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      if (leader_.load(std::memory_order_relaxed) != this_thread_number()) return;
      for (const std::uint64_t begin = monotonic_ns();
           !lock.owns_lock() && monotonic_ns() - begin < leader_waits_ns; (void)lock.try_lock()) {
      }
    }
    if (!lock.owns_lock()) {
      missed_.store(true, std::memory_order_relaxed);
      return;
    }
    if (is_settled_ || search_ == nullptr) return;
    // Most looks are alike; those at the ends of blocks are measured by themselves.
    const bool is_sample = ++steps_ % steps_of_sample == 0;
    const std::uint64_t before = looks_ns_;
    const std::uint64_t begin = is_sample ? monotonic_ns() : 0;
    look(step);
    if (is_sample && looks_ns_ == before)
      looks_ns_ += steps_of_sample * std::min(monotonic_ns() - begin, longest_look_ns);
  } catch (const std::exception&) {
    breaks();
  }
}

void SubmissionTuning::look(const Step& step) {
  const bool is_launch = step.stream != nullptr;
  if (!is_launch && only_launches_) return;
  if (missed_.exchange(false, std::memory_order_relaxed)) breaks();
  Watched* const watched = threads_.find(this_thread_number(), is_launch, leader_);
  if (watched == nullptr) return;
  if (is_launch && first_ns_ == 0) {
    first_ns_ = monotonic_ns();
  }
  const PeriodStep seen = watched->finder->see(step.token);
  const bool begins_here = seen == PeriodStep::Begins || seen == PeriodStep::Restarts;
  // Where nothing repeats, at least the program's other calls are left alone.
  if (leader_ == 0 && !only_launches_ && watched->finder->steps() % steps_of_search == 0 &&
      watched->finder->finding() == Finding::NothingRepeats) {
    only_launches_ = true;
    submitter_.want_other_calls(false);
  }
  if (leader_ != 0 && leader_ != watched->number) {
    if (!begins_here || !threads_.is_absent(leader_)) return;
    breaks();
    entry_lengths_.clear();
    leader_ = 0;
    period_ = 0;
  }
  if (seen == PeriodStep::Broken || seen == PeriodStep::Restarts) {
    entry_begins_ = false;
    // Where most come to an end, so do those that are a little longer.
    unbroken_entries_ = std::max(std::exchange(begun_entries_, 0), unbroken_entries_ * 3 / 4);
    if (open_block_ && block_is_broken()) return;
  }
  if (begins_here) entry_begins_ = true;
  if (!is_launch) return;
  if (std::exchange(entry_begins_, false)) {
    const std::uint64_t begin = monotonic_ns();
    begins(step, *watched);
    looks_ns_ += monotonic_ns() - begin;
  }
  if (first_function_ == nullptr && leader_ == watched->number) first_function_ = step.function;
  if (!open_block_) return;
  ++(step.function != nullptr ? open_block_->launches : open_block_->graphs);
  in_flight_.add(open_block_->submission, open_block_->number.value_or(next_block_), step.stream);
}

bool SubmissionTuning::block_is_broken() {
  breaks();
  const bool is_too_long = block_entries_ > 1 && 2 * block_entries_ >= unbroken_entries_;
  if (++lost_in_a_row_ > 1 || is_too_long) block_entries_ = 0;
  if (lost_in_a_row_ < most_lost_in_a_row || only_launches_) return false;
  only_launches_ = true;
  lost_in_a_row_ = 0;
  threads_.clear();
  entry_lengths_.clear();
  leader_ = 0;
  period_ = 0;
  return true;
}

void SubmissionTuning::begins(const Step& step, Watched& watched) {
  leader_ = watched.number;
  const std::uint32_t followed = watched.finder->followed();
  if (followed != period_) {
    breaks();
    period_ = followed;
    block_entries_ = 0;
    entry_ns_ = length_of(period_).ns;
    first_function_ = step.function;
    begun_entries_ = unbroken_entries_ = 0;
  }
  ++begun_entries_;
  const std::uint64_t now = monotonic_ns();
  if (now < held_off_until_ns_.load(std::memory_order_relaxed)) return breaks();
  if (open_block_) {
    ++open_block_->entries;
    if (!open_block_->number && entry_ns_ == 0) probe(step.stream);
    // A host that launches ahead is done with a block long before the GPU is.
    const std::uint64_t took = std::max(now - block_ns_, open_block_->entries * entry_ns_);
    if (!is_block_complete(now, took)) return;
    if (took > open_block_->entries * longest_entry_ns && watched.finder->keep_inside()) {
      breaks();
      return;
    }
    return end_block(step.stream);
  }
  if (captures_.possible()) return;
  submitter_.hand_over();
  begin_block(record(step.stream));
}

SubmissionTuning::Event SubmissionTuning::record(CUstream stream) {
  const gpu::PooledEvent event = events_.record(stream);
  if (!event) return nullptr;
  return {new gpu::PooledEvent(event), [this](const gpu::PooledEvent* used) {
            events_.give_back(*used);
            delete used;
          }};
}

void SubmissionTuning::probe(CUstream stream) {
  const std::uint64_t entries = open_block_->entries;
  if (!std::has_single_bit(entries) || captures_.possible()) return;
  read_probe();
  // Another period's may end while this one goes on.
  if (entry_ns_ != 0 || (probe_ && probe_->period != period_)) return;
  submitter_.hand_over();
  if (Event end = record(stream)) {
    probe_ = *open_block_;
    probe_->end = std::move(end);
    submitter_.want_other_calls(true);
  }
}

void SubmissionTuning::read_probe() {
  if (!probe_) return;
  const std::optional<double> seconds = seconds_of(*probe_);
  if (!seconds) return;
  learn_length(*probe_, *seconds);
  probe_.reset();
}

SubmissionTuning::Length& SubmissionTuning::length_of(std::uint32_t period) {
  constexpr std::size_t most_periods = 64;  // that a program comes back to
  if (entry_lengths_.size() >= most_periods && !entry_lengths_.contains(period))
    entry_lengths_.clear();
  return entry_lengths_[period];
}

void SubmissionTuning::learn_length(const Block& block, double seconds) {
  if (!(seconds > 0)) return;
  Length& length = length_of(block.period);
  length.ns = static_cast<std::uint64_t>(1e9 * seconds) / block.entries;
  if (length.first_ns == 0) length.first_ns = length.ns;
  if (block.period != period_) return;
  entry_ns_ = length.ns;
  // The host alone did not see how long they are.
  if (block_entries_ > 1 && block_entries_ * entry_ns_ > most_targets * block_target_ns)
    block_entries_ = 0;
}

std::optional<double> SubmissionTuning::seconds_of(const Block& block) const {
  const gpu::CurrentContext current(driver_, block.end->context);
  const CUresult ended = driver_.cuEventQuery(block.end->event);
  if (ended == CUDA_ERROR_NOT_READY) return std::nullopt;
  float milliseconds = 0;
  if (ended != CUDA_SUCCESS || driver_.cuEventElapsedTime(&milliseconds, block.begin->event,
                                                          block.end->event) != CUDA_SUCCESS) {
    return 0;
  }
  return 1e-3 * static_cast<double>(milliseconds);
}

bool SubmissionTuning::is_block_complete(std::uint64_t now, std::uint64_t took) {
  const Block& block = *open_block_;
  const std::uint64_t target = std::clamp((now - first_ns_) / short_blocks_of_elapsed,
                                          short_block_target_ns, block_target_ns);
  if (block_entries_ != 0 && block.entries < block_entries_) return false;
  // How long a block is, launches as written say: all others have as many entries.
  if (block_entries_ != 0 && !block.submission.is_as_written()) return true;
  if (took < target) return false;
  // A block that ends between two batches would hold a piece of one, which no other way has. But
  // two blocks have to fit between two breaks, or no pair of them is ever complete.
  const bool another_fits = unbroken_entries_ == 0 || 2 * (block.entries + 1) < unbroken_entries_;
  if (search_->may_gather() && block.launches % LaunchBatch::most_launches != 0 &&
      took < most_targets * target && another_fits) {
    return false;
  }
  block_entries_ = block.entries;
  return true;
}

void SubmissionTuning::begin_block(Event at) {
  if (at == nullptr) return;
  open_block_ = Block{
      {}, {}, std::move(at), nullptr, period_, 0, 0, 0, disturbed(), graphs_.totals().attempts};
  block_ns_ = monotonic_ns();
  search_->elapsed(seconds_since_first());
  charge();
  // Before it is known how long blocks are, and that one ends unbroken, nothing is tried.
  if (block_entries_ != 0) open_block_->number = next_block_++;
  const Submission planned =
      open_block_->number ? search_->plan(*open_block_->number) : search_->verdict().winner;
  if (planned != in_use_) put_in_use(planned);
  open_block_->submission = planned;
}

void SubmissionTuning::end_block(CUstream stream) {
  if (captures_.possible()) return breaks();
  submitter_.hand_over();
  Block block = *std::exchange(open_block_, std::nullopt);
  search_->saw_block(block.launches != 0);
  const Event end = record(stream);
  if (!block.number) return begin_block(end);
  lost_in_a_row_ = 0;
  if (end == nullptr) return search_->spoiled(*block.number);
  block.end = end;
  if ((disturbed() - block.disturbed) * most_disturbed_share > block.launches + block.graphs ||
      graphs_.totals().attempts != block.attempts) {
    search_->spoiled(*block.number);
  } else {
    pending_.push_back(std::move(block));
  }
  read_results();
  if (!is_settled_) begin_block(end);
}

void SubmissionTuning::breaks() {
  if (open_block_ && open_block_->number) search_->spoiled(*open_block_->number);
  open_block_.reset();
}

void SubmissionTuning::read_results() {
  read_probe();
  while (!pending_.empty()) {
    const Block& block = pending_.front();
    const auto seconds = seconds_of(block);
    if (!seconds) break;
    if (*seconds > 0) {
      in_flight_.ended(*block.number);
      measured_seconds_ += *seconds;
      if (block.submission.is_as_written()) learn_length(block, *seconds);
      // Entries of several periods do not compare; what they take beside the first ones does.
      search_->measured(*block.number, *seconds,
                        static_cast<double>(block.entries * length_of(block.period).first_ns));
      log::write_block(log_.lines(), region_name, *block.number, text_of(block.submission),
                       *seconds, block.entries);
    } else {
      search_->spoiled(*block.number);
    }
    pending_.pop_front();
  }
  if (search_->wants_kernels()) number_kernels();
  if (search_->settled()) return settle();
  if (search_->is_blocked()) {
    // Looking on would cost the program more, and find out nothing.
    is_blocked_ = true;
    return end_search();
  }
  submitter_.want_other_calls(!only_launches_ || !pending_.empty() || probe_);
}

void SubmissionTuning::number_kernels() {
  std::vector<std::uint64_t> kernels = submitter_.chained_kernels();
  submitter_.number_kernels(kernels);
  search_->number_kernels(std::move(kernels));
}

std::optional<FoundRegion> SubmissionTuning::found_region() const {
  if (leader_ == 0) return std::nullopt;
  FoundRegion region;
  FoundPeriod own;
  for (const Watched& one : threads_) {
    if (one.number != leader_) continue;
    for (const FoundPeriod& period : one.finder->found())
      if (period.id == period_) own = period;
    region = region_of_steps(one.finder->tokens(period_));
  }
  region.threads = 0;
  for (const Watched& one : threads_) {
    if (one.finder == nullptr) continue;
    for (const FoundPeriod& period : one.finder->found()) {
      if (period.identity != own.identity || period.length != own.length) continue;
      region.entries += period.entries;
      ++region.threads;
    }
  }
  const double elapsed = seconds_since_first();
  region.share = elapsed > 0 ? std::min(1.0, measured_seconds_ / elapsed) : 0;
  return region;
}

void SubmissionTuning::end_search() {
  is_settled_ = true;
  in_flight_.clear();  // what was found was survived
  pending_.clear();
  put_in_use(search_->verdict().winner);
  graphs_.use_no_other();
  submitter_.want_other_calls(false);
  if (!in_use_.is_as_written()) return;
  watches_.store(false, std::memory_order_relaxed);
  open_.watch_no_more();
}

void SubmissionTuning::settle() {
  if (is_settled_) return;
  end_search();
  FoundRegion region = found_region().value_or(FoundRegion{});
  CUcontext context = nullptr;
  (void)driver_.cuCtxGetCurrent(&context);
  const KnownKernel* const first =
      first_function_ != nullptr ? kernels_.find(first_function_, context) : nullptr;
  if (first != nullptr) region.first = first->identity.name;
  write_winner(text_of(region));
  save();
  threads_.clear();
}

void SubmissionTuning::save() {
  if (stored_ == nullptr) return;
  SubmissionState state = search_->state();
  state.run_seconds = seconds_since_first();
  auto [images, unread] = submitter_.images();
  if (!images.empty() || !unread.empty()) {
    // After the last run, winners are used as they were shown.
    state.lacks_images = !unread.empty() && state.runs < limits_.max_runs;
    if (state.lacks_images) images.insert(images.end(), unread.begin(), unread.end());
    if (images.size() > most_needed_images) images.clear();
    state.images = std::move(images);
    // A part that was chained in vain says little of the whole.
    if (state.lacks_images && !state.verdict.winner.chained) {
      forget_chaining(state);
      log_.fallback(FallbackReason::NotSettled, region_name, site_name,
                    "Only a part of the region's kernels could be chained: giving all of them "
                    "waits would have taken too long in this run. The next run goes on from here.");
    }
  }
  stored_->save(state);
  saved_ = std::move(state);
}

void SubmissionTuning::write_winner(const std::string& found) {
  log::write_found_region(log_.lines(), region_name, found);
  write_verdict(search_->verdict());
}

void SubmissionTuning::write_verdict(const SubmissionVerdict& verdict) {
  const bool kept = !verdict.winner.is_as_written();
  constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();
  log::TuningLog lines(log_.lines(), region_name, "events", log_.simulated());
  SiteSpec site;
  site.name = site_name;
  site.configs = {config_of(Submission{})};
  if (kept) site.configs.push_back(config_of(verdict.winner));
  lines.add_site(0, site, {});
  WinnerEvent winner;
  winner.config = kept ? 1 : 0;
  winner.seconds = winner.default_seconds = not_measured;
  winner.reason = kept ? WinnerReason::Region : WinnerReason::Dropped;
  lines.winner(winner);
  ConfirmEvent confirm;
  confirm.verdict = kept ? ConfirmVerdict::Kept : ConfirmVerdict::Defaults;
  confirm.before_seconds = confirm.after_seconds = not_measured;
  confirm.gain = verdict.gain;
  confirm.bound = verdict.low;
  confirm.pairs = verdict.pairs;
  confirm.tries = 1;
  lines.confirm(confirm);
}

void SubmissionTuning::write_turns() {
  const auto region = found_region();
  if (!region) {
    return log_.fallback(FallbackReason::NothingRepeats, region_name, site_name,
                         "No stretch of the program's launches was seen to repeat, so nothing was "
                         "compared.");
  }
  log::write_found_region(log_.lines(), region_name, text_of(*region));
  SubmissionVerdict verdict = search_->verdict_of_turns();
  if (verdict.low <= 0) verdict.winner = {};
  if (verdict.pairs > 1) write_verdict(verdict);
}

void SubmissionTuning::forget_context(CUcontext context) noexcept {
  in_flight_.forget_context(context);
  events_.forget_context(context);
  const Lock lock = lock_for_a_while();
  if (!lock.owns_lock() || search_ == nullptr) return;
  breaks();
  for (const Block& block : pending_) search_->spoiled(*block.number);
  pending_.clear();
  probe_.reset();
  probation_.reset();
  events_.forget_context(context);  // those that came back just now
}

void SubmissionTuning::finish() noexcept {
  try {
    const Lock lock = lock_for_a_while();
    if (!lock.owns_lock()) return;  // a thread stands in the driver with it
    const bool takes_turns = this->is_pinned() && search_ != nullptr;
    const bool is_pinned = this->is_pinned() && (takes_turns || !in_use_.is_as_written());
    if (is_finished_ || (search_ == nullptr && !is_pinned && !is_fatal_)) return;
    is_finished_ = true;
    const bool is_open = !is_pinned && (!is_settled_ || is_blocked_);
    if (takes_turns) write_turns();
    if (is_open) {
      // The driver is not asked any more: what the region begins with stays without a name.
      if (const auto region = found_region())
        log::write_found_region(log_.lines(), region_name, text_of(*region));
      log_.fallback(leader_ == 0 ? FallbackReason::NothingRepeats : FallbackReason::NotSettled,
                    region_name, site_name, {});
      const bool has_shown_enough = leader_ != 0 || steps_ >= steps_without_period;
      if (leader_ == 0 && has_shown_enough) search_->nothing_repeats();
      if (has_shown_enough) save();
    }
    if (saved_ && saved_->lacks_images) {
      // The next run may read as much as a run of this length allows, not one that ended as this
      // one was settled.
      saved_->run_seconds = seconds_since_first();
      stored_->save(*saved_);
    }
    is_settled_ = true;
    const Submitter::Totals totals = submitter_.totals();
    const SplicedLoads::Totals loads = loads_.totals();
    const ChainedGraphs::Totals graphs = graphs_.totals();
    const char* state = takes_turns ? "turns"
                        : is_pinned ? "pinned"
                        : is_fatal_ ? "fatal"
                                    : "settled";
    if (is_open) state = leader_ == 0 ? "nothing" : "open";
    const SubmissionState found = search_ == nullptr ? SubmissionState{} : search_->state();
    const Submission shown = search_ == nullptr      ? in_use_
                             : found.verdict.settled ? found.verdict.winner
                                                     : search_->verdict().winner;
    const int run = is_open ? std::max(1, found.runs) : 0;
    log::write_submission(log_.lines(), region_name,
                          {text_of(shown),
                           state,
                           run,
                           limits_.max_runs,
                           totals.chained,
                           totals.held,
                           totals.batches,
                           totals.late,
                           totals.graphs.launches,
                           totals.graphs.kernels,
                           totals.graphs.built,
                           graphs.graphs,
                           graphs.launches,
                           graphs.edges,
                           loads.images,
                           loads.kernels,
                           loads.left,
                           loads.unneeded,
                           loads.kept_bytes,
                           loads.seconds,
                           totals.graphs.bytes + graphs.bytes,
                           submitter_.names_of(shown.ordinary),
                           screened_text(found),
                           is_open ? std::string() : found.verdict.why,
                           log_.simulated()});
    if (stored_ != nullptr) stored_->wait();
  } catch (const std::exception&) {
    // Not said, then.
  }
}

}  // namespace contextune::intercept
