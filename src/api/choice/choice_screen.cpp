#include "api/choice/choice_screen.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <contextune/error.hpp>

#include "api/failure_text.hpp"
#include "api/process.hpp"
#include "api/program_call.hpp"
#include "api/watchdog.hpp"
#include "gpu/memory/memory_fill.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/program/trial_watch.hpp"
#include "intercept/site/region.hpp"

namespace contextune::api {
namespace {

// In which work ends that waits for nobody, before it is abandoned.
constexpr double abandon_seconds = 2;

const gpu::Driver& driver_or_throw() {
  const gpu::Driver* const found = driver();
  if (found == nullptr) throw Error("there is no driver to compare results with");
  return *found;
}

std::vector<Snapshot::Span> spans_of(const contextune_choice_run& run) {
  std::vector<Snapshot::Span> spans;
  for (std::size_t i = 0; i < run.num_memory; ++i)
    spans.push_back({run.memory[i].pointer, run.memory[i].size_bytes});
  return spans;
}

/// Has it said where a call does not come back, which nobody else can.
class CallLookout final : public intercept::TrialWatch::Watched {
 public:
  explicit CallLookout(std::function<void()> say) : say_(std::move(say)) {}

  [[nodiscard]] double look() noexcept override {
    const std::lock_guard lock(mutex_);
    try {
      if (!has_ended_) say_();
    } catch (const std::exception&) {
      // No memory: not said, then.
    }
    return 0;
  }

  /// It has come back. Waits while it is said that it did not.
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }

 private:
  const std::function<void()> say_;
  std::mutex mutex_;
  bool has_ended_ = false;
};

/// As long as it lives, a call is looked after.
class Looking {
 public:
  Looking(std::function<void()> say, double seconds)
      : lookout_(std::make_shared<CallLookout>(std::move(say))) {
    static_cast<void>(intercept::TrialWatch::get().watch(lookout_, seconds));
  }
  ~Looking() {
    lookout_->end();
    intercept::TrialWatch::get().forget(*lookout_);
  }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  const std::shared_ptr<CallLookout> lookout_;
};

}  // namespace

ChoiceScreen::ChoiceScreen(contextune_choice& choice, ChoiceProblem& problem,
                           intercept::Runtime& runtime, ChoiceRanks& ranks,
                           const contextune_choice_run& run, std::string region,
                           const intercept::Uncancelled& uncancelled)
    : choice_(choice),
      problem_(problem),
      region_(std::move(region)),
      runtime_(runtime),
      ranks_(ranks),
      run_(run),
      driver_(driver_or_throw()),
      timeout_(runtime.options().trial_timeout),
      uncancelled_(uncancelled) {}

bool ChoiceScreen::has_outputs(const contextune_choice_run& run) noexcept {
  return std::any_of(run.memory, run.memory + run.num_memory,
                     [](const contextune_memory& one) { return one.is_output != 0; });
}

bool ChoiceScreen::run(const ChoiceCandidate* only) {
  const intercept::TunableCall aside{intercept::TunableCall::Aside{}};
  // Copying waits for the GPU without a deadline.
  const auto idle = ranks_.compare({ends_within(timeout_), true});
  if (!idle || !idle->ran) return false;
  auto before = std::make_unique<Snapshot>(driver_, spans_of(run_), timeout_);
  struct AtThreadEnd {
    ChoiceScreen& screen;
    std::unique_ptr<Snapshot>& before;
    bool ends = true;
    ~AtThreadEnd() {
      if (ends) screen.thread_ends(std::move(before));
    }
  } at_thread_end{*this, before};
  try {
    const bool compared = compare_all(*before, only);
    at_thread_end.ends = false;
    if (compared) {
      // The candidate that the search judges the others against has to be right.
      return problem_.candidates.front().state == ChoiceCandidate::State::Open;
    }
  } catch (const std::exception&) {
    at_thread_end.ends = false;
    put_back(std::move(before));
    throw;
  }
  put_back(std::move(before));
  return false;
}

