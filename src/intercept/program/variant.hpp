#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "gpu/driver/driver.hpp"
#include "intercept/program/launch.hpp"

namespace contextune::intercept {

/// A launch as one config makes it, ready to be issued.
struct Variant {
  bool usable = false;
  std::string why;         ///< it is not usable
  bool too_large = false;  ///< because not all its blocks fit on the device at once
  CUfunction function = nullptr;
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t shared_bytes = 0;
  std::uint32_t num_attributes = 0;
  std::array<CUlaunchAttribute, 4> attributes{};  ///< to be set, whatever the program set

  /// Whether both launch the same.
  bool operator==(const Variant& other) const {
    return usable == other.usable && function == other.function && grid == other.grid &&
           block == other.block && shared_bytes == other.shared_bytes && why == other.why &&
           too_large == other.too_large && num_attributes == other.num_attributes &&
           std::equal(attributes.begin(), attributes.begin() + num_attributes,
                      other.attributes.begin(), &same_attribute);
  }

 private:
  /// The bytes of a value that are not set are 0.
  static bool same_attribute(const CUlaunchAttribute& a, const CUlaunchAttribute& b) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): as said above
    return a.id == b.id && std::memcmp(&a.value, &b.value, sizeof a.value) == 0;
  }
};

}  // namespace contextune::intercept
