#pragma once

#include <functional>

#include "session.hpp"

// What the tests of deferred effects share.

constexpr unsigned seeds = 200;
constexpr int length = 16;  // floats in each piece of memory

[[nodiscard]] CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
[[nodiscard]] CUevent make_event();

/// Pinned memory of the host for one test.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes) { SUCCEEDS(cuMemHostAlloc(&memory_, bytes, 0)); }
  ~Pinned() { cuMemFreeHost(memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  [[nodiscard]] float* floats() const { return static_cast<float*>(memory_); }

 private:
  void* memory_ = nullptr;
};

/// Kernels with arguments that are gone when the call returns.
class Kernels {
 public:
  explicit Kernels(const Session& session) : session_(session) {}
  void fill(CUdeviceptr x, float value, CUstream stream) const {
    int n = length;
    SUCCEEDS(session_.launch(session_.function("fill"), 1, 32, {&n, &x, &value}, 0, stream));
    n = 0;
    x = 0;
  }
  void add(CUdeviceptr x, CUdeviceptr y, CUstream stream) const {
    int n = length;
    SUCCEEDS(session_.launch(session_.function("add"), 1, 32, {&n, &x, &y}, 0, stream));
    n = 0;
    x = y = 0;
  }

 private:
  const Session& session_;
};

/// How many of the orders give the value that the program means.
[[nodiscard]] unsigned orders_with(float meant, const std::function<float(Session&)>& program);
[[nodiscard]] bool always(float meant, const std::function<float(Session&)>& program);
[[nodiscard]] bool sometimes(float meant, const std::function<float(Session&)>& program);
