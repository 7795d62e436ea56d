#pragma once

#include "intercept/program/capture_watch.hpp"
#include "intercept/ranks/program_ranks.hpp"
#include "intercept/runtime/runtime.hpp"
#include "intercept/site/region_services.hpp"

namespace contextune::intercept {

class ProcessRegions;
class RuleBook;
class SubmissionTuning;

/// The Runtime of this process, for what the program itself says to contextune: over the parts of
/// the process, under its options.
class ProgramRuntime final : public Runtime {
 public:
  /// All outlive it.
  ProgramRuntime(const RegionServices& services, const Options& options, ProcessRegions& regions,
                 RuleBook& rules, SubmissionTuning& submission);

  [[nodiscard]] const Options& options() const noexcept override { return options_; }
  [[nodiscard]] bool sees_launches() const noexcept override {
    return services_.frontend != nullptr;
  }
  [[nodiscard]] std::unique_ptr<RepetitionCheck> check_repetition() override;
  [[nodiscard]] Region& region(std::string_view name, const Options& author,
                               const StoredAs& as) override;
  [[nodiscard]] std::optional<RegionOutcome> outcome_of(std::string_view region) override;
  [[nodiscard]] Region* current_region() noexcept override;
  [[nodiscard]] bool is_in_region() noexcept override;
  [[nodiscard]] bool is_capturing() noexcept override;
  void note_capture(CUstream stream) noexcept override { services_.captures.note(stream); }
  void declare(std::shared_ptr<KernelRule> rule) override;
  [[nodiscard]] JobRanks& ranks() noexcept override { return ranks_; }
  [[nodiscard]] const space::ChoiceDeclaration* choice_rule(
      const std::string& name) const noexcept override;
  [[nodiscard]] bool may_interrupt() noexcept override;
  [[nodiscard]] store::TrialJournal& journal() noexcept override;
  void work_was_waited_for() noexcept override;
  [[nodiscard]] DeviceFacts device_facts() noexcept override;
  [[nodiscard]] EventLog& log() noexcept override { return services_.log; }

 private:
  const RegionServices& services_;
  const Options& options_;
  ProcessRegions& regions_;
  RuleBook& rules_;
  SubmissionTuning& submission_;
  ProgramRanks ranks_;
};

}  // namespace contextune::intercept
