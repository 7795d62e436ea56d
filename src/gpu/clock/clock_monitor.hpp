#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/trials/timer.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// Reads the clock. Empty: there is nothing to be read (the GPU idles, or NVML does not tell).
using ReadClock = std::function<std::optional<ClockReading>()>;

/// Watches a device's SM clock through NVML, every 5 ms on a thread of its own that runs only while
/// it watches. NVML takes 8 ms to start and refreshes its figures some 50 times a second; a reading
/// costs 0.6 us. Readings while the GPU idles do not count. Without NVML, and on a simulated
/// driver, the clock reads 0. Never null; any thread.
[[nodiscard]] std::unique_ptr<ClockMonitor> make_clock_monitor(const Driver& driver,
                                                               CUdevice device);

/// The same over any clock: `connect` is called once, on the monitor's thread, and answers how to
/// read (or nothing).
[[nodiscard]] std::unique_ptr<ClockMonitor> make_clock_monitor(std::function<ReadClock()> connect);

}  // namespace contextune::gpu
