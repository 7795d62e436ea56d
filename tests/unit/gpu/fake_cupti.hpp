#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "gpu/clock/cupti_library.hpp"

/// CUPTI's activity API over this one object, with the habits that the real one (13.0) showed on an
/// H200: launches resolve their external ids only while driver calls are recorded, a flush gives
/// out what the GPU has finished, finalize takes everything back.
struct FakeCupti {
  CUptiResult register_result = CUPTI_SUCCESS;
  CUptiResult enable_result = CUPTI_SUCCESS;
  std::set<CUpti_ActivityKind> enabled;
  std::set<std::uint32_t> silent;  // driver calls that are not recorded
  std::set<std::uint32_t> silent_runtime;
  int finalized = 0;
  int flushes = 0;
  int forced_flushes = 0;
  std::size_t dropped = 0;
  bool hold_back = false;  // work is not finished: only a forced flush gives it out
  bool registered = false;
  std::uint32_t launch_call = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;  // by which launch() launches

  /// The program launches: `kernels` pieces of work of `nanoseconds` each.
  void launch(int kernels = 1, std::uint64_t nanoseconds = 2500);
  CUpti_ActivityKind work = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;  // that launch() makes
  /// Around everything else, launch_begin too: the launch is made by cudaLaunchKernel.
  void enter_runtime();
  void leave_runtime();

  /// A fresh one each time.
  static contextune::gpu::CuptiLibrary make();
  static FakeCupti& get();

  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::uint32_t correlation = 0;
  std::uint64_t clock = 1'790'000'000'000'000'000;
  std::uint64_t gpu_clock = clock;
  struct Record {
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
    std::uint32_t correlation = 0;
    std::uint32_t thread = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t call = 0;
  };
  std::vector<Record> records;
  std::uint64_t runtime_start = 0;  // 0: not in a call of the runtime
};
