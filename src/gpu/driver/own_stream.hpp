#pragma once

#include <string_view>

#include "gpu/driver/deadline.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// A stream of ours in one context: the program's work neither waits for it nor is waited for. Used
/// by one thread at a time. Goes before its context does.
class OwnStream {
 public:
  /// @throws Error if the driver refuses
  OwnStream(const Driver& driver, CUcontext context);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  [[nodiscard]] CUstream handle() const noexcept { return stream_; }
  [[nodiscard]] CUcontext context() const noexcept { return context_; }

  /// Waits until everything on the stream is complete, by asking again and again.
  /// @param what  names the work in the error
  /// @throws Error if that failed, or is not complete at the deadline
  void wait(Deadline deadline, std::string_view what);

  /// Whether work was not complete at a deadline: the memory that it uses must not be freed, as
  /// that would wait for it, and the stream stays.
  [[nodiscard]] bool stuck() const noexcept { return stuck_; }

 private:
  const Driver& driver_;
  CUcontext context_;
  CUstream stream_ = nullptr;
  bool stuck_ = false;
};

}  // namespace contextune::gpu
