#pragma once

#include <string>

#include "replay_region.hpp"

namespace replay_bench {

/// One run of the program that is tuned.
struct ChildTask {
  int rows = 0;
  int visits = 1;      ///< of the region
  bool body = false;   ///< CONTEXTUAL_AUTOTUNE marks the region; else an NVTX range does
  std::string result;  ///< file: seconds of the first visit, checksum after it, and the GPU's name
};

/// @return the status that the process ends with
int run_as_child(Region& region, const ChildTask& task);

}  // namespace replay_bench
