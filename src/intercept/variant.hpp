#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "gpu/driver.hpp"
#include "intercept/build_queue.hpp"
#include "intercept/knob_provider.hpp"

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

  /// Whether both launch the same; never for those with attributes.
  bool operator==(const Variant& other) const {
    return num_attributes == 0 && other.num_attributes == 0 && usable == other.usable &&
           function == other.function && grid == other.grid && block == other.block &&
           shared_bytes == other.shared_bytes && why == other.why;
  }
};

/// Whether the config leaves the launch as the program wrote it.
[[nodiscard]] bool is_as_written(const VariantSpec& spec, const KernelLaunch& launch);

/// Makes the variant: finds or builds its function, checks that it takes the same arguments, raises
/// its limit of dynamic shared memory. What is not possible gives a variant that is not usable.
/// Absent: the build is under way; ask again later.
[[nodiscard]] std::optional<Variant> make_variant(const VariantSpec& spec,
                                                  const KernelLaunch& launch,
                                                  const gpu::Driver& driver, BuildQueue& builds);

}  // namespace contextune::intercept
