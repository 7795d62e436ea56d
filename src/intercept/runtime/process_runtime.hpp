#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/clock/activity_timer.hpp"
#include "gpu/clock/event_timer.hpp"
#include "gpu/image/module_variables.hpp"
#include "gpu/memory/block_kernels.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/host/context_table.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/program/program_attributes.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/ranks/process_ranks.hpp"
#include "intercept/ranks/program_ranks.hpp"
#include "intercept/replay/recorder.hpp"
#include "intercept/runtime/nccl_calls.hpp"
#include "intercept/runtime/process_environment.hpp"
#include "intercept/runtime/process_regions.hpp"
#include "intercept/runtime/process_submission.hpp"
#include "intercept/runtime/runtime.hpp"
#include "intercept/site/kernel_marks.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/site/rule_book.hpp"
#include "intercept/tuner/measurement.hpp"

namespace contextune::intercept {

/// The Runtime of this process, with what the hooks need of it. Never destroyed.
class ProcessRuntime final : public Runtime {
 public:
  /// @throws Error if the driver cannot be used
  ProcessRuntime(const contextune_frontend* frontend, const Options& options,
                 const std::vector<std::string>& faults);

  [[nodiscard]] const Options& options() const noexcept override { return options_; }
  [[nodiscard]] Options options_over(const Options& author) const override;
  [[nodiscard]] bool sees_launches() const noexcept override { return frontend_ != nullptr; }
  [[nodiscard]] std::unique_ptr<RepetitionCheck> check_repetition() override;
  using Runtime::region;
  [[nodiscard]] Region& region(std::string_view name, const Options& author,
                               const StoredAs& as) override;
  [[nodiscard]] Region* current_region() noexcept override;
  [[nodiscard]] bool is_in_region() noexcept override;
  [[nodiscard]] bool is_capturing() noexcept override { return captures_.any(); }
  void declare(std::shared_ptr<KernelRule> rule) override;
  [[nodiscard]] JobRanks& ranks() noexcept override { return program_ranks_; }
  [[nodiscard]] const space::ChoiceDeclaration* choice_rule(
      const std::string& name) const noexcept override {
    return rules_.choice(name);
  }
  [[nodiscard]] bool may_interrupt() noexcept override {
    return !stopped_.load(std::memory_order_acquire) && !recorder_.active() && !captures_.any();
  }
  [[nodiscard]] store::TrialJournal& journal() noexcept override { return store_.journal(); }
  void work_was_waited_for() noexcept override;
  [[nodiscard]] DeviceFacts device_facts() noexcept override;
  [[nodiscard]] EventLog& log() noexcept override { return log_; }

  // Called by the hooks. Nothing throws.
  [[nodiscard]] CUresult launch(const contextune_launch& call) noexcept;
  [[nodiscard]] CUresult launch_graph(const GraphCall& call) noexcept;
  void stream_goes_away(CUstream stream) noexcept;
  /// @param gone it is already, and with it everything of ours that was in it
  void context_goes_away(CUcontext context, bool gone = false) noexcept;
  void primary_context_goes_away(CUdevice device) noexcept;
  void primary_context_released(CUdevice device) noexcept;
  void synchronised() noexcept;
  /// The program makes or launches a CUDA graph: CUPTI must then not be taken out any more.
  void graph_is_used() noexcept { activity_->note_graph(); }
  /// A call answered that the context is in error.
  void broke(CUresult result) noexcept;
  void unsupported_launch(const char* entry_point) noexcept;
  void program_uses_cupti(const char* entry_point) noexcept;
  [[nodiscard]] const RegionServices& services() const noexcept { return services_; }
  [[nodiscard]] ProcessRegions& regions() noexcept { return regions_; }
  [[nodiscard]] NcclCalls& nccl() noexcept { return nccl_; }
  [[nodiscard]] ProgramAttributes& program_attributes() noexcept { return program_; }
  [[nodiscard]] ProcessSubmission& submission() noexcept { return submission_; }

  /// exit() has begun: everything passes through from now on. Waits until no replay is under way
  /// and nobody is in a call of CUPTI, at most two seconds each, once; may be called again.
  void end_replays() noexcept;
  /// The same, and what is known is written.
  void exiting() noexcept;

 private:
  /// Null is every one.
  [[nodiscard]] bool is_current(CUcontext context) const noexcept;
  [[nodiscard]] CUresult launch_in_found(const contextune_launch& call,
                                         LaunchRegion& found) noexcept;
  [[nodiscard]] CUresult launch_slowly(const contextune_launch& call, ThreadState& thread) noexcept;
  /// Whichever launch hears first that the context is in error tells what was in flight.
  CUresult after_launch(CUresult result) noexcept {
    if (result != CUDA_SUCCESS && is_sticky_error(result)) broke(result);
    return result;
  }
  void start_marks();
  void write_discovered(DiscoveredPeriods& periods) noexcept;
  void begin_process(const RegionMark& mark);
  /// Whether this thread is within a call of the core.
  [[nodiscard]] bool is_inside() const noexcept;
  void write_start(std::uint32_t num_ranks);
  /// No variable says so, but the program's first communicator of several.
  void is_rank(std::uint32_t rank, std::uint32_t num_ranks) noexcept;
  [[nodiscard]] Measurement::Timers make_timers();
  /// Whether no GPU has work of the program, as far as that can be told without waiting for it.
  [[nodiscard]] bool is_idle();

  const double began_ = now_seconds();
  const contextune_frontend* const frontend_;
  const Options options_;
  const gpu::Driver driver_;
  EventLog log_;
  ProcessMemory memory_;
  ContextTable contexts_;
  std::atomic<std::uint32_t> contexts_gone_{0};
  const Launcher launcher_;
  const NameFilter filter_;
  KernelTable kernels_;
  ProgramAttributes program_;
  gpu::ModuleVariables module_variables_;
  RuleBook rules_;
  BuildQueue builds_;
  ForcedConfigs forced_;
  gpu::EventTimer* events_ = nullptr;
  gpu::ActivityTimer* activity_ = nullptr;
  Measurement measurement_;
  CaptureWatch captures_;
  std::atomic<bool> stopped_{false};
  GraphTable graphs_;
  ProcessRanks ranks_;
  ProgramRanks program_ranks_{ranks_, options_, driver_, stopped_};
  ProcessEnvironment environment_{driver_, ranks_};
  ProcessStore store_;
  Recorder recorder_;
  ReplayGate gate_;
  gpu::BlockKernels block_kernels_;
  OpenRegions open_;
  std::atomic<bool> said_unassigned_{false};
  std::atomic<std::uint64_t> unassigned_{0};  ///< launches that we saw and no region had
  const RegionServices services_;
  ProcessSubmission submission_;
  ProcessRegions regions_;
  NcclCalls nccl_;
  bool waited_in_vain_ = false;  ///< for the end of what crashes where the program ends meanwhile
  std::atomic<bool> is_one_region_{false};  ///< what is in no other one
  bool graphs_are_regions_ = false;         ///< each launch of one is an entry
  KernelMarks kernel_marks_;
};

}  // namespace contextune::intercept
