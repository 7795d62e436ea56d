// A program's own region times, by CUDA events; for comparing runs from outside of contextune.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "program.hpp"

class RegionTimes {
 public:
  /// @param file where the times go, one number of microseconds a line; empty: nothing is measured
  explicit RegionTimes(std::string file) : file_(std::move(file)) {}

  void begin(cudaStream_t stream) { record(stream); }
  void end(cudaStream_t stream) { record(stream); }

  /// After the program has synchronised.
  void write() const {
    if (file_.empty()) return;
    std::ofstream out(file_);
    for (std::size_t i = 0; i + 1 < events_.size(); i += 2) {
      float milliseconds = 0;
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]));
      out << milliseconds * 1e3f << '\n';
    }
  }

 private:
  void record(cudaStream_t stream) {
    if (file_.empty()) return;
    cudaEvent_t event;
    CUDA_CHECK(cudaEventCreate(&event));
    CUDA_CHECK(cudaEventRecord(event, stream));
    events_.push_back(event);
  }

  std::string file_;
  std::vector<cudaEvent_t> events_;
};
