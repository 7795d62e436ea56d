#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/recording/launch_check.hpp"
#include "intercept/recording/open_recording.hpp"
#include "intercept/recording/recording.hpp"
#include "intercept/site/launcher.hpp"

namespace contextune::intercept {

/// Writes down what the program has the GPU do, from begin() to end(): launches with their
/// arguments, copies, memsets, events. A process has one recording at a time, of one thread.
/// Anything that cannot be done again exactly is an obstacle: the recording stops there, and the
/// program does not notice. Any thread may call it; nothing throws, and every call of the program
/// is made once, as written.
class Recorder {
 public:
  using FirstLaunch = LaunchCheck::FirstLaunch;

  /// Gives back what is in the way of so many bytes that the program wants.
  using GiveWay = std::function<void(std::size_t bytes)>;

  /// @param several_devices so a launch's context tells its device
  Recorder(const contextune_frontend* frontend, const gpu::Driver& driver, const Launcher& launcher,
           KernelTable& kernels, GraphTable& graphs, ProcessMemory& memory, CaptureWatch& captures,
           bool several_devices);

  /// To be taken before memory is looked at.
  [[nodiscard]] ProgramVersions versions() const noexcept {
    return {memory_.changes().version(), kernels_.epoch()};
  }

  /// @param thread_bound the work is all this thread's; else that of the first thread to come
  /// @param most_host_bytes that a replay may take for the host's side of copies
  /// @param give_way gives memory back that was kept for recordings; called on any thread, before
  ///   the program takes memory, which is an obstacle
  /// @return false: another recording is under way, or a call of the last one
  [[nodiscard]] bool begin(bool thread_bound, const ProgramVersions& versions,
                           std::size_t most_host_bytes, FirstLaunch first_launch,
                           GiveWay give_way) noexcept;
  /// Ends the recording and returns it. To be called by the thread that recorded; calls of others
  /// that come now are passed through.
  [[nodiscard]] Recording end() noexcept;

  /// Something is being recorded, and nothing has come in its way.
  [[nodiscard]] bool active() const noexcept { return active_.load(std::memory_order_acquire); }
  /// A call of the program is being looked at: of a recording that another thread has ended, if
  /// there is none now.
  [[nodiscard]] bool busy() const noexcept { return inside_.load(std::memory_order_acquire) != 0; }

  /// Makes the launch as written.
  [[nodiscard]] CUresult launch(const contextune_launch& call) noexcept;
  [[nodiscard]] CUresult launch_graph(const GraphCall& call) noexcept;

  /// After every registered call of another kind, while active.
  void after(contextune_fn fn, void* const* args, CUresult result) noexcept;

  /// Around each call of the program to NCCL, which is one operation: what NCCL has the driver do
  /// meanwhile, and on threads of its own, is none.
  void nccl_begins(const contextune_nccl_call& call) noexcept;
  void nccl_ended(const contextune_nccl_call& call) noexcept;

  /// The program has an event that another process records.
  void event_imported(CUevent event) noexcept;

  /// The program is about to take so much memory of the device.
  void memory_wanted(std::size_t bytes) noexcept;
  /// Something happened that a recording cannot hold.
  void obstruct(FallbackReason reason, std::string text, bool retry = false) noexcept;

 private:
  /// Whether this thread's work is what is recorded; if it is not, that is an obstacle.
  [[nodiscard]] bool is_ours() noexcept;
  [[nodiscard]] bool is_owner() noexcept;
  /// A copy of the launch for a replay; null: something stands in the way.
  [[nodiscard]] std::unique_ptr<RecordedLaunch> look_at(const contextune_launch& call,
                                                        const Launch& launch);
  [[nodiscard]] bool may_record(const contextune_nccl_call& call);
  [[nodiscard]] bool note_transfer(contextune_fn fn, void* const* args);
  void note_event(CUevent event, CUstream stream);
  void note_wait(CUstream stream, CUevent event);
  /// @param stream null: everything
  void note_synchronise(CUstream stream);
  void note_host_side(Operation& operation, std::size_t argument, std::size_t size_bytes,
                      bool writes);
  /// The first one counts. Under the mutex.
  void set_obstacle(Recording::Obstacle obstacle) noexcept;
  void obstruct(Recording::Obstacle obstacle) noexcept;
  void add(Operation operation);

  const contextune_frontend* frontend_;
  const gpu::Driver& driver_;
  const Launcher& launcher_;
  KernelTable& kernels_;
  GraphTable& graphs_;
  ProcessMemory& memory_;
  CaptureWatch& captures_;
  std::atomic<bool> active_{false};
  bool begun_ = false;          ///< and not ended
  std::atomic<int> inside_{0};  ///< calls that are being looked at
  std::mutex mutex_;
  OpenRecording open_;
  GiveWay give_way_;
  std::set<CUevent> imported_events_;
  LaunchCheck check_;  ///< not by the mutex: of the thread that records
};

}  // namespace contextune::intercept
