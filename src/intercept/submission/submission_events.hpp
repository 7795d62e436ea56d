#pragma once

#include <cuda.h>

#include <memory>
#include <optional>

#include "gpu/clock/event_pool.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/submit/submitter.hpp"

namespace contextune::intercept {

/// Events behind the launches of the program, held back ones included. Any thread.
class SubmissionEvents {
 public:
  /// Goes back to the pool with the last that holds it, and before this does.
  using Event = std::shared_ptr<const gpu::PooledEvent>;

  SubmissionEvents(const gpu::Driver& driver, CaptureWatch& captures, Submitter& submitter)
      : driver_(driver), captures_(captures), submitter_(submitter), pool_(driver) {}

  /// Whether an event may be recorded or asked for: no stream may be under capture.
  [[nodiscard]] bool are_possible() noexcept { return !captures_.possible(); }

  /// Hands over what is held back, and records an event behind it. Null: the driver refuses.
  [[nodiscard]] Event record(CUstream stream);

  /// The driver's word on the event: CUDA_ERROR_NOT_READY until the GPU is there.
  [[nodiscard]] CUresult query(const gpu::PooledEvent& event) const noexcept;
  /// Absent: the GPU is not at `end` yet. Not above 0: that cannot be known.
  [[nodiscard]] std::optional<double> seconds_between(const gpu::PooledEvent& begin,
                                                      const gpu::PooledEvent& end) const noexcept;

  /// Before a context is destroyed: events in it are lost.
  void forget_context(CUcontext context) noexcept { pool_.forget_context(context); }

 private:
  const gpu::Driver& driver_;
  CaptureWatch& captures_;
  Submitter& submitter_;
  gpu::EventPool pool_;
};

}  // namespace contextune::intercept
