#pragma once

#include <simcuda/simcuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cost_model.hpp"
#include "failure.hpp"
#include "fault.hpp"
#include "handles.hpp"
#include "memory.hpp"
#include "noise.hpp"
#include "pending_work.hpp"
#include "virtual_memory.hpp"

namespace simcuda {

/// The CUDA version of the newest entry points in here: what cuDriverGetVersion says unless
/// SIMCUDA_VERSION does.
constexpr int newest_version = 13000;

/// One simulated GPU.
struct Device {
  Device(const DeviceProfile& figures, int index, double sigma, std::uint64_t seed)
      : profile(figures),
        cost(profile),
        noise(sigma, seed + static_cast<std::uint64_t>(index) * 7919) {}

  DeviceProfile profile;
  CostModel cost;
  Noise noise;
  double last_kernel_time = 0;
  double last_kernel_noise_free_time = 0;
  Context* primary = nullptr;
  unsigned primary_flags = 0;
  int primary_references = 0;
  MemoryPool* default_pool = nullptr;
  MemoryPool* pool = nullptr;
};

/// The whole state of the simulated driver. One lock guards all of it; entry points take it through
/// api(). Never destroyed: programs call the driver from their own destructors and exit handlers.
class Driver {
 public:
  static Driver& instance();

  std::mutex mutex;
  bool initialised = false;
  std::vector<std::unique_ptr<Device>> devices;
  Handles handles;
  Memory memory;
  VirtualMemory virtual_memory;
  Faults faults;
  PendingWork pending;
  double host_time = 0;  // virtual seconds
  std::uint32_t next_context_id = 1;
  std::uint32_t next_stream_id = 13;
  std::uint32_t next_correlation = 1;
  std::uint64_t next_capture_id = 1;
  std::uint64_t next_graph_node_id = 1;
  std::vector<Stream*> with_open_times;  // that put off reckoning, see stream_time.hpp
  std::uint64_t next_put_off = 1;
  unsigned queries = 0;           // of the entry point that runs and of those just before it
  unsigned previous_queries = 0;  // before it, with nothing else between
  std::atomic<const simcuda_listener*> listener{nullptr};
  std::atomic<bool> ended{false};  // exit() has come to the driver's handler

  /// cuInit. @throws Failure{NO_DEVICE}
  void initialise();
  [[nodiscard]] Device& device(int index);
  void report(simcuda_activity& activity);
  /// Of CUDA, as cuDriverGetVersion says it.
  [[nodiscard]] int version() const noexcept { return version_; }

 private:
  Driver();
  double noise_ = 0.01;
  std::uint64_t seed_ = 1;
  int device_count_ = 1;
  bool ends_ = false;  // with exit()
  int version_ = newest_version;
  DeviceProfile profile_;
};

[[nodiscard]] inline Driver& driver() {
  return Driver::instance();
}

/// The lock of the driver, held by the entry point that is running.
using DriverLock = std::unique_lock<std::mutex>;

/// Runs the body of an entry point: locked, with the cost of a call added to the host's clock, and
/// failures turned into codes.
template <class Body>
CUresult api(Body&& body) noexcept {
  Driver& state = driver();
  if (state.ended.load(std::memory_order_acquire)) return CUDA_ERROR_DEINITIALIZED;
  DriverLock lock(state.mutex);
  if (!state.initialised) return CUDA_ERROR_NOT_INITIALIZED;
  state.host_time += 0.3e-6;
  state.previous_queries = std::exchange(state.queries, 0);
  try {
    return body(lock);
  } catch (const Failure& failure) {
    return failure.code;
  } catch (...) {  // memory ran out
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace simcuda

/// Defines an entry point with a stream argument and its form for the per-thread default stream.
/// In the body `null_stream` says what stream 0 means and `lock` is the driver's lock.
#define SIMCUDA_BOTH_STREAMS(NAME, SUFFIX, PARAMETERS, ...)                                        \
  CUresult CUDAAPI NAME PARAMETERS {                                                               \
    [[maybe_unused]] constexpr auto null_stream = simcuda::NullStream::legacy;                     \
    return simcuda::api([&]([[maybe_unused]] simcuda::DriverLock & lock) -> CUresult __VA_ARGS__); \
  }                                                                                                \
  CUresult CUDAAPI NAME##SUFFIX PARAMETERS {                                                       \
    [[maybe_unused]] constexpr auto null_stream = simcuda::NullStream::per_thread;                 \
    return simcuda::api([&]([[maybe_unused]] simcuda::DriverLock & lock) -> CUresult __VA_ARGS__); \
  }

/// Defines any other entry point.
#define SIMCUDA_ENTRY(NAME, PARAMETERS, ...)                                                       \
  CUresult CUDAAPI NAME PARAMETERS {                                                               \
    return simcuda::api([&]([[maybe_unused]] simcuda::DriverLock & lock) -> CUresult __VA_ARGS__); \
  }
