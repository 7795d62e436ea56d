#pragma once

#include <sys/types.h>

#include <cstdint>

namespace contextune::cli {

/// Tells whether a signal was sent to the whole process group, or to this process alone. The kernel
/// does not say; so a process of the same group that does nothing else is asked whether it got the
/// signal too. Without it, `timeout 5 contextune run -- program` and a shell's `kill %1` would
/// reach the program twice.
/// Not thread-safe. The helper process ends with this object, and with this process.
class GroupWitness {
 public:
  GroupWitness();
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  /// Whether `signal` came to the group since it was last asked about. Takes some milliseconds.
  [[nodiscard]] bool saw(int signal);

 private:
  pid_t helper_ = -1;
  int request_ = -1;
  int reply_ = -1;
  std::uint64_t seen_ = 0;
};

}  // namespace contextune::cli
