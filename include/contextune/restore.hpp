#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace contextune {

/// A stretch of device memory.
struct DeviceSpan {
  void* pointer = nullptr;
  std::size_t size_bytes = 0;
};

/// How to undo what one pass of a region's body did: by a callable, by device memory, or by both.
/// contextune copies that memory aside before the first pass and copies it back before each further
/// one. A value; owns what it was given, but not the device memory.
class Restore {
 public:
  Restore() = default;

  /// Device memory that the body changes.
  Restore(std::initializer_list<DeviceSpan> buffers) : buffers_(buffers) {}
  Restore(std::vector<DeviceSpan> buffers) : buffers_(std::move(buffers)) {}

  /// A callable without arguments that puts everything back; runs on the region's thread, outside
  /// of what is measured. Its exceptions end the search and go on to the region's caller.
  template <class Callable>
  requires(std::is_invocable_v<Callable&> && !std::is_same_v<std::decay_t<Callable>, Restore>)
      Restore(Callable&& restore)  // NOLINT(bugprone-forwarding-reference-overload): not a Restore
      : call_(std::forward<Callable>(restore)) {}

  /// Adds device memory to a callable.
  Restore& add(DeviceSpan buffer) {
    buffers_.push_back(buffer);
    return *this;
  }

  [[nodiscard]] const std::function<void()>& call() const noexcept { return call_; }
  [[nodiscard]] const std::vector<DeviceSpan>& buffers() const noexcept { return buffers_; }
  [[nodiscard]] bool empty() const noexcept { return !call_ && buffers_.empty(); }

 private:
  std::function<void()> call_;
  std::vector<DeviceSpan> buffers_;
};

}  // namespace contextune
