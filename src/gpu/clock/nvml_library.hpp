#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// The part of NVML that reads clocks, declared here: nvml.h is not in every toolkit installation,
/// and the library comes with the driver. A value; any thread.
class NvmlLibrary {
 public:
  using Device = void*;

  /// Opens libnvidia-ml.so.1 and initialises it (8 ms on an H200). Empty: there is none.
  [[nodiscard]] static std::optional<NvmlLibrary> open(Dlsym find_symbol);

  /// @param pci_bus_id as cuDeviceGetPCIBusId writes it
  [[nodiscard]] Device device(const std::string& pci_bus_id) const;

  /// Hz; 0: not known.
  [[nodiscard]] double sm_clock(Device device) const;

  /// Why the clock is not higher: bits of NVML's clocks event reasons.
  [[nodiscard]] std::uint64_t clock_reasons(Device device) const;

  static constexpr std::uint64_t idle = 0x1;
  /// Power cap, hardware slowdown, sync boost, heat (software and hardware), power brake.
  static constexpr std::uint64_t throttling = 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80;

 private:
  int (*init_)() = nullptr;
  int (*handle_)(const char*, Device*) = nullptr;
  int (*clock_)(Device, int, unsigned int*) = nullptr;
  int (*reasons_)(Device, unsigned long long*) = nullptr;
};

}  // namespace contextune::gpu
