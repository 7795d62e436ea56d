#pragma once

#include <unordered_set>

#include "failure.hpp"
#include "objects.hpp"

namespace simcuda {

/// Every live object of the driver. A handle is the address of its object; a handle that is not in
/// here, or is of another kind, is invalid. Guarded by the driver's lock.
class Handles {
 public:
  template <class T>
  T* make() {
    T* const object = new T;
    live_.insert(object);
    return object;
  }

  /// Null when `handle` is no live T. Takes CUstream, CUfunction, ... as they come.
  template <class T>
  [[nodiscard]] T* find(const void* handle) const {
    // Only the address is compared: what a program hands in may point anywhere.
    Object* const object = static_cast<Object*>(const_cast<void*>(handle));
    const auto found = live_.find(object);
    if (found == live_.end() || (*found)->object_kind != T::kind) return nullptr;
    return static_cast<T*>(*found);
  }

  /// @throws Failure with `code` when `handle` is no live T.
  template <class T>
  [[nodiscard]] T& get(const void* handle, CUresult code = CUDA_ERROR_INVALID_HANDLE) const {
    T* const object = find<T>(handle);
    require(object != nullptr, code);
    return *object;
  }

  void destroy(Object* object) {
    live_.erase(object);
    delete object;
  }

 private:
  std::unordered_set<Object*> live_;
};

}  // namespace simcuda
