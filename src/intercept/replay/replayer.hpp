#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <contextune/error.hpp>

#include "core/value/result_tolerance.hpp"
#include "gpu/memory/pinned_memory.hpp"
#include "intercept/recording/recording.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"
#include "intercept/tuner/trial_launch.hpp"

namespace contextune::intercept {

/// The GPU does not answer any more, or its context is broken: nothing can be put back.
class StuckReplay : public Error {
 public:
  using Error::Error;
};

/// Has the GPU do again what was recorded, on the streams of the program, with other configs. The
/// memory is the caller's affair. On the thread that recorded; the context is current.
class Replayer {
 public:
  /// Which config a site launches.
  using Choice = std::function<std::uint32_t(const Site&)>;

  /// For how long the GPU may be at a run.
  struct Patience {
    double seconds = 0;  ///< with the defaults
    double trial = 0;    ///< the same with something else, beyond twice what the defaults took
  };

  /// @throws Error if the driver has no events or host memory for it
  Replayer(LaunchRegion& region, const RegionServices& services, Search& search, SiteTable& table,
           CUcontext context, Recording recording, const ResultTolerance& tolerance,
           Patience patience);
  ~Replayer();
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  /// Once more, and waits for it. A config that cannot be launched is replaced by the default.
  /// @throws Error if the driver refuses anything else, or it takes too long
  void run(const Choice& choice);
  /// As a pass of the search, which is open; `issued` is called when all is issued, before the
  /// wait.
  void run_pass(const std::function<void()>& issued);

  /// Waits for all that was issued.
  /// @throws Error as run() does
  void wait_for_all();

  /// Whether the copies to the host brought what they brought in the first run, as far as the
  /// tolerance goes.
  [[nodiscard]] bool host_results_agree();
  /// The same with what they brought when it was called for the first time since forget_reference:
  /// of runs on memory that holds something else.
  [[nodiscard]] bool host_agrees_with_reference();
  void forget_reference() noexcept { reference_.clear(); }

  [[nodiscard]] const Recording& recording() const noexcept { return recording_; }

  /// The sites of the recording, each once; known after the first run.
  [[nodiscard]] const std::vector<const Site*>& sites() const noexcept { return sites_; }
  [[nodiscard]] std::size_t num_operations() const noexcept { return recording_.operations.size(); }

 private:
  void meet(const Site& site);
  void destroy_events() noexcept;
  void lay_out_host_memory();
  /// Everything, even where some of it fails: other ranks wait for the collectives.
  void issue(const Choice* choice);
  void issue(std::size_t number, const Choice* choice);
  void issue_launch(const RecordedLaunch& recorded, const Choice* choice);
  void issue_graph(const Operation& operation, const Choice* choice);
  void issue_call(const Operation& operation, const std::byte* host);
  void issue_collective(const contextune_nccl_call& call, bool counts);
  void wait_for(CUstream stream);
  void check(CUresult result, const char* what) const;

  LaunchRegion& region_;
  const RegionServices& services_;
  Search& search_;
  SiteTable& table_;
  TrialLaunch trial_;
  Recording recording_;
  ResultTolerance tolerance_;
  const Patience patience_;
  bool tries_ = false;           ///< something else than the defaults is under way
  double defaults_seconds_ = 0;  ///< that they took
  std::vector<CUevent> events_;
  CUevent done_ = nullptr;
  std::vector<const Site*> sites_;
  gpu::PinnedMemory pinned_;
  std::vector<std::byte> pageable_;
  std::vector<std::byte*> host_;  ///< by operation; null: it has no side on the host
  using HostResults = std::vector<std::vector<std::byte>>;
  [[nodiscard]] bool agree_on_host(HostResults& with);
  HostResults results_;    ///< of the first run, by operation
  HostResults reference_;  ///< of the first one on other memory; empty: there was none
};

}  // namespace contextune::intercept
