#pragma once

#include <asio.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/live/growing_logs.hpp"

namespace contextune::cli {

/// The report as it was at one time.
struct LiveSnapshot {
  std::uint64_t number = 0;  ///< counts up when anything has changed
  std::string data;          ///< as the page takes it: JSON
};

/// The newest report, made when somebody asks for it: where nobody looks, nothing is read. Logs are
/// read, and reports are made, on a thread of its own and not all of the time: the program that is
/// watched may want the processor. All else happens on the loop's thread.
class LiveReport {
 public:
  using Clock = std::chrono::steady_clock;
  using Ready = std::function<void(std::shared_ptr<const LiveSnapshot>)>;

  /// @param path a log folder, or one log
  /// @param run whose: as select_run takes it
  LiveReport(asio::io_context& loop, std::string path, std::string run);
  /// The loop must not run any more.
  ~LiveReport();
  LiveReport(const LiveReport&) = delete;
  LiveReport& operator=(const LiveReport&) = delete;

  /// Calls `ready` on the loop, with nothing if no report could be made.
  void get(Ready ready);

 private:
  void look();
  [[nodiscard]] std::shared_ptr<const LiveSnapshot> newest();
  void hand_out(std::shared_ptr<const LiveSnapshot> snapshot, Clock::duration took);

  asio::io_context& loop_;
  std::string path_;
  std::string run_;
  std::atomic<bool> stopped_ = false;
  // On the worker:
  GrowingLogs logs_;
  std::uint64_t number_ = 0;
  std::shared_ptr<const LiveSnapshot> made_;
  // On the loop:
  std::shared_ptr<const LiveSnapshot> snapshot_;
  std::vector<Ready> waiting_;
  bool at_work_ = false;
  Clock::time_point next_look_ = Clock::time_point::min();
  asio::thread_pool worker_{1};  ///< the last: ends before what it uses
};

}  // namespace contextune::cli
