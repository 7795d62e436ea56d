#pragma once

#include <optional>

#include "core/value/kernel_rule.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// Facts about a device that a rule or a message may state. A fact that the driver does not tell is
/// 0.
[[nodiscard]] DeviceFacts device_facts(const Driver& driver, CUdevice device) noexcept;

/// The device of this thread's current context.
[[nodiscard]] std::optional<CUdevice> current_device(const Driver& driver) noexcept;

}  // namespace contextune::gpu
