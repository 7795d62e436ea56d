#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "intercept/submit/launch_batch.hpp"
#include "intercept/submit/launch_stream.hpp"

namespace contextune::intercept {

/// The launches that are held back, and those that are being handed over: a batch each. Under the
/// lock of whoever launches; the batch that is handed over belongs to the thread that does so.
class HeldBatches {
 public:
  /// The launches that are held back.
  [[nodiscard]] const LaunchBatch& held() const noexcept { return *held_; }
  [[nodiscard]] bool has_room_for(const SubmittedKernel& kernel,
                                  const LaunchStream& stream) const noexcept {
    return (held_->empty() || stream_ == stream) && held_->has_room_for(kernel);
  }
  /// Whether a chained launch may come directly behind the last one of them.
  [[nodiscard]] bool may_be_followed() const noexcept {
    return !held_->empty() && (*held_)[held_->size() - 1].kernel->may_be_followed();
  }
  void hold(const SubmittedKernel& kernel, const contextune_launch& call,
            const LaunchStream& stream, bool chained) noexcept {
    stream_ = stream;
    held_->add(kernel, call, chained);
  }

  [[nodiscard]] bool is_handing_over() const noexcept { return is_handing_over_; }
  /// Waits for what is on its way, if it has to come before a launch on `next`; null: before
  /// anything. False: it did not get there in two seconds.
  [[nodiscard]] bool await(std::unique_lock<std::mutex>& lock, const LaunchStream* next) noexcept {
    constexpr std::chrono::seconds patience(2);
    return !is_handing_over_ || (next != nullptr && !next->waits_for(handed_stream_)) ||
           handed_over_.wait_for(lock, patience, [this] { return !is_handing_over_; });
  }
  /// This thread hands over what is held: that is valid until `end`.
  [[nodiscard]] LaunchBatch& begin() noexcept {
    is_handing_over_ = true;
    std::swap(held_, handed_);
    handed_stream_ = stream_;
    return *handed_;
  }
  [[nodiscard]] const LaunchStream& handed_stream() const noexcept { return handed_stream_; }
  void end() noexcept {
    handed_->clear();
    is_handing_over_ = false;
    handed_over_.notify_all();
  }

  /// A launch that was held has failed.
  void fail(CUresult result) noexcept {
    if (failure_ == CUDA_SUCCESS) failure_ = result;
  }
  /// The first such failure: told by a later launch, as that of an earlier one is by the driver.
  [[nodiscard]] CUresult take_failure() noexcept { return std::exchange(failure_, CUDA_SUCCESS); }

 private:
  std::array<LaunchBatch, 2> batches_;  ///< first: the pointers below take its places
  LaunchBatch* held_ = &batches_[0];
  LaunchBatch* handed_ = &batches_[1];
  LaunchStream stream_;  ///< of what is held
  LaunchStream handed_stream_;
  bool is_handing_over_ = false;
  CUresult failure_ = CUDA_SUCCESS;
  std::condition_variable handed_over_;
};

}  // namespace contextune::intercept
