#pragma once

#include "core/trials/store.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// Facts about the devices that this process sees, on which winners depend. "gpu",
/// "compute_capability", "num_sms" and "memory_mib" are of this thread's current device, else of
/// the first one. "gpus" is the number of devices. "links" says how many pairs of devices reach
/// each other's memory: "none", "some" or "all". It ends in "+atomics" where all of those pairs
/// have native atomic operations, as NVLink has. `other_gpus` is there where the devices are not
/// all the same. A fact that the driver does not tell is "unknown".
inline constexpr const char* other_gpus = "other_gpus";
[[nodiscard]] Facts hardware_facts(const Driver& driver);

/// "driver" (its release, of /proc/driver/nvidia/version), "cuda" (what it supports: "13.0") and
/// "cpu" (of /proc/cpuinfo).
[[nodiscard]] Facts software_facts(const Driver& driver);

}  // namespace contextune::gpu
