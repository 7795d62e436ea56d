#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/submission/submission.hpp"
#include "gpu/driver/driver.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/submission/stored_submission.hpp"

namespace contextune::intercept {

/// Ways of launching that the GPU may be at work in, kept where it outlives this process: what
/// takes it down, or never ends, is not tried again. As written is no such way.
///
/// Serialised by the caller but for the two that forget; lives as long as the process.
class SubmissionsInFlight {
 public:
  /// @param trial_timeout what has not ended then never does
  SubmissionsInFlight(const gpu::Driver& driver, CaptureWatch& captures, EventLog& log,
                      double trial_timeout);

  /// Where it is kept.
  void begin(const StoredSubmission& stored) noexcept { stored_ = &stored; }

  /// A block has such launches, which are on a stream of the current context.
  void add(const Submission& submission, std::uint64_t block, CUstream stream);
  /// The GPU is through with the block, and so with all before it. A way that will be tried again
  /// soon stays all the same, since each change is written.
  void ended(std::uint64_t block);
  void clear();
  /// That is so where the GPU is through with the stream.
  void clear_if_idle();

  void forget_stream(CUstream stream) noexcept;
  void forget_context(CUcontext context) noexcept;

 private:
  class Lookout;
  void write();

  const gpu::Driver& driver_;
  const std::shared_ptr<Lookout> lookout_;
  const StoredSubmission* stored_ = nullptr;
  std::vector<std::pair<Submission, std::uint64_t>> all_;  ///< with the last block of each
  std::atomic<CUstream> stream_{nullptr};                  ///< null: not known
  CUcontext context_ = nullptr;                            ///< of it
  double looked_ = 0;                                      ///< whether it is idle
};

}  // namespace contextune::intercept
