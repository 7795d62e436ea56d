#include "intercept/capture_watch.hpp"

#include <algorithm>

#include "intercept/settled_launches.hpp"

namespace contextune::intercept {

void CaptureWatch::begin(CUstream stream) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    streams_.push_back(stream);
  } catch (...) {
    return;  // no memory: the driver refuses what must not be captured
  }
  publish();
  settled_changed();
}

void CaptureWatch::end(CUstream stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = std::find(streams_.begin(), streams_.end(), stream);
  if (place == streams_.end()) return;
  streams_.erase(place);
  publish();
}

bool CaptureWatch::is_capturing(CUstream stream) const noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver_.cuStreamIsCapturing(stream, &status);
  // The legacy stream answers with an error while another stream captures; it is not ours to use.
  return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool CaptureWatch::any() noexcept {
  if (!possible()) return false;
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [&](CUstream stream) {
    // Another thread's per-thread stream cannot be asked about from here.
    return stream != CU_STREAM_PER_THREAD && !is_capturing(stream);
  });
  publish();
  return !streams_.empty();
}

}  // namespace contextune::intercept
