#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trials/timer.hpp"
#include "gpu/clock/activity_buffers.hpp"
#include "gpu/clock/activity_records.hpp"
#include "gpu/clock/cupti_library.hpp"

namespace contextune::gpu {

/// Times launches with CUPTI's activity records of kernels, copies and memsets. Never subscribes to
/// callbacks.
///
/// A record finds its launch through the record of the call that made it; LaunchLog says why not by
/// an external correlation id. So driver and runtime calls are recorded, except for all that make
/// no GPU work. CUPTI has a switch for each call, which works only on top of the switch for all.
///
/// Records arrive only through flush: CUPTI's own flush period delivers full buffers only.
///
/// Costs on an H200 (CUDA 13.0): the first open 13 ms, close 0.06 ms, another open 0.2 ms. A launch
/// takes 2.9 us bare, 4.9 us while open and 3.4 us while closed. After release, a launch takes 2.9
/// us again; release takes 1.9 ms and makes the next open cost 9 ms. A pass of two launches of 2.5
/// us kernels and a synchronisation: 14 us closed, 16 us open, 41 us with flush and collect. A
/// flush on another thread while the program launches takes 50 us and slows one launch in a hundred
/// to some 15 us.
///
/// Threads: as core/timer.hpp says. A process has at most one object open at a time, as CUPTI's
/// callbacks carry no user data. Never destroyed while attached to CUPTI.
class ActivityTimer final : public LaunchTimer {
 public:
  /// Looks for CUPTI when first opened.
  explicit ActivityTimer(const Driver& driver);
  /// Uses this one.
  ActivityTimer(const Driver& driver, CuptiLibrary cupti);
  ~ActivityTimer() override;
  ActivityTimer(const ActivityTimer&) = delete;
  ActivityTimer& operator=(const ActivityTimer&) = delete;

  [[nodiscard]] const char* name() const override { return "cupti"; }
  [[nodiscard]] bool tells_graph_kernels_apart() const override { return true; }
  [[nodiscard]] bool open(std::string& why) override;
  [[nodiscard]] bool is_open() const { return open_.load(std::memory_order_relaxed); }
  void close() override;
  void launch_begin(std::uint64_t tag, StreamHandle stream) noexcept override;
  void launch_end(std::uint64_t tag, StreamHandle stream) noexcept override;
  void flush(bool wait) override;
  void collect(std::vector<TimedWork>& work) override;
  [[nodiscard]] std::uint64_t dropped() const override;

  /// Tells that the program instantiates, uploads or launches a CUDA graph. From then on CUPTI
  /// stays in the process if it is attached. A graph that was made or launched under CUPTI fails
  /// with CUDA_ERROR_LAUNCH_FAILED once CUPTI is finalized. 30 of 40 processes with random calls
  /// failed so; none of 40 that spared graphs did, and none of 40 without graphs. Any thread.
  void note_graph() noexcept;

  /// Closes, and takes CUPTI out of the process (cuptiFinalize), so that launches cost what they
  /// did before. To be called only while no other thread can be inside a driver call. False: a
  /// thread is between launch_begin and launch_end, or CUPTI refused; it then stays attached, at
  /// 0.5 us a launch.
  bool release();

  /// Whether CUPTI is in the way of launches: from the first open to a release that answered true.
  [[nodiscard]] bool attached() const noexcept { return attached_; }

 private:
  [[nodiscard]] bool attach(std::string& why);
  [[nodiscard]] bool enable(std::string& why);
  void disable();
  void record_launching_calls_only();
  void consume(const std::uint8_t* buffer, std::size_t valid_bytes);

  static void buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records);
  static void buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                               std::size_t size, std::size_t valid_size);

  const Driver& driver_;
  std::optional<CuptiLibrary> cupti_;
  std::unique_ptr<ActivityBuffers> buffers_;
  LaunchLog launch_log_;
  ActivityRecords records_;
  std::vector<CUpti_ActivityKind> enabled_;
  std::atomic<bool> attached_{false};
  std::atomic<bool> open_{false};
  std::atomic<bool> graphs_{false};       // a graph has met CUPTI
  std::atomic<std::uint32_t> inside_{0};  // threads between launch_begin and launch_end
  std::atomic<std::uint64_t> launches_{0};
  std::atomic<std::uint64_t> lost_{0};  // records and launches that nobody could keep
  std::uint64_t launches_settled_ = 0;
  std::uint64_t seen_settled_ = 0;
};

}  // namespace contextune::gpu