void ChoiceScreen::put_back(std::unique_ptr<Snapshot> before) const {
  // The caller has the default run next. Where nothing but that one has run, its next run waits for
  // what has not ended as this does; else what is stuck would keep the caller.
  const bool is_stuck =
      is_stuck_ || ((has_run_others_ || choice_.is_shared()) && !ends_within(abandon_seconds));
  if (is_stuck) {
    static_cast<void>(before.release());  // to free it would wait for the GPU, too
  } else {
    before->restore();
  }
}

void ChoiceScreen::thread_ends(std::unique_ptr<Snapshot> before) noexcept {
  try {
    survived();
    if (tried_ != nullptr) {
      note_failure("it has ended the thread that ran it");
      rule_out(*tried_, ChoiceCandidate::State::Failed);
    }
    ranks_.thread_ends();
    put_back(std::move(before));
  } catch (const std::exception& error) {
    runtime_.log().fault("choice '" + problem_.label + "': " + error.what() +
                         "; its thread has ended, and what it left stays");
  }
}

bool ChoiceScreen::compare_all(Snapshot& before, const ChoiceCandidate* only) {
  // The waits here are for all work of the context, so also for work that other threads of the
  // process do with other ranks. Those ranks may have to wait for this one in their turn. So no
  // rank begins an implementation before all of them have put back what the last one changed, and
  // filled what the next one writes.
  if (!leave_out_blamed()) return false;
  const bool has_reference = attempt(ChoiceCandidate{});  // the default
  const auto all = ranks_.compare({has_reference, true});
  if (!all || !all->ran) return false;
  const std::vector<Bytes> reference = outputs();
  before.restore();
  if (!ranks_.compare({true, true})) return false;
  runtime_.work_was_waited_for();  // what takes the process down from here on is a candidate
  if (!look_at_filled(before, reference)) return false;
  std::uint64_t seed = 0;
  for (ChoiceCandidate& one : problem_.candidates) {
    ++seed;
    if (one.is_default() || one.is_right || one.state != ChoiceCandidate::State::Open) continue;
    if (only != nullptr && only != &one) continue;
    if (filling_ == Filling::None) {
      rule_out(one, ChoiceCandidate::State::Uncompared);
      continue;
    }
    has_run_others_ = true;
    if (filling_ == Filling::Alone && !fill(seed)) return false;
    auto outcome = compare_run(one, before, reference);
    for (std::size_t i = 0; i < filled_references_.size(); ++i) {
      if (!outcome || !outcome->ran || !outcome->right) break;
      if (!fill(i)) return false;
      outcome = compare_run(one, before, filled_references_[i]);
    }
    if (!outcome) return false;
    if (!outcome->ran) {
      rule_out(one, ChoiceCandidate::State::Failed);
    } else if (!outcome->right) {
      rule_out(one, ChoiceCandidate::State::Wrong);
    } else {
      one.is_right = true;
    }
  }
  return true;
}

std::optional<ChoiceRanks::Outcome> ChoiceScreen::compare_run(ChoiceCandidate& candidate,
                                                              Snapshot& before,
                                                              const std::vector<Bytes>& reference) {
  ChoiceRanks::Outcome own;
  try_out(candidate);
  tried_ = &candidate;
  own.ran = attempt(candidate);
  tried_ = nullptr;
  // Others may hear that this one failed before their own run of it has ended.
  const auto ran = ranks_.compare({own.ran, true});
  if (!ran && ends_within(0)) survived();
  if (!ran) return std::nullopt;
  const bool ended = ends_within(ran->ran ? timeout_ : abandon_seconds);
  if (!ended && !abandon(candidate)) {
    is_stuck_ = true;
    hangs(candidate);
    rule_out(candidate, ChoiceCandidate::State::Failed);
    ranks_.leave("an implementation that was tried does not end on one of them");
    return std::nullopt;
  }
  survived();
  own.ran = ran->ran && ended;
  own.right = own.ran && agrees_with(reference);
  before.restore();
  return ranks_.compare(own);
}

