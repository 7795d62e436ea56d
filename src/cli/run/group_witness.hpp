#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace contextune::cli {

/// A process of the same group that does nothing but answer what this one cannot see for itself.
/// Not thread-safe. The helper process ends with this object, and with this process.
class GroupWitness {
 public:
  /// @param children  of this process, whom it is to go on with; see wake_with_children
  explicit GroupWitness(const std::vector<pid_t>& children);
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  /// Whether `signal` came to the group since it was last asked about, and not to this process
  /// alone. The kernel does not say, so the helper is asked whether it got the signal too. Without
  /// the helper, `timeout 5 contextune run -- program` and a shell's `kill %1` would reach the
  /// program twice. Takes some milliseconds.
  [[nodiscard]] bool saw(int signal);

  /// While it is on, a SIGCONT wakes this process where it is stopped and one of the children is
  /// not. Nobody else would tell it of a child that somebody continues or kills alone.
  void wake_with_children(bool wake) const;

  /// From whom that SIGCONT is; -1: there is none.
  [[nodiscard]] pid_t helper() const { return helper_; }

 private:
  pid_t helper_ = -1;
  int request_ = -1;
  int reply_ = -1;
  std::uint64_t seen_ = 0;
};

}  // namespace contextune::cli
