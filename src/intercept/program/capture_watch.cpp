#include "intercept/program/capture_watch.hpp"

#include <algorithm>

#include "intercept/program/settled_launches.hpp"

namespace contextune::intercept {

void CaptureWatch::begin(CUstream stream) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    captures_.push_back({stream, false});
  } catch (...) {
    return;  // no memory: the driver refuses what must not be captured
  }
  publish();
  settled_changed();
}

void CaptureWatch::begun(CUstream stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = std::find_if(captures_.begin(), captures_.end(), [stream](const Capture& one) {
    return one.stream == stream && !one.begun;
  });
  if (place != captures_.end()) place->begun = true;
}

void CaptureWatch::note(CUstream stream) noexcept {
  if (!is_capturing(stream)) return;
  {
    const std::lock_guard lock(mutex_);
    const auto is_known = [stream](const Capture& one) { return one.stream == stream; };
    if (std::any_of(captures_.begin(), captures_.end(), is_known)) return;
  }
  begin(stream);
  begun(stream);
}

void CaptureWatch::remove(CUstream stream, bool begun) noexcept {
  const std::lock_guard lock(mutex_);
  const auto place = std::find_if(captures_.begin(), captures_.end(), [=](const Capture& one) {
    return one.stream == stream && one.begun == begun;
  });
  if (place == captures_.end()) return;
  captures_.erase(place);
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
  std::erase_if(captures_, [&](const Capture& one) {
    // Another thread's per-thread stream cannot be asked about from here.
    return one.begun && one.stream != CU_STREAM_PER_THREAD && !is_capturing(one.stream);
  });
  publish();
  return !captures_.empty();
}

}  // namespace contextune::intercept
