#include "intercept/runtime/process_submission.hpp"

#include <string>
#include <string_view>

#include "core/value/stable_hash.hpp"
#include "environment/variables.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/site/forced_configs.hpp"

namespace contextune::intercept {
namespace {

bool blocking_is_asked() {
  const char* const value = variable("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

SubmissionLimits limits_of(const Options& options) {
  SubmissionLimits limits;
  constexpr double no_limit = 1e6;
  limits.max_slowdown = options.max_slowdown > 0 ? options.max_slowdown : no_limit;
  limits.block_seconds = 1e-3;
  return limits;
}

Splice splice_of(const Options& options, const std::optional<PinnedLaunches>& pinned) {
  if (blocking_is_asked() || options.discover) return Splice::Off;
  const bool may_chain =
      pinned ? pinned->submission.chained : options.region == "auto" && options.auto_knobs.chained;
  return may_chain ? options.splice : Splice::Off;
}

/// The options that say which kernels may be chained and gathered, as SubmissionChoices has them.
std::uint64_t rules_of(const Options& options) {
  if (options.splice == Splice::Own && options.only.empty() && options.exclude.empty()) return 0;
  StableHash hash;
  hash.add(static_cast<std::uint64_t>(options.splice));
  hash.add(options.only);
  hash.add(options.exclude);
  return hash.value();
}

/// Whether the code of kernels is read: it says which of them may be gathered.
bool reads_code(const Options& options, const std::optional<PinnedLaunches>& pinned) {
  if (blocking_is_asked()) return false;
  return pinned ? pinned->submission.gathered != 0
                : options.region == "auto" && options.auto_knobs.gathered;
}

}  // namespace

ProcessSubmission::ProcessSubmission(const RegionServices& services, const NameFilter& filter,
                                     const Options& options)
    : services_(services),
      options_(options),
      loads_(
          services.driver, splice_of(options, services.forced.launches()),
          reads_code(options, services.forced.launches()),
          [this] { return tuning_.seconds_left_for_loads(); },
          [this](const std::string& sentence) {
            services_.log.fallback(FallbackReason::ImageLeft, {}, {}, sentence);
          },
          left_out_by(filter)),
      kernels_(services.driver, services.kernels, services.variables, loads_),
      graphs_(
          services.driver, kernels_, services.graphs,
          [this] { return tuning_.seconds_left_for_loads(); },
          [this](const std::string& sentence) {
            services_.log.fallback(FallbackReason::NotChained, StoredSubmission::region, {},
                                   sentence);
          }),
      submitter_(services.driver, services.launcher, kernels_, services.captures, services.memory,
                 services.frontend,
                 [this](const std::string& sentence) {
                   services_.log.fallback(FallbackReason::NotGathered, StoredSubmission::region, {},
                                          sentence);
                 }),
      tuning_(services.driver, services.kernels, submitter_, graphs_, loads_, services.captures,
              services.open, services.log, services.store, limits_of(options),
              options.trial_timeout),
      periods_(services.driver, services.kernels) {}

bool ProcessSubmission::launches_block() noexcept {
  if (!blocking_is_asked()) return false;
  services_.log.fallback(FallbackReason::LaunchBlocking, StoredSubmission::region, {}, {});
  return true;
}

void ProcessSubmission::start(bool finds_regions) noexcept {
  if (const auto pinned = services_.forced.launches()) {
    if (pinned->submission.is_as_written() || !launches_block()) tuning_.pin(*pinned);
    return;
  }
  if (!finds_regions) return;
  if (options_.discover) {
    discovers_ = true;
    return submitter_.want_other_calls(true);
  }
  SubmissionChoices choices;
  choices.may_chain = options_.auto_knobs.chained;
  if (options_.auto_knobs.gathered) choices.may_gather = {8, 16, 32};
  if (choices == SubmissionChoices{}) return;
  choices.rules = rules_of(options_);
  if (!launches_block()) tuning_.start(choices);
}

void ProcessSubmission::hand_over(contextune_fn fn) noexcept {
  submitter_.hand_over(is_question(fn));
  const bool watches = tuning_.watches();
  if (!watches && !discovers_) return;
  if (const auto kind = step_kind_of(fn)) {
    if (watches) tuning_.step(*kind, static_cast<std::uint64_t>(fn));
    if (discovers_) periods_.step(*kind, static_cast<std::uint64_t>(fn));
  }
  if (tuning_.watches()) tuning_.results_may_be_there();
}

void ProcessSubmission::say_pin_does_not_act(const LaunchRegion& region) noexcept {
  if (said_pin_.exchange(true, std::memory_order_relaxed)) return;
  services_.log.fallback(FallbackReason::ForceUnmatched, region.name(), StoredSubmission::site,
                         "Launches inside of a region go out as its tuning says, so their pin does "
                         "not count there.");
}

void ProcessSubmission::forget_kernels() noexcept {
  submitter_.forget_kernels();
  services_.kernels.invalidate();
}

void ProcessSubmission::forget_stream(CUstream stream) noexcept {
  submitter_.forget_stream();
  tuning_.forget_stream(stream);
}

void ProcessSubmission::forget_context(CUcontext context) noexcept {
  tuning_.forget_context(context);
  forget_kernels();
}

}  // namespace contextune::intercept
