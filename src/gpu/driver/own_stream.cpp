#include "gpu/driver/own_stream.hpp"

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
  // A sleep may last 60 us longer than it should, which is much for 1 GiB (500 us on an H200) and
  // little for what takes longer: for that no core is kept busy.
  constexpr double busy_seconds = 2e-3;
  const Deadline busy = Deadline::in(busy_seconds);
  for (;;) {
    const CUresult result = driver_.cuStreamQuery(stream_);
    if (result != CUDA_ERROR_NOT_READY) return check(driver_, result, what);
    if (deadline.has_passed()) {
      stuck_ = true;
      throw Error(std::string(what) + ": not complete in the time that it was given");
    }
    if (busy.has_passed()) std::this_thread::sleep_for(microseconds(50));
  }
}

}  // namespace contextune::gpu
