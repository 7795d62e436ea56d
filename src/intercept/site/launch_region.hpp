#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "intercept/program/graph_call.hpp"
#include "intercept/program/launch.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/site/region.hpp"
#include "intercept/site/region_services.hpp"

namespace contextune::intercept {

class RegionCollectives;

/// A region as the hooks see it. The entries of all kinds of regions are kept here: whose entry is
/// a pass, and what is nested in what.
class LaunchRegion : public Region, public std::enable_shared_from_this<LaunchRegion> {
 public:
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }

  /// Entries of one thread, opened by the API or, with `mark`, by an NVTX range.
  void begin_entry() noexcept override { begin_on_thread(api_mark, false); }
  void end_entry() noexcept override { end_on_thread(api_mark); }
  [[nodiscard]] bool begin_pass() noexcept override { return false; }
  bool end_pass() noexcept override { return false; }
  void abandon_pass() noexcept override {}
  [[nodiscard]] Site* tunable(const TunableSpec&) noexcept override { return nullptr; }

  void begin_on_thread(std::uint64_t mark, bool counts_already) noexcept;
  void end_on_thread(std::uint64_t mark) noexcept;
  /// A frame that begin_on_thread made was closed.
  void ended(const EntryFrame& frame) noexcept;

  /// Entries of the whole process: several at a time are one. Any threads, at the same time, too;
  /// none waits for what another's entry or its end takes.
  void begin_in_process() noexcept;
  void end_in_process() noexcept;
  /// The one that is open, if any, ends, and the next begins.
  void begin_next_in_process() noexcept;
  [[nodiscard]] bool is_in_process() const noexcept {
    return process_entries_.load(std::memory_order_relaxed) != 0;
  }

  /// Makes the launch, exactly once as far as the program can tell.
  /// @param counts it belongs to the entry that may be a pass
  virtual CUresult launch(const contextune_launch& call, bool counts) noexcept = 0;

  /// The same for the launch of a graph: as the program wrote it in a region of kernels only.
  virtual CUresult launch_graph(const GraphCall& call, bool counts) noexcept = 0;
  /// The same under a plan of the caller's, reported to nobody.
  /// @param failed gets the sites whose config cannot be launched; they ran their default
  virtual CUresult launch_graph_with(const GraphCall& call,
                                     const std::function<std::uint32_t(const Site&)>& config_of,
                                     std::vector<const Site*>& failed) noexcept = 0;
  /// Whether graphs launched in it have regions of their own.
  [[nodiscard]] virtual bool leaves_graphs() const noexcept { return false; }

  /// Its collectives; null: they are not tuned in such a region.
  [[nodiscard]] virtual RegionCollectives* collectives() noexcept { return nullptr; }
  /// The program begins a collective in it, and collectives() is null.
  virtual void saw_collective() noexcept {}

  /// Whether the open entry is measured: then it is better not disturbed.
  [[nodiscard]] virtual bool is_measuring() const noexcept { return false; }

  /// Whether it has an entry that may be a pass, and the program has not left any.
  [[nodiscard]] bool is_in_first_entry() const noexcept {
    return occupied_by_.load(std::memory_order_acquire) != 0 &&
           !was_left_.load(std::memory_order_relaxed);
  }

  /// Writes lines about where it stands; file writes only.
  virtual void write_summary() noexcept = 0;
  /// Nothing is tuned any more, for that reason.
  virtual void stop(FallbackReason reason, const std::string& text) noexcept = 0;
  /// The program has just waited for the GPU.
  virtual void synchronised() noexcept {}
  /// The same, and a search of the process has winners on probation.
  virtual void check_probation() noexcept {}
  /// The program destroys a stream or a context, or the context is gone already.
  virtual void forget_stream(StreamHandle) noexcept {}
  virtual void forget_context(CUcontext, bool /*gone*/) noexcept {}

  [[nodiscard]] const RegionServices& services() const noexcept { return services_; }
  [[nodiscard]] Launch launch_of(const contextune_launch& call) const noexcept;

  static constexpr std::uint64_t api_mark = 1;
  static constexpr std::uint64_t graph_mark = 4;
  static constexpr std::uint64_t replay_mark = 5;

 protected:
  /// @param takes_launches false: of collectives only, all else is as if it were not open
  LaunchRegion(std::string name, const RegionServices& services, bool takes_launches = true)
      : name_(std::move(name)), services_(services), takes_launches_(takes_launches) {}

  /// The one entry that may be a pass.
  /// @param thread_bound it is this thread's; else the process's
  virtual void entered(bool thread_bound) noexcept = 0;
  /// In place of `entered`, where an entry has nothing to do but to be counted: neither waits nor
  /// writes. False: it has.
  [[nodiscard]] virtual bool pass_entry() noexcept { return false; }
  virtual void left() noexcept = 0;
  /// In place of `left`, on another thread: that of the entry has ended.
  virtual void abandoned() noexcept {}

  [[nodiscard]] bool is_capturing(const Launch& launch) const noexcept;
  /// @param thread_bound it ends with this thread at the latest
  /// @return false: another one counts
  [[nodiscard]] bool claim_entry(bool thread_bound = true) noexcept;
  void release_entry() noexcept { occupied_by_.store(0, std::memory_order_release); }

  /// The `region` line of the log, once.
  void say_first_entry() noexcept;

 private:
  /// @param counts whether it was claimed
  void end_process_entry(bool counts) noexcept;
  /// Begins the entry that process_entry_begins_ is about.
  void begin_process_entry() noexcept;
  void show() noexcept;
  void unshow() noexcept;

  const std::string name_;
  const RegionServices& services_;
  const bool takes_launches_;
  std::atomic<pid_t> occupied_by_{0};  ///< whose entry counts; 0: nobody's, -1: the process's
  std::atomic<bool> was_left_{false};  ///< an entry that counts
  std::atomic<bool> said_{false};

  std::mutex process_mutex_;  ///< held for the flags below, never for what they lead to
  std::atomic<int> process_entries_{0};
  bool process_entry_counts_ = false;   ///< the one that is open has been claimed, or is being so
  bool process_entry_begins_ = false;   ///< a thread claims one: no other is claimed meanwhile
  bool process_entry_is_over_ = false;  ///< that one, before it was claimed: its thread ends it
};

}  // namespace contextune::intercept
