#include "gpu/own_stream.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include <contextune/error.hpp>

namespace contextune::gpu {

OwnStream::OwnStream(const Driver& driver, CUcontext context) : driver_(driver), context_(context) {
  const RelaxedCapture relaxed(driver_);
  const CurrentContext current(driver_, context_);
  check(driver_, driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
}

OwnStream::~OwnStream() {
  if (stuck_) return;
  const RelaxedCapture relaxed(driver_);
  const CurrentContext current(driver_, context_);
  (void)driver_.cuStreamDestroy(stream_);
}

void OwnStream::wait(Deadline deadline, std::string_view what) {
  using std::chrono::microseconds;
  const RelaxedCapture relaxed(driver_);
  const CurrentContext current(driver_, context_);
  // Small work is done within these first questions; for the rest a core is not kept busy.
  constexpr int questions_without_sleep = 200;
  auto sleep = microseconds(10);
  for (int question = 0;; ++question) {
    const CUresult result = driver_.cuStreamQuery(stream_);
    if (result != CUDA_ERROR_NOT_READY) return check(driver_, result, what);
    if (deadline.has_passed()) {
      stuck_ = true;
      throw Error(std::string(what) + ": not complete in the time that it was given");
    }
    if (question < questions_without_sleep) continue;
    std::this_thread::sleep_for(sleep);
    sleep = std::min(sleep * 2, microseconds(200));
  }
}

}  // namespace contextune::gpu
