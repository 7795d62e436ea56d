#pragma once

#include <sys/stat.h>

#include <chrono>
#include <string>

#include "store/descriptor.hpp"
#include "store/folder.hpp"

namespace contextune::store {

/// When waiting ends.
using Deadline = std::chrono::steady_clock::time_point;

/// The right to replace one file, and the temporary file that will replace it. Two parts:
/// - A lock of the kernel on ".<file>.lock", which ends with its holder, however that ends. It
///   holds among the processes of a host, and among hosts where the file system carries it.
/// - A lease, ".<file>.lease", which appears, whole, only if there is none: it holds among hosts
///   where locks are not carried. It says which process holds it. A lease whose holder is gone may
///   be taken at once, any other after `lease_seconds` by the file system's clock.
/// **Whoever takes a lease first removes the temporary file that it names. So a holder that was
/// stopped meanwhile finds nothing left to rename, and overwrites nobody.**
/// Not thread-safe; locks of several threads exclude each other.
class EntryLock {
 public:
  static constexpr double lease_seconds = 30;

  /// @throws Error if it cannot be had until `deadline`: who holds it; or why it cannot be had
  EntryLock(const Folder& folder, const std::string& file, Deadline deadline);
  ~EntryLock();
  EntryLock(const EntryLock&) = delete;
  EntryLock& operator=(const EntryLock&) = delete;

  /// Makes `text` the file's content: once this returns it is there, and after a crash as well. At
  /// most once. @throws Error, and the file is as it was
  void replace(std::string_view text);

  /// Removes the file, its lock and what else there is of it. @throws Error
  void remove();

  /// Now, by the clock that gives files their times. @throws Error
  [[nodiscard]] timespec file_system_now() const;

 private:
  void lock_kernel(Deadline deadline);
  void create_temporary();
  void take_lease(Deadline deadline);
  void prepare_lease();
  bool take_over(const Descriptor& lease);
  [[nodiscard]] bool holds_lease() const;
  void sweep() const;
  void release() noexcept;

  const Folder& folder_;
  std::string file_;
  std::string lock_name_;
  std::string lease_name_;
  std::string temporary_name_;
  std::string prepared_name_;  ///< of the lease until it has its own
  Descriptor lock_;
  Descriptor temporary_;
  Descriptor lease_;
  std::string other_;  ///< who holds it instead
};

}  // namespace contextune::store
