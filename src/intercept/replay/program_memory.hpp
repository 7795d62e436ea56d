#pragma once

#include <string>
#include <vector>

#include "core/value/fallback_reason.hpp"
#include "gpu/memory/block_store.hpp"
#include "gpu/memory/footprint.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

/// Not all that the program's kernels can write can be looked at and put back; thrown.
struct MemoryObstacle {
  FallbackReason reason;
  std::string text;  ///< empty: the sentence of the reason
};

/// Notes variables of modules that the program may write: its kernels can have their addresses from
/// those of the modules. @throws MemoryObstacle
void note_variables(const RegionServices& services, CUcontext context, int device);

/// How memory on other devices counts, which kernels of a context may write as well.
enum class OtherDevices {
  Decline,  ///< it is an obstacle
  LeftOut   ///< whoever asks looks at all devices, one after the other
};

/// All device memory that kernels of this context can write. @throws MemoryObstacle
[[nodiscard]] std::vector<gpu::MemoryRange> program_memory(
    const RegionServices& services, CUcontext context, int device,
    OtherDevices others = OtherDevices::Decline);

/// @param most_bytes as the option replay_memory has it
[[nodiscard]] gpu::BlockStore::Limits copy_limits(const gpu::Driver& driver, double most_bytes);

}  // namespace contextune::intercept
