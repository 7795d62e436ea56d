#pragma once

#include "core/search/store.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// What winners depend on of the devices that this process sees: "gpu" (of the first one),
/// "compute_capability", "num_sms", "memory_mib", "gpus", and "links" ("none", "some", "all": how
/// many pairs of devices reach each other's memory; "+atomics" where all of those have native
/// atomic operations, as NVLink has), and `other_gpus` where they are not all the same. A fact that
/// the driver does not tell is "unknown".
inline constexpr const char* other_gpus = "other_gpus";
[[nodiscard]] Facts hardware_facts(const Driver& driver);

/// "driver" (its release, of /proc/driver/nvidia/version), "cuda" (what it supports: "13.0") and
/// "cpu" (of /proc/cpuinfo).
[[nodiscard]] Facts software_facts(const Driver& driver);

}  // namespace contextune::gpu
