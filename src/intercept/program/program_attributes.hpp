#pragma once

#include <cuda.h>

#include <mutex>
#include <set>
#include <utility>

namespace contextune::intercept {

/// The attributes that the program has set on its kernels itself and tuning must not overwrite. Any
/// thread.
class ProgramAttributes {
 public:
  /// `handle` is a CUfunction or a CUkernel.
  void set(const void* handle, CUfunction_attribute attribute) {
    const std::lock_guard lock(mutex_);
    set_.emplace(handle, static_cast<int>(attribute));
  }
  [[nodiscard]] bool has_set(const void* handle, CUfunction_attribute attribute) const {
    const std::lock_guard lock(mutex_);
    return set_.contains({handle, static_cast<int>(attribute)});
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::pair<const void*, int>> set_;
};

}  // namespace contextune::intercept
