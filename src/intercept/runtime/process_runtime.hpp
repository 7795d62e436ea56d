#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/image/module_variables.hpp"
#include "gpu/memory/block_kernels.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/host/context_table.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/program/program_attributes.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/ranks/process_ranks.hpp"
#include "intercept/recording/recorder.hpp"
#include "intercept/runtime/destroyed_handles.hpp"
#include "intercept/runtime/nccl_calls.hpp"
#include "intercept/runtime/process_environment.hpp"
#include "intercept/runtime/process_regions.hpp"
#include "intercept/runtime/process_submission.hpp"
#include "intercept/runtime/process_timers.hpp"
#include "intercept/runtime/program_launches.hpp"
#include "intercept/runtime/program_runtime.hpp"
#include "intercept/site/rule_book.hpp"

namespace contextune::intercept {

/// Contextune in this process: its parts, in the order in which they are made, and what becomes of
/// the process as a whole. Never destroyed. The hooks' calls do not throw.
class ProcessRuntime {
 public:
  /// @throws Error if the driver cannot be used
  ProcessRuntime(const contextune_frontend* frontend, const Options& options,
                 const std::vector<std::string>& faults);
  ProcessRuntime(const ProcessRuntime&) = delete;
  ProcessRuntime& operator=(const ProcessRuntime&) = delete;

  // The parts that the hooks lead calls to.
  [[nodiscard]] const RegionServices& services() const noexcept { return services_; }
  [[nodiscard]] ProcessTimers& timers() noexcept { return timers_; }
  [[nodiscard]] ProcessSubmission& submission() noexcept { return submission_; }
  [[nodiscard]] ProcessRegions& regions() noexcept { return regions_; }
  [[nodiscard]] NcclCalls& nccl() noexcept { return nccl_; }
  [[nodiscard]] DestroyedHandles& handles() noexcept { return handles_; }
  [[nodiscard]] ProgramLaunches& launches() noexcept { return launches_; }
  /// What the program itself says goes there.
  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }

  /// The program has waited for work on a GPU.
  void synchronised() noexcept;
  void program_uses_cupti(const char* entry_point) noexcept;

  /// exit() has begun: everything passes through from now on. Waits until no replay is under way
  /// and nobody is in a call of CUPTI, at most two seconds each, once; may be called again.
  void end_replays() noexcept;
  /// The same, and what is known is written.
  void exiting() noexcept;

 private:
  /// A call answered that the context is in error.
  void broke(CUresult result) noexcept;
  void start_marks();
  void write_discovered(DiscoveredPeriods& periods) noexcept;
  /// Whether this thread is within a call of the core.
  [[nodiscard]] bool is_inside() const noexcept;
  void write_start(std::uint32_t num_ranks);
  /// No variable says so, but the program's first communicator of several.
  void is_rank(std::uint32_t rank, std::uint32_t num_ranks) noexcept;

  const double began_ = now_seconds();
  const contextune_frontend* const frontend_;
  const Options options_;
  const gpu::Driver driver_;
  EventLog log_;
  ProcessMemory memory_;
  ContextTable contexts_;
  const Launcher launcher_;
  const NameFilter filter_;
  KernelTable kernels_;
  ProgramAttributes program_;
  gpu::ModuleVariables module_variables_;
  RuleBook rules_;
  BuildQueue builds_;
  ForcedConfigs forced_;
  ProcessTimers timers_;
  CaptureWatch captures_;
  std::atomic<bool> stopped_{false};
  GraphTable graphs_;
  ProcessRanks ranks_;
  ProcessEnvironment environment_{driver_, ranks_};
  ProcessStore store_;
  Recorder recorder_;
  ReplayGate gate_;
  gpu::BlockKernels block_kernels_;
  OpenRegions open_;
  const RegionServices services_;
  ProcessSubmission submission_;
  ProcessRegions regions_;
  NcclCalls nccl_;
  DestroyedHandles handles_;
  ProgramLaunches launches_;
  ProgramRuntime runtime_;
  bool waited_in_vain_ = false;  ///< for the end of what crashes where the program ends meanwhile
};

}  // namespace contextune::intercept
