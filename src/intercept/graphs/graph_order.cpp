#include "intercept/graphs/graph_order.hpp"

namespace contextune::intercept {

GraphOrder::~GraphOrder() {
  if (event_ != nullptr) (void)driver_.cuEventDestroy(event_);
}

bool GraphOrder::is_on(CUstream stream) const noexcept {
  if (stream != stream_) return false;
  if (stream == CU_STREAM_PER_THREAD && pthread_equal(thread_, pthread_self()) == 0) return false;
  CUcontext current = nullptr;
  return stream != CU_STREAM_PER_THREAD && stream != CU_STREAM_LEGACY
             ? true
             : driver_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context_;
}

CUgraphExec GraphOrder::before(CUgraphExec exec, CUstream stream) noexcept {
  if (exec == last_ || is_on(stream)) return exec;
  if (stream_ == nullptr && !marked_ && last_ == nullptr) return exec;  // the first launch
  roams_ = true;
  if (!marked_ && last_ != nullptr) return last_;
  if (!marked_) mark_late();
  if (marked_ && driver_.cuStreamWaitEvent(stream, event_, 0) == CUDA_SUCCESS) return exec;
  return last_ != nullptr ? last_ : exec;
}

void GraphOrder::after(CUgraphExec exec, CUstream stream, bool may_change) noexcept {
  last_ = exec;
  stream_ = stream;
  thread_ = pthread_self();
  marked_ = false;
  const bool is_default = stream == CU_STREAM_PER_THREAD || stream == CU_STREAM_LEGACY;
  if (is_default && driver_.cuCtxGetCurrent(&context_) != CUDA_SUCCESS) context_ = nullptr;
  // Only this thread can reach its per-thread stream, so it is now or never.
  if (may_change || roams_ || stream == CU_STREAM_PER_THREAD) mark();
}

void GraphOrder::mark() noexcept {
  if (stream_ == nullptr) return;
  if (event_ == nullptr &&
      driver_.cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    event_ = nullptr;
    return;
  }
  marked_ = driver_.cuEventRecord(event_, stream_) == CUDA_SUCCESS;
}

void GraphOrder::outdate() noexcept {
  last_ = nullptr;
}

void GraphOrder::forget_stream(CUstream stream) noexcept {
  if (stream != stream_) return;
  if (!marked_) mark_late();
  stream_ = nullptr;
}

void GraphOrder::mark_late() noexcept {
  // Work that came behind it on its stream is waited for as well, which only costs time.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream_ != nullptr && stream_ != CU_STREAM_PER_THREAD &&
      driver_.cuStreamIsCapturing(stream_, &status) == CUDA_SUCCESS &&
      status == CU_STREAM_CAPTURE_STATUS_NONE) {
    mark();
  }
}

}  // namespace contextune::intercept
