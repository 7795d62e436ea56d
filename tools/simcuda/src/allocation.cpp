#include "allocation.hpp"

namespace simcuda {

void meet_allocation_fault(Memory::Kind kind, std::size_t bytes) {
  const auto which =
      kind == Memory::Kind::host ? Fault::Kind::host_alloc_fail : Fault::Kind::alloc_fail;
  if (const Fault* const fault = driver().faults.hit_allocation(which, bytes))
    throw Failure{fault->error};
}

Memory::Block& allocate(Context& context, int device, std::size_t bytes, Memory::Kind kind,
                        DriverLock& lock) {
  Driver& state = driver();
  meet_allocation_fault(kind, bytes);
  const auto once = [&]() -> Memory::Block& {
    return state.memory.allocate(bytes, kind, device, reinterpret_cast<CUcontext>(&context),
                                 state.device(device).profile.memory_bytes);
  };
  if (state.pending.immediate()) return once();
  try {
    return once();
  } catch (const Failure& failure) {
    if (failure.code != CUDA_ERROR_OUT_OF_MEMORY) throw;
    state.pending.finish_all(nullptr, lock);
    return once();
  }
}

}  // namespace simcuda
