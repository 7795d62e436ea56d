#pragma once

#include "contexts.hpp"

namespace simcuda {

/// An entry point as CUPTI numbers it.
struct EntryPoint {
  std::uint32_t cbid;
  const char* name;
};

/// Runs the body of an entry point that a CUPTI subscriber may watch. The body gets the lock and
/// the correlation id of the call.
template <class Body>
CUresult observed(EntryPoint entry, const void* parameters, Body&& body) noexcept {
  Driver& state = driver();
  const simcuda_listener* const listener = state.listener.load(std::memory_order_acquire);
  const bool watched = listener != nullptr && listener->api != nullptr;
  std::uint32_t correlation = 0;
  Context* context = nullptr;
  std::uint32_t context_id = 0;
  if (watched) {
    {
      const DriverLock lock(state.mutex);
      correlation = state.next_correlation++;
      context = current_context_or_null();
      if (context != nullptr) context_id = context->id;
    }
    listener->api(1, entry.cbid, entry.name, parameters, 0, context, context_id, correlation);
  }
  const CUresult result = api([&](DriverLock& lock) -> CUresult {
    if (!watched) correlation = state.next_correlation++;
    return body(lock, correlation);
  });
  if (watched)
    listener->api(0, entry.cbid, entry.name, parameters, static_cast<int>(result), context,
                  context_id, correlation);
  return result;
}

}  // namespace simcuda
