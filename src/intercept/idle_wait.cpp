#include "intercept/idle_wait.hpp"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace contextune::intercept {
namespace {

struct Wait {
  std::mutex mutex;
  std::condition_variable ended;
  bool through = false;
  CUresult result = CUDA_SUCCESS;
};

/// The program's signal handlers must not run on a thread that it does not know: one that is
/// started meanwhile takes no signal.
class NoSignals {
 public:
  NoSignals() noexcept {
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Absent: it was still at work.
std::optional<CUresult> wait_for(const gpu::Driver& driver, CUcontext context, double seconds,
                                 CaptureWatch* captures) {
  // The driver has no such call with a deadline, so another thread makes the one without. If it
  // never returns, that thread is all that is lost.
  const auto wait = std::make_shared<Wait>();
  std::optional<NoSignals> none(std::in_place);
  std::thread thread([&driver, context, captures, wait] {
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
  // From here, so that nobody takes it for a thread of the program.
  (void)pthread_setname_np(thread.native_handle(), "contextune-idle");
  thread.detach();
  none.reset();
  std::unique_lock lock(wait->mutex);
  if (!wait->ended.wait_for(lock, std::chrono::duration<double>(seconds),
                            [&] { return wait->through; })) {
    return std::nullopt;
  }
  return wait->result;
}

}  // namespace

std::optional<CUresult> end_within(const gpu::Driver& driver, CUcontext context, double seconds) {
  return wait_for(driver, context, seconds, nullptr);
}

bool wait_until_idle(const gpu::Driver& driver, CUcontext context, double seconds, std::string& why,
                     CaptureWatch* captures) {
  const std::optional<CUresult> result = wait_for(driver, context, seconds, captures);
  if (!result) {
    why = "it was still at work after " + std::to_string(static_cast<int>(seconds)) + " s";
    return false;
  }
  if (*result != CUDA_SUCCESS) why = gpu::describe(driver, *result);
  return *result == CUDA_SUCCESS;
}

}  // namespace contextune::intercept
