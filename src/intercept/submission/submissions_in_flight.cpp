#include "intercept/submission/submissions_in_flight.hpp"

#include <algorithm>
#include <exception>

#include "intercept/host/clock.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/program/trial_watch.hpp"

namespace contextune::intercept {

/// Says so where the GPU does not get through: the program's own wait does not come back then, and
/// none of our hooks is called.
class SubmissionsInFlight::Lookout final : public TrialWatch::Watched,
                                           public std::enable_shared_from_this<Lookout> {
 public:
  Lookout(const SubmissionsInFlight& all, CaptureWatch& captures, EventLog& log, double timeout)
      : all_(all), captures_(captures), log_(log), timeout_(timeout) {}

  void set(bool any) {
    since_ = any ? now_seconds() : 0;
    if (!any) return;
    CUcontext context = nullptr;
    (void)all_.driver_.cuCtxGetCurrent(&context);
    context_ = context;
    if (!is_watched_.exchange(true) && !TrialWatch::get().watch(shared_from_this(), timeout_))
      is_watched_ = false;
  }

  void forget_context(CUcontext context) noexcept {
    (void)context_.compare_exchange_strong(context, nullptr);
  }

  [[nodiscard]] double look() noexcept override {
    constexpr double longest_look_seconds = 1;
    is_watched_ = false;  // first: what begins now is looked after anew
    try {
      const double since = since_;
      CUcontext const context = context_;
      if (since == 0 || context == nullptr || is_watched_.exchange(true)) return 0;
      const double left = since + timeout_ - now_seconds();
      if (left > 0) return left;
      const double most = std::min(timeout_, longest_look_seconds);
      if (!captures_.any() && !end_within(all_.driver_, context, most, captures_) &&
          since_ == since) {
        since_ = 0;
        log_.fallback(FallbackReason::TrialTimeout, StoredSubmission::region,
                      StoredSubmission::site,
                      "The GPU is not through with launches after trial_timeout; later runs leave "
                      "them as written.");
        all_.stored_->hung();
      }
    } catch (const std::exception&) {
      // Without memory, or a thread to wait with: later, then.
    }
    return timeout_;
  }

 private:
  const SubmissionsInFlight& all_;
  CaptureWatch& captures_;
  EventLog& log_;
  const double timeout_;
  std::atomic<double> since_{0};  ///< 0: nothing is in flight
  std::atomic<CUcontext> context_{nullptr};
  std::atomic<bool> is_watched_{false};
};

SubmissionsInFlight::SubmissionsInFlight(const gpu::Driver& driver, CaptureWatch& captures,
                                         EventLog& log, double trial_timeout)
    : driver_(driver), lookout_(std::make_shared<Lookout>(*this, captures, log, trial_timeout)) {}

void SubmissionsInFlight::add(const Submission& submission, std::uint64_t block, CUstream stream) {
  if (submission.is_as_written() || stored_ == nullptr) return;
  // A stream that means another one on another thread is not asked.
  if (stream != stream_ && stream != CU_STREAM_PER_THREAD) {
    stream_ = driver_.cuCtxGetCurrent(&context_) == CUDA_SUCCESS ? stream : nullptr;
  }
  for (auto& [one, last] : all_) {
    if (one != submission) continue;
    last = block;
    return;
  }
  all_.emplace_back(submission, block);
  write();
}

void SubmissionsInFlight::ended(std::uint64_t block) {
  constexpr std::uint64_t blocks_between = 16;
  const auto is_through = [&](const auto& one) { return one.second + blocks_between <= block; };
  if (std::erase_if(all_, is_through) != 0) write();
}

void SubmissionsInFlight::clear() {
  if (all_.empty()) return;
  all_.clear();
  write();
}

void SubmissionsInFlight::clear_if_idle() {
  constexpr double look_every_seconds = 1e-3;
  CUstream const stream = stream_;
  const double now = now_seconds();
  if (all_.empty() || stream == nullptr || now - looked_ < look_every_seconds) return;
  looked_ = now;
  const gpu::CurrentContext current(driver_, context_);
  if (driver_.cuStreamQuery(stream) == CUDA_SUCCESS) clear();
}

void SubmissionsInFlight::write() {
  lookout_->set(!all_.empty());
  std::vector<Submission> submissions;
  for (const auto& [one, last] : all_) submissions.push_back(one);
  stored_->set_in_flight(submissions);
}

void SubmissionsInFlight::forget_stream(CUstream stream) noexcept {
  (void)stream_.compare_exchange_strong(stream, nullptr);
}

void SubmissionsInFlight::forget_context(CUcontext context) noexcept {
  lookout_->forget_context(context);
  stream_ = nullptr;
}

}  // namespace contextune::intercept
