#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/agreement/batch.hpp"

namespace contextune {

[[nodiscard]] std::vector<std::byte> encode(const BatchReport& report);
[[nodiscard]] std::vector<std::byte> encode(const Batch& batch);

/// False: these bytes are no such value. Nothing in them is trusted: enumerators are in range,
/// lists are no longer than the bytes can hold, nothing is left over. Whether the numbers of sites,
/// configs and passes exist is for the reader to see.
[[nodiscard]] bool decode(std::span<const std::byte> bytes, BatchReport& report);
[[nodiscard]] bool decode(std::span<const std::byte> bytes, Batch& batch);

/// The hash that ranks compare to be sure that they run the same.
[[nodiscard]] std::uint64_t hash_of(std::span<const std::byte> bytes);

}  // namespace contextune