bool ChoiceScreen::look_at_filled(Snapshot& before, const std::vector<Bytes>& reference) {
  const auto may_fill = ranks_.compare({true, !free_outputs().empty()});
  if (!may_fill) return false;
  if (!may_fill->right) return true;
  const std::uint64_t fills = choice_.tolerance.is_bitwise() ? gpu::Fill::num_kinds : 1;
  for (std::uint64_t seed = 0; seed < fills; ++seed) {
    if (!fill(seed)) return false;
    const bool ran = attempt(ChoiceCandidate{});
    const auto all = ranks_.compare({ran, true});
    if (!all || !all->ran) return false;
    std::vector<Bytes> left = outputs();
    const bool is_same = agrees_with(reference);
    before.restore();
    const auto alike = ranks_.compare({true, is_same});
    if (!alike) return false;
    filling_ = seed == 0 && alike->right ? Filling::Alone : Filling::Beside;
    if (filling_ == Filling::Alone) break;
    filled_references_.push_back(std::move(left));
  }
  return true;
}

std::vector<gpu::MemoryRange> ChoiceScreen::free_outputs() const {
  std::vector<gpu::MemoryRange> free;
  const auto range_of = [](const contextune_memory& one) {
    return gpu::MemoryRange{reinterpret_cast<CUdeviceptr>(one.pointer), one.size_bytes};
  };
  for (std::size_t i = 0; i < run_.num_memory; ++i) {
    const gpu::MemoryRange output = range_of(run_.memory[i]);
    const bool is_read = std::any_of(
        run_.memory, run_.memory + run_.num_memory, [&](const contextune_memory& other) {
          const gpu::MemoryRange range = range_of(other);
          return other.is_output == 0 && range.begin < output.end() && output.begin < range.end();
        });
    if (run_.memory[i].is_output != 0 && output.bytes != 0 && !is_read) free.push_back(output);
  }
  return free;
}

bool ChoiceScreen::fill(std::uint64_t seed) {
  std::vector<std::vector<std::byte>> patterns;  // until the copies of them are made
  for (const gpu::MemoryRange& output : free_outputs()) {
    const gpu::Fill fill{seed + gpu::Fill::num_kinds * patterns.size(),
                         !choice_.tolerance.is_bitwise()};
    patterns.push_back(gpu::fill_memory(driver_, CU_STREAM_LEGACY, output, fill));
  }
  if (!ends_within(timeout_)) throw Error("memory could not be filled within trial_timeout");
  return ranks_.compare({true, true}).has_value();
}

store::TrialJournal::Trial ChoiceScreen::tried(const ChoiceCandidate& candidate) const {
  return store::TrialJournal::trial_of(region_, choice_.site_name,
                                       choice_.site_key(problem_).to_string(),
                                       candidate.full.to_string());
}

void ChoiceScreen::try_out(const ChoiceCandidate& candidate) {
  runtime_.journal().set(&problem_, {tried(candidate)});
}

void ChoiceScreen::survived() {
  runtime_.journal().set(&problem_, {});
}

void ChoiceScreen::hangs(const ChoiceCandidate& candidate) {
  runtime_.log().fallback(FallbackReason::TrialTimeout, {}, {},
                          "'" + candidate.full.to_string() + "' of '" + problem_.label +
                              "' has not ended after trial_timeout. " + runtime_.journal().hung());
}

bool ChoiceScreen::leave_out_blamed() {
  std::vector<bool> blamed;
  for (const ChoiceCandidate& one : problem_.candidates) {
    blamed.push_back(!one.is_default() && runtime_.journal().suspicion(tried(one).config) ==
                                              store::TrialJournal::Suspicion::Blamed);
  }
  const auto all = ranks_.named_by_any(std::move(blamed));
  if (!all) return false;
  for (std::size_t i = 0; i < all->size(); ++i) {
    ChoiceCandidate& one = problem_.candidates[i];
    if (!(*all)[i] || one.state != ChoiceCandidate::State::Open) continue;
    one.state = ChoiceCandidate::State::Failed;
    runtime_.log().fallback(
        FallbackReason::ConfigCrashed, {}, {},
        "'" + one.full.to_string() + "' of '" + problem_.label +
            "' has taken an earlier process down, or has not ended there, and is not "
            "tried any more" +
            (choice_.is_shared() ? " on any rank." : "."));
  }
  return true;
}

