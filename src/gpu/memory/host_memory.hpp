#pragma once

#include <cstddef>
#include <string>

namespace contextune::gpu {

/// Bytes of host memory that this process can still take without the system or its cgroup running
/// out, which would end some process; 0 if the system does not say.
/// @param root of the file system, for tests
[[nodiscard]] std::size_t available_host_memory(const std::string& root = "/");

}  // namespace contextune::gpu
