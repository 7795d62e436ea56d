#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/submission/submission.hpp"
#include "gpu/driver/driver.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/site/launcher.hpp"
#include "intercept/submit/batch_graphs.hpp"
#include "intercept/submit/frontend_words.hpp"
#include "intercept/submit/held_batches.hpp"
#include "intercept/submit/hold_deadline.hpp"
#include "intercept/submit/holdable_launches.hpp"
#include "intercept/submit/last_launch.hpp"
#include "intercept/submit/launch_stream.hpp"
#include "intercept/submit/submitted_kernels.hpp"

namespace contextune::intercept {

/// How the program's launches reach the driver: as written, chained, gathered.
///
/// *Chained*: a launch gets the programmatic attribute if its kernel waits at its entry and may
/// follow the driver call directly before it, on any thread. That call must have launched a known
/// kernel on the same stream with no attribute of the program's. That kernel must neither trigger
/// nor launch from the device.
///
/// *Gathered*: launches of one stream are held back and handed over as one graph. Every other call
/// of the driver by the program hands over first: the frontend sees to it while `*held` is not 0. A
/// launch is held only while the GPU is at work, and for some 50 us at the longest: two looks of a
/// thread of ours. The driver must have accepted a launch of its shape before. None of its
/// arguments may be an address outside of its device's memory.
///
/// Any thread; nothing throws.
class Submitter {
 public:
  /// Told why launches that may be gathered are not any more, in a sentence.
  using Say = std::function<void(const std::string& sentence)>;

  struct Totals {
    std::uint64_t chained = 0;  ///< launches in the stream
    std::uint64_t held = 0;     ///< launches
    std::uint64_t batches = 0;  ///< handed over
    std::uint64_t late = 0;     ///< of them by our thread, since nobody else came
    std::uint64_t single = 0;   ///< held launches that were launched one by one after all
    BatchGraphs::Totals graphs;
  };

  /// @param frontend null: nothing is chained or gathered
  Submitter(const gpu::Driver& driver, const Launcher& launcher, SubmittedKernels& kernels,
            CaptureWatch& captures, const ProcessMemory& memory,
            const contextune_frontend* frontend, Say say);
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;

  /// From the next launch on.
  void use(Submission submission) noexcept;
  [[nodiscard]] bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }

  /// Whether `hand_over` has something to do.
  [[nodiscard]] bool holds() const noexcept { return frontend_.holds(); }

  /// A launch by the program.
  /// @param cache this thread's
  [[nodiscard]] CUresult launch(const contextune_launch& call,
                                SubmittedKernelCache& cache) noexcept;

  [[nodiscard]] CUresult launch_as_written(const contextune_launch& call) const noexcept {
    return launcher_.as_written(call);
  }
  /// That the launch goes to, by the special handles of default streams.
  [[nodiscard]] static CUstream stream_for(const contextune_launch& call) noexcept;

  /// The program is about to make another call of the driver.
  /// @param asks it puts nothing on a stream
  void hand_over(bool asks = false) noexcept;

  /// Whether that is to be said although nothing is held.
  void want_other_calls(bool wanted) noexcept;

  /// Hashes of the names of kernels that were chained, the most frequent ones first. Throws.
  [[nodiscard]] std::vector<std::uint64_t> chained_kernels() const { return kernels_.chained(); }
  /// As a person knows them. Throws.
  [[nodiscard]] SubmittedKernels::Images images() const { return kernels_.images(); }
  [[nodiscard]] std::string names_of(std::uint32_t ordinary) const {
    return kernels_.names_of(ordinary);
  }
  /// Those are the kernels that `Submission::ordinary` speaks of. Throws.
  void number_kernels(const std::vector<std::uint64_t>& hashes) { kernels_.number(hashes); }

  /// Kernels, modules or contexts are about to go away, or to change.
  void forget_kernels() noexcept;
  /// An attribute of a kernel has changed, and with it perhaps how much shared memory it may have.
  void forget_shapes() noexcept;
  /// The stream is about to go away, or to change.
  void forget_stream() noexcept;

  /// Everything is as written from now on, and nothing is held.
  void stop() noexcept;

  [[nodiscard]] Totals totals() noexcept;

 private:
  /// Why launches that may be gathered are not any more: each reason is said once. Under the lock
  /// of whoever launches; nothing throws.
  class Obstacles {
   public:
    explicit Obstacles(Say say) : say_(std::move(say)) {}

    /// Whether nothing is gathered until the program ends.
    [[nodiscard]] bool gave_up() const noexcept { return gave_up_; }
    /// Nothing is, from now on.
    /// @param why a clause
    void give_up(const std::string& why) noexcept {
      if (!std::exchange(gave_up_, true)) say("Launches are not gathered any more: " + why + ".");
    }
    /// Calls of the driver are not shown any more that would have to hand over.
    void unguarded() noexcept {
      if (std::exchange(said_unguarded_, true)) return;
      say("Launches are neither chained nor gathered any more: the program has obtained more "
          "functions of the driver than are watched.");
    }
    void say(const std::string& sentence) noexcept {
      try {
        if (say_) say_(sentence);
      } catch (const std::exception&) {
        // Not said, then.
      }
    }

   private:
    const Say say_;
    bool gave_up_ = false;
    bool said_unguarded_ = false;
  };

  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] LaunchStream stream_of(const contextune_launch& call) const noexcept;
  [[nodiscard]] bool may_be_held(const contextune_launch& call, const SubmittedKernel& kernel,
                                 const LaunchStream& stream) noexcept;
  void hold(const contextune_launch& call, SubmittedKernel& kernel, const LaunchStream& stream);
  /// Lets go of the lock meanwhile.
  /// @param next the stream of the launch that comes next, which waits for no other stream's
  void hand_over(Lock& lock, const LaunchStream* next = nullptr) noexcept;
  void launch_singly(LaunchBatch& batch, const LaunchStream& stream) noexcept;
  [[nodiscard]] CUresult launch_now(const contextune_launch& call, SubmittedKernel* kernel,
                                    const LaunchStream& stream, Lock& lock) noexcept;
  [[nodiscard]] CUresult launch_chained(const contextune_launch& call) const noexcept;
  /// Until the program ends.
  /// @param why a clause
  void give_up_gathering(const std::string& why) noexcept;
  void publish() noexcept;
  void watch_deadline() noexcept;

  const gpu::Driver& driver_;
  const Launcher& launcher_;
  SubmittedKernels& kernels_;
  CaptureWatch& captures_;
  FrontendWords frontend_;
  std::atomic<bool> on_{false};

  std::mutex mutex_;
  Submission submission_;
  LastLaunch last_;
  HoldDeadline deadline_;
  HoldableLaunches holdable_;
  Obstacles obstacles_;
  HeldBatches batches_;

  BatchGraphs graphs_;
  Totals totals_;
};

}  // namespace contextune::intercept
