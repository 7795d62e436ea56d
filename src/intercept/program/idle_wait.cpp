#include "intercept/program/idle_wait.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "host/own_thread.hpp"

namespace contextune::intercept {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Wait {
  CUcontext context = nullptr;
  Clock::time_point begin = Clock::now();
  std::mutex mutex;
  std::condition_variable ended;
  bool through = false;
  CUresult result = CUDA_SUCCESS;
};

/// Waits that were given up and whose threads are in the driver still: one for each context, so
/// that a program whose GPU is never idle again has no more of them with every wait.
class UnendedWaits {
 public:
  static UnendedWaits& get() {
    static auto* const waits = new UnendedWaits;  // threads end after it would have gone
    return *waits;
  }

  void add(std::shared_ptr<Wait> wait) {
    const std::lock_guard lock(mutex_);
    waits_.push_back(std::move(wait));
  }
  /// Null: there is none.
  [[nodiscard]] std::shared_ptr<Wait> find(CUcontext context) {
    const std::lock_guard lock(mutex_);
    std::erase_if(waits_, [](const auto& one) {
      const std::lock_guard its_lock(one->mutex);
      return one->through;
    });
    const auto place = std::find_if(waits_.begin(), waits_.end(),
                                    [&](const auto& one) { return one->context == context; });
    return place == waits_.end() ? nullptr : *place;
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Wait>> waits_;
};

bool ends_by(Wait& wait, Clock::time_point deadline) {
  std::unique_lock lock(wait.mutex);
  return wait.ended.wait_until(lock, deadline, [&] { return wait.through; });
}

/// Absent: it was still at work.
std::optional<CUresult> wait_for(const gpu::Driver& driver, CUcontext context, double seconds,
                                 CaptureWatch* captures) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
  // Work whose end an earlier wait did not see comes before the work to be waited for now.
  while (const auto unended = UnendedWaits::get().find(context))
    if (!ends_by(*unended, deadline)) return std::nullopt;
  // The driver has no such call with a deadline, so another thread makes the one without. If it
  // never returns, that thread is all that is lost.
  const auto wait = std::make_shared<Wait>();
  wait->context = context;
  host::start_own_thread("contextune-idle", [&driver, context, captures, wait] {
    const gpu::CurrentContext current(driver, context);
    const gpu::RelaxedCapture relaxed(driver);
    const bool captured = captures != nullptr && captures->any();
    const CUresult result =
        captured ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : driver.cuCtxSynchronize();
    const std::lock_guard lock(wait->mutex);
    wait->result = result;
    wait->through = true;
    wait->ended.notify_one();
  });
  if (!ends_by(*wait, deadline)) {
    UnendedWaits::get().add(wait);
    return std::nullopt;
  }
  return wait->result;
}

}  // namespace

std::optional<CUresult> end_within(const gpu::Driver& driver, CUcontext context, double seconds,
                                   CaptureWatch& captures) {
  return wait_for(driver, context, seconds, &captures);
}

double busy_seconds(CUcontext context) {
  const auto unended = UnendedWaits::get().find(context);
  return unended == nullptr ? 0 : Seconds(Clock::now() - unended->begin).count();
}

bool wait_until_idle(const gpu::Driver& driver, CUcontext context, double seconds, std::string& why,
                     CaptureWatch* captures) {
  const std::optional<CUresult> result = wait_for(driver, context, seconds, captures);
  if (!result) {
    const auto whole = static_cast<int>(std::max(seconds, busy_seconds(context)));
    why = "the GPU was still at work after " + std::to_string(whole) + " s";
    return false;
  }
  if (*result != CUDA_SUCCESS) why = gpu::describe(driver, *result);
  return *result == CUDA_SUCCESS;
}

}  // namespace contextune::intercept
