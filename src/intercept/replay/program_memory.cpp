#include "intercept/replay/program_memory.hpp"

#include <utility>

#include "gpu/memory/host_memory.hpp"
#include "intercept/host/context_table.hpp"
#include "intercept/memory/process_memory.hpp"

namespace contextune::intercept {
namespace {

/// Whether the driver has the allocation: to look at missing memory would be an error that no
/// program gets over. The shim does not see calls to the driver that go past it.
bool is_there(const gpu::Driver& driver, const Allocation& one) {
  unsigned type = 0;
  constexpr auto attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  return driver.cuPointerGetAttribute(&type, attribute, one.begin) == CUDA_SUCCESS &&
         driver.cuPointerGetAttribute(&type, attribute, one.end() - 1) == CUDA_SUCCESS;
}

[[noreturn]] void decline(FallbackReason reason, std::string text) {
  throw MemoryObstacle{reason, std::move(text)};
}

}  // namespace

void note_variables(const RegionServices& services, CUcontext context, int device) {
  for (const auto& [owner, use] : services.variables.of_used()) {
    if (!use->unknown.empty()) {
      decline(FallbackReason::UnknownMemory,
              "The memory of a module whose kernels the program has is not known: " + use->unknown +
                  ".");
    }
    for (const gpu::VariableRange& variable : use->variables) {
      if (variable.kind == gpu::VariableKind::Constant) continue;
      Allocation allocation;
      allocation.begin = variable.address;
      allocation.bytes = variable.bytes;
      allocation.kind = variable.kind == gpu::VariableKind::Managed ? AllocationKind::Managed
                                                                    : AllocationKind::Global;
      allocation.device = device;
      allocation.context = context;
      services.memory.allocations().add_variable(allocation, owner);
    }
  }
}

std::vector<gpu::MemoryRange> program_memory(const RegionServices& services, CUcontext context,
                                             int device_of_context, OtherDevices others) {
  const ProcessMemory& memory = services.memory;
  if (const char* why = memory.changes().incomplete()) {
    decline(FallbackReason::UnknownMemory, why);
  }
  if (memory.arrays().has_surfaces()) decline(FallbackReason::ArrayMemory, {});
  std::vector<gpu::MemoryRange> ranges;
  int device = -1;
  for (const Allocation& one : memory.allocations().all()) {
    if (one.kind == AllocationKind::Host || one.of_nccl) continue;
    if (one.kind == AllocationKind::Managed) decline(FallbackReason::ManagedMemory, {});
    if (one.kind == AllocationKind::Imported || one.exported) {
      decline(FallbackReason::SharedMemory, {});
    }
    // Memory that its own device may not write cannot be read either.
    if (!one.accessible) continue;
    if (others == OtherDevices::LeftOut && one.device != device_of_context) continue;
    if (one.context != nullptr && one.context != context) {
      decline(FallbackReason::SeveralDevices, "The program has memory in several contexts.");
    }
    if (device >= 0 && one.device != device) decline(FallbackReason::SeveralDevices, {});
    device = one.device;
    if (!is_there(services.driver, one)) {
      decline(FallbackReason::UnknownMemory,
              "The program gave back memory where contextune did not see it.");
    }
    ranges.push_back({one.begin, one.bytes});
  }
  if (services.contexts.has_other(context, device_of_context)) {
    decline(FallbackReason::SeveralDevices, "The program has several contexts on the device.");
  }
  return ranges;
}

gpu::BlockStore::Limits copy_limits(const gpu::Driver& driver, double most_bytes) {
  if (most_bytes > 0) {
    const auto budget = static_cast<std::size_t>(most_bytes);
    return {budget, budget};
  }
  // While the region runs the program may want memory, too.
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (driver.cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) free_bytes = 0;
  return {free_bytes / 2, gpu::available_host_memory() / 4};
}

}  // namespace contextune::intercept
