#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "gpu/clock/activity_timer.hpp"
#include "gpu/clock/event_timer.hpp"
#include "gpu/driver/driver.hpp"
#include "intercept/host/context_table.hpp"
#include "intercept/measuring/measurement.hpp"
#include "intercept/program/capture_watch.hpp"

namespace contextune::intercept {

/// The timers of this process, as the driver and CUPTI give them. Any thread.
class ProcessTimers {
 public:
  /// All that is referred to outlives it, and is used only once something is measured.
  /// @param nccl_threads as Measurement::Timers has them
  ProcessTimers(TimerKind kind, const gpu::Driver& driver, EventLog& log, CaptureWatch& captures,
                ContextTable& contexts, std::function<std::vector<pid_t>()> nccl_threads);

  [[nodiscard]] Measurement& measurement() noexcept { return measurement_; }

  /// The program makes or launches a CUDA graph: CUPTI must then not be taken out any more.
  void note_graph() noexcept { activity_->note_graph(); }
  /// The context is about to be destroyed, or is gone.
  void forget_context(CUcontext context) noexcept { events_->forget_context(context); }

 private:
  [[nodiscard]] Measurement::Timers make_timers(std::function<std::vector<pid_t>()> nccl_threads);
  /// Whether no GPU has work of the program, as far as that can be told without waiting for it.
  [[nodiscard]] bool is_idle();

  const gpu::Driver& driver_;
  CaptureWatch& captures_;
  ContextTable& contexts_;
  gpu::EventTimer* events_ = nullptr;
  gpu::ActivityTimer* activity_ = nullptr;
  Measurement measurement_;
};

}  // namespace contextune::intercept
