#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu/driver/driver.hpp"

/// A driver table of plain functions over this one object: streams are queues on a virtual clock in
/// seconds, events carry the time at which their stream reached them. One thread at a time.
struct FakeDriver {
  struct Event {
    CUcontext context = nullptr;
    double time = -1;  // -1: not recorded
  };
  struct Kernel {
    std::string symbol;
    std::vector<std::pair<std::size_t, std::size_t>> parameters;
    int registers = 32;
    int static_shared = 0;
  };

  CUcontext current = reinterpret_cast<CUcontext>(0x10);
  CUcontext below = nullptr;               // under the pushed one
  std::map<CUstream, CUcontext> contexts;  // of streams; absent: the current one
  std::map<CUstream, double> queued;       // until when a stream has work
  double now = 0;                          // what the GPU has reached
  std::map<CUevent, Event> events;
  int events_created = 0;
  int records = 0;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult capture_result = CUDA_SUCCESS;
  CUresult record_result = CUDA_SUCCESS;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::function<void()> at_query;  ///< before an event's state is told
  CUstreamCaptureMode mode_at_query = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::map<CUfunction, Kernel> functions;  // real functions
  std::map<CUfunction, Kernel> kernels;    // CUkernels in disguise
  int blocks_per_sm = 2;
  int max_dynamic_shared = 48 << 10;

  /// `seconds` of work on a stream.
  void work(CUstream stream, double seconds) {
    queued[stream] = std::max(queued[stream], now) + seconds;
  }
  void synchronize() {
    for (const auto& [stream, until] : queued) now = std::max(now, until);
  }

  /// A fresh one each time.
  static contextune::gpu::Driver make();
  static FakeDriver& get();
};

inline CUstream stream(std::uintptr_t id) {
  return reinterpret_cast<CUstream>(0x100 + id);
}