bool ChoiceScreen::attempt(const ChoiceCandidate& candidate) {
  // More than until what waits in the call itself is abandoned.
  ranks_.occupied(timeout_ + 2 * abandon_seconds);
  const Implementation& one = choice_.implementations[candidate.implementation];
  bool ran = false;
  {
    // NCCL's first use of a connection waits in the call, for a rank that may have failed before.
    const auto bite = choice_.is_shared() ? one.abandon : nullptr;
    std::optional<Looking> looking;  // what is abandoned may still come back
    if (!candidate.is_default())
      looking.emplace([&] { hangs(candidate); },
                      timeout_ + (bite == nullptr ? 0 : abandon_seconds));
    Watchdog watchdog(bite, one.user, timeout_);
    static_cast<void>(take_failure());
    const intercept::Uncancelled::Lifted lifted(uncancelled_);
    ran = call_program(
              [&] { return run_.run(run_.user, candidate.implementation, candidate.config); }) == 0;
    ran = !watchdog.has_bitten() && ran;
  }
  // With others, what they say of it comes first: it may wait for one that failed.
  const bool ended = choice_.is_shared() || ends_within(timeout_);
  return ran && ended;
}

bool ChoiceScreen::ends_within(double seconds) const {
  CUcontext context = nullptr;
  if (driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return true;
  std::string why;
  return intercept::wait_until_idle(driver_, context, seconds, why);
}

std::vector<ChoiceScreen::Bytes> ChoiceScreen::outputs() const {
  if (!ends_within(timeout_)) throw Error("the default has not ended within trial_timeout");
  std::vector<Bytes> all;
  for (std::size_t i = 0; i < run_.num_memory; ++i) {
    const contextune_memory& one = run_.memory[i];
    if (one.is_output == 0) continue;
    Bytes& bytes = all.emplace_back(one.size_bytes);
    gpu::check(driver_,
               driver_.cuMemcpyDtoH(bytes.data(), reinterpret_cast<CUdeviceptr>(one.pointer),
                                    one.size_bytes),
               "reading the results of an implementation");
  }
  return all;
}

bool ChoiceScreen::agrees_with(const std::vector<Bytes>& reference) const {
  const intercept::OwnArithmetic arithmetic;  // a result may be no number
  const std::vector<Bytes> own = outputs();
  for (std::size_t i = 0; i < own.size(); ++i)
    if (!choice_.tolerance.agree(reference[i], own[i])) return false;
  return true;
}

bool ChoiceScreen::abandon(const ChoiceCandidate& candidate) {
  const Implementation& one = choice_.implementations[candidate.implementation];
  if (one.abandon != nullptr) one.abandon(one.user);
  return one.abandon != nullptr && ends_within(timeout_);
}

void ChoiceScreen::rule_out(ChoiceCandidate& candidate, ChoiceCandidate::State state) {
  candidate.state = state;
  using State = ChoiceCandidate::State;
  const FallbackReason reason = state == State::Wrong        ? FallbackReason::WrongResult
                                : state == State::Uncompared ? FallbackReason::NotCompared
                                                             : FallbackReason::LaunchFailed;
  const char* const what =
      state == State::Wrong ? "' computes something else than the default and is never chosen"
      : state == State::Uncompared
          ? "' is never chosen, because it cannot be compared: the call reads all its outputs, so "
            "that earlier contents cannot be told from a result"
          : "' could not be run and is never chosen";
  const std::string why = taken_failure_clause();
  runtime_.log().fallback(reason, {}, {},
                          "'" + candidate.full.to_string() + "' of '" + problem_.label + what +
                              (choice_.is_shared() ? ", on any rank" : "") +
                              (why.empty() ? "." : why));
}

}  // namespace contextune::api
