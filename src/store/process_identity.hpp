#pragma once

#include <cstdint>
#include <string>

namespace contextune::store {

/// Which process of which host this is, so that others can tell whether it is still there.
struct ProcessIdentity {
  std::string host;           ///< for people; several may have one name
  std::string boot;           ///< of the kernel; empty: not known
  std::string pid_namespace;  ///< in which `pid` counts; empty: not known
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  ///< since boot; tells processes of one pid apart

  [[nodiscard]] static ProcessIdentity of_this_process();

  /// "process 4242 on node7".
  [[nodiscard]] std::string to_string() const;
};

enum class Presence { Alive, Gone, Unknown };

/// Whether that process still runs, as far as can be told from here. A process that is stopped
/// does; one that was killed and is not yet waited for does not.
[[nodiscard]] Presence presence_of(const ProcessIdentity& process);

}  // namespace contextune::store
