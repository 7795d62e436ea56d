#pragma once

#include <simcuda/simcuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "cupti_api.hpp"

namespace simcupti {

/// One activity record, with the virtual time from which it is complete.
struct Record {
  static constexpr std::size_t capacity = 320;
  alignas(8) std::array<std::byte, capacity> bytes;
  std::size_t size = 0;
  double complete = 0;
};

/// Virtual seconds as a CUPTI timestamp: nanoseconds that look like the time of day.
[[nodiscard]] std::uint64_t timestamp(double seconds);

[[nodiscard]] Record kernel_record(const simcuda_activity& activity, bool concurrent);
[[nodiscard]] Record copy_record(const simcuda_activity& activity);
[[nodiscard]] Record set_record(const simcuda_activity& activity);
[[nodiscard]] Record correlation_record(CUpti_ExternalCorrelationKind kind, std::uint64_t id,
                                        std::uint32_t correlation, double complete);
[[nodiscard]] Record api_record(std::uint32_t cbid, double start, double end,
                                std::uint32_t correlation, std::uint32_t result);

/// Bytes of the record that begins at `record`, at most `available` long; 0 for an unknown kind.
[[nodiscard]] std::size_t size_of(const CUpti_Activity* record);

}  // namespace simcupti
