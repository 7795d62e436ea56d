#pragma once

#include <atomic>
#include <functional>

#include "intercept/site/site_table.hpp"

namespace contextune::gpu {
class BlockKernels;
}  // namespace contextune::gpu

namespace contextune::intercept {

class CaptureWatch;
class ContextTable;
class GraphTable;
class Launcher;
class Measurement;
class OpenRegions;
class ProcessMemory;
class ProcessRanks;
class ProcessStore;
class ProgramAttributes;
class Recorder;
class ReplayGate;

/// The services that all regions of a process work with; lives as long as the process.
struct RegionServices {
  const gpu::Driver& driver;
  const Launcher& launcher;
  KernelTable& kernels;
  KnobSource& knobs;
  BuildQueue& builds;
  ForcedConfigs& forced;
  EventLog& log;
  Measurement& measurement;
  OpenRegions& open;
  CaptureWatch& captures;
  ProcessMemory& memory;
  ContextTable& contexts;
  ProgramAttributes& attributes;
  gpu::ModuleVariables& variables;
  Recorder& recorder;
  ReplayGate& gate;
  gpu::BlockKernels& block_kernels;
  const contextune_frontend* frontend;  ///< null: launches are not seen
  GraphTable& graphs;
  ProcessRanks& ranks;
  ProcessStore& store;
  const std::atomic<bool>& stopped;     ///< nothing is tuned any more: exit(), or a broken context
  std::function<void(CUresult)> broke;  ///< a launch found the context broken
  bool several_devices = false;         ///< so a launch's context tells its device

  [[nodiscard]] SiteTable::Services for_sites() const {
    return {driver, kernels, variables, knobs, builds, forced, log};
  }
};

}  // namespace contextune::intercept
