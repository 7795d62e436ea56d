#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "intercept/nccl/nccl_library.hpp"

namespace contextune::intercept {

/// Facts that a rank knows of a communicator of the program's.
struct CommunicatorFacts {
  void* communicator = nullptr;
  CUcontext context = nullptr;  ///< on its device
  int rank = 0;
  int ranks = 1;
  /// It would be aborted together with what is split off it, which is then left as it is: it goes
  /// on when the others come, or ends with the program's.
  bool shares_with_splits = false;
};

/// Gathers one block of each rank over a communicator that is split off the program's for this one
/// collective, and ended again. All ranks must call it, with nothing under way on the program's
/// communicator, as ncclCommSplit demands.
///
/// NCCL is called on a thread of ours. No split, whether the communicator blocks or not, can be
/// taken back before all ranks have come, except by aborting the program's communicator. When the
/// time is over, that thread is left behind, to end what comes of the split, and this returns. From
/// the split on, our communicator is polled, and aborted at the deadline.
///
/// @param driver  lives as long as the process
/// @param seconds until it gives up
/// @return the blocks of all ranks, in their order; empty: `error` says why
[[nodiscard]] std::vector<std::byte> gather_blocks(const NcclLibrary& nccl,
                                                   const gpu::Driver& driver,
                                                   const CommunicatorFacts& facts,
                                                   std::span<const std::byte> block, double seconds,
                                                   std::string& error);

}  // namespace contextune::intercept
