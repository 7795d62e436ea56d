#pragma once

#include <cuda.h>
#include <pthread.h>

#include "gpu/driver/driver.hpp"

namespace contextune::intercept {

/// Keeps launches of one graph one after the other. The driver does so for launches of one
/// instantiation, on whatever streams; between two instantiations of the graph it is up to us.
/// Serialised by the caller; nothing throws, nothing waits for the GPU.
class GraphOrder {
 public:
  explicit GraphOrder(const gpu::Driver& driver) : driver_(driver) {}
  ~GraphOrder();
  GraphOrder(const GraphOrder&) = delete;
  GraphOrder& operator=(const GraphOrder&) = delete;

  /// Sees to it that a launch on that stream comes after the last one. Gives what to launch:
  /// `exec`, or the instantiation of the last launch where nobody knows when that one ends.
  [[nodiscard]] CUgraphExec before(CUgraphExec exec, CUstream stream) noexcept;
  /// It was launched. `may_change`: other instantiations will follow, so its end is marked.
  void after(CUgraphExec exec, CUstream stream, bool may_change) noexcept;

  /// Its instantiation of the last launch must not be launched any more: it is outdated.
  void outdate() noexcept;
  /// The program destroys that stream.
  void forget_stream(CUstream stream) noexcept;
  /// The instantiation that was last launched; null after outdate().
  [[nodiscard]] CUgraphExec last() const noexcept { return last_; }

 private:
  [[nodiscard]] bool is_on(CUstream stream) const noexcept;
  void mark() noexcept;
  void mark_late() noexcept;

  const gpu::Driver& driver_;
  CUgraphExec last_ = nullptr;
  CUstream stream_ = nullptr;  ///< of the last launch; null: none yet, or it is gone
  pthread_t thread_{};         ///< that made it: whose per-thread stream is meant
  CUcontext context_ = nullptr;
  bool marked_ = false;  ///< the event tells the end of the last launch
  bool roams_ = false;   ///< seen on several streams
  CUevent event_ = nullptr;
};

}  // namespace contextune::intercept
