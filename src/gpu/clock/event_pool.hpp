#pragma once

#include <mutex>
#include <vector>

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// A CUDA event and the context that it belongs to.
struct PooledEvent {
  CUevent event = nullptr;
  CUcontext context = nullptr;

  explicit operator bool() const noexcept { return event != nullptr; }
};

/// Events that are used again and again, apart by context. Any thread. Never destroys one: at exit
/// the driver may be gone, and a destroyed context took its events with it.
class EventPool {
 public:
  explicit EventPool(const Driver& driver) : driver_(driver) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// An event recorded on `stream` right now; empty if the stream is being captured, or the driver
  /// refuses. Costs 1.3 us on an H200.
  [[nodiscard]] PooledEvent record(CUstream stream) noexcept;

  /// Records an event once more, on a stream of its context. False: as above.
  [[nodiscard]] bool record_again(const PooledEvent& event, CUstream stream) noexcept;

  void give_back(const PooledEvent& event) noexcept;

  /// Whether record() would find the stream neither captured nor refused for a capture.
  [[nodiscard]] bool may_record(CUstream stream) const noexcept;

  /// The context is being destroyed, and its events with it.
  void forget_context(CUcontext context) noexcept;

 private:
  struct Free {
    CUcontext context = nullptr;
    std::vector<CUevent> events;
  };
  [[nodiscard]] CUevent take(CUcontext context) noexcept;

  const Driver& driver_;
  std::mutex mutex_;
  std::vector<Free> free_;
};

}  // namespace contextune::gpu
