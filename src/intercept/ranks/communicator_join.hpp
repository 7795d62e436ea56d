#pragma once

#include "gpu/driver/driver.hpp"
#include "rank/meeting/gathered_rendezvous.hpp"
#include "rank/meeting/rendezvous.hpp"

namespace contextune::intercept {

/// A communicator of the program's.
struct JoinedCommunicator {
  void* handle = nullptr;
  void* library = nullptr;          ///< a handle of its NCCL; null: the only one in the process
  bool shares_with_splits = false;  ///< one abort ends both
};

/// Where the ranks of a communicator of the program's meet; its `error` says why they do not. All
/// of them must call it, as ncclCommSplit. NCCL carries one block of each rank and no more: what
/// follows goes over sockets, so that no kernel of ours waits on the GPU for a rank that is late.
/// @param driver  lives as long as the process
/// @param seconds for which it waits for the others
[[nodiscard]] rank::Rendezvous meet_over(const gpu::Driver& driver,
                                         const JoinedCommunicator& joined, double seconds,
                                         const rank::Standing& standing) noexcept;

}  // namespace contextune::intercept
