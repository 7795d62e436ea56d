#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "intercept/collectives/found_collectives.hpp"
#include "intercept/nccl/nccl_threads.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/runtime/process_regions.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// The program's calls of NCCL, each of which belongs to the region that is open around it. Any
/// thread; nothing throws.
class NcclCalls {
 public:
  /// @param services and `regions` outlive it
  NcclCalls(const RegionServices& services, ProcessRegions& regions)
      : services_(services), regions_(regions) {}

  /// Looks for the stretch that collectives repeat, unless options or marks say otherwise.
  /// @param options  outlive it
  /// @param measures told at the beginning of each entry that is measured
  void find_stretch(const Options& options, std::function<void()> measures) noexcept;
  /// The region of that stretch, while an entry of it is open; else null.
  [[nodiscard]] LaunchRegion* found_region() const noexcept { return found_.open_region(); }

  /// Before repeats() and begins().
  void see(const contextune_nccl_call& call) noexcept { found_.see(call); }
  /// The program ends: says so where its collectives repeated too little to be compared.
  void report_few() const noexcept;
  /// Whether it is one that this thread has made before and that is settled: it has begun then.
  [[nodiscard]] bool repeats(const contextune_nccl_call& call) noexcept;
  void begins(const contextune_nccl_call& call) noexcept;
  void ends(const contextune_nccl_call& call) noexcept;
  /// After ends(): ranks that the call connects may agree from now on.
  void join_ranks(const contextune_nccl_call& call) noexcept;

  /// NCCL's own threads, as NcclThreads says.
  [[nodiscard]] std::vector<pid_t> thread_ids() const { return threads_.ids(); }

 private:
  [[nodiscard]] LaunchRegion* region_of(const ThreadState& thread) const noexcept;

  const RegionServices& services_;
  ProcessRegions& regions_;
  NcclThreads threads_;
  FoundCollectives found_;
};

}  // namespace contextune::intercept
