#pragma once

namespace contextune::host {

/// From now on this thread, and those that it starts, have a table of descriptors of their own. The
/// program can neither close what is opened here nor open files under its numbers. Nothing that is
/// written or closed here can be the program's. Only `kept` of the process's open descriptors stays
/// open here as well; 0, 1 and 2 lead to /dev/null.
/// For threads of ours that never call the driver, which would not find its descriptors.
/// @return false: the system does not have that (Linux 5.9), or forbids it; all is shared as before
[[nodiscard]] bool own_descriptors(int kept = -1) noexcept;

}  // namespace contextune::host
