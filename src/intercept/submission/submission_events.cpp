#include "intercept/submission/submission_events.hpp"

namespace contextune::intercept {

SubmissionEvents::Event SubmissionEvents::record(CUstream stream) {
  submitter_.hand_over();
  const gpu::PooledEvent event = pool_.record(stream);
  if (!event) return nullptr;
  return {new gpu::PooledEvent(event), [this](const gpu::PooledEvent* used) {
            pool_.give_back(*used);
            delete used;
          }};
}

CUresult SubmissionEvents::query(const gpu::PooledEvent& event) const noexcept {
  const gpu::CurrentContext current(driver_, event.context);
  return driver_.cuEventQuery(event.event);
}

std::optional<double> SubmissionEvents::seconds_between(
    const gpu::PooledEvent& begin, const gpu::PooledEvent& end) const noexcept {
  const gpu::CurrentContext current(driver_, end.context);
  const CUresult ended = driver_.cuEventQuery(end.event);
  if (ended == CUDA_ERROR_NOT_READY) return std::nullopt;
  float milliseconds = 0;
  if (ended != CUDA_SUCCESS ||
      driver_.cuEventElapsedTime(&milliseconds, begin.event, end.event) != CUDA_SUCCESS) {
    return 0;
  }
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace contextune::intercept
