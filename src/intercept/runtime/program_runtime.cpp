#include "intercept/runtime/program_runtime.hpp"

#include <exception>
#include <utility>

#include "intercept/host/environment_options.hpp"
#include "intercept/host/hot_words.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/recording/recorder.hpp"
#include "intercept/replay/repetition_check.hpp"
#include "intercept/runtime/process_regions.hpp"
#include "intercept/site/process_store.hpp"
#include "intercept/site/rule_book.hpp"
#include "intercept/submission/submission_tuning.hpp"

namespace contextune::intercept {
namespace {

/// Whether any thread is in a region, or all are in `process`. A few nanoseconds.
bool any_region() noexcept {
  return hot_words.any_region.load(std::memory_order_acquire);
}

}  // namespace

ProgramRuntime::ProgramRuntime(const RegionServices& services, const Options& options,
                               ProcessRegions& regions, RuleBook& rules,
                               SubmissionTuning& submission)
    : services_(services),
      options_(options),
      regions_(regions),
      rules_(rules),
      submission_(submission),
      ranks_(services.ranks, options, services.driver, services.stopped) {}

std::unique_ptr<RepetitionCheck> ProgramRuntime::check_repetition() {
  return std::make_unique<RepetitionCheck>(services_, options_);
}

Region& ProgramRuntime::region(std::string_view name, const Options& author, const StoredAs& as) {
  if (LaunchRegion* const known = regions_.find(name)) return *known;
  Options options = options_over(author);
  options.mode = author.mode;  // the author knows whether the body may run again
  return regions_.find_or_make(std::string(name), options, ProcessRegions::Kind::Marked, as);
}

std::optional<RegionOutcome> ProgramRuntime::outcome_of(std::string_view region) {
  if (const LaunchRegion* const found = regions_.find(region)) return found->outcome();
  return region == StoredSubmission::region ? submission_.outcome() : std::nullopt;
}

Region* ProgramRuntime::current_region() noexcept {
  if (!any_region()) return nullptr;
  ThreadState& thread = this_thread();
  return thread.region != nullptr ? thread.region : services_.open.only();
}

bool ProgramRuntime::is_in_region() noexcept {
  if (!any_region()) return false;
  if (this_thread().region != nullptr) return true;
  const LaunchRegion* const only = services_.open.only();
  return only != nullptr && only->entries().is_in_process();
}

bool ProgramRuntime::is_capturing() noexcept {
  return services_.captures.any();
}

void ProgramRuntime::declare(std::shared_ptr<KernelRule> rule) {
  rules_.declare(std::move(rule));
  for (const RegionMark& mark : regions_.marks()) {
    if (mark.kind == RegionMark::Kind::Auto && !regions_.has_process())
      regions_.begin_process(mark);
  }
}

const space::ChoiceDeclaration* ProgramRuntime::choice_rule(
    const std::string& name) const noexcept {
  return rules_.choice(name);
}

bool ProgramRuntime::may_interrupt() noexcept {
  return !services_.stopped.load(std::memory_order_acquire) && !services_.recorder.active() &&
         !services_.captures.any();
}

store::TrialJournal& ProgramRuntime::journal() noexcept {
  return services_.store.journal();
}

void ProgramRuntime::work_was_waited_for() noexcept {
  regions_.work_was_waited_for();
}

DeviceFacts ProgramRuntime::device_facts() noexcept {
  try {
    const auto current = gpu::current_device(services_.driver);
    int count = 0;
    if (!current && (services_.driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0))
      return {};
    return services_.kernels.facts_of(current.value_or(0));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace contextune::intercept
