#pragma once

#include <functional>

#include "collective.hpp"
#include "handle.hpp"
#include "message.hpp"

namespace simnccl {

/// What one thread collects between ncclGroupStart and ncclGroupEnd. A call outside is a group of
/// its own.
void start_group();
/// Does all that the outermost group has collected: asks the tuner once for each bin of
/// collectives, connects, and puts the work on the streams. With a non-blocking communicator a
/// thread does so, and the result is ncclInProgress. @throws Error
ncclResult_t end_group();
/// The same without putting work on the streams; gives back the microseconds that the tables
/// promise for it. @throws Error
float end_group_simulated();
/// Forgets all that was collected.
void cancel_group();

/// A group of calls that the library itself makes: one that fails leaves nothing behind.
template <class Calls>
ncclResult_t in_group(Calls&& calls) {
  start_group();
  try {
    calls();
  } catch (...) {
    cancel_group();
    throw;
  }
  return end_group();
}

/// @throws Error, before anything is collected
ncclResult_t add(ncclComm& handle, const Collective& one);
ncclResult_t add(ncclComm& handle, const Message& one);
/// Something that waits for other ranks and makes communicators. All those of a group run at the
/// same time, each on a thread.
ncclResult_t add(ncclComm& handle, std::function<void()> creation);

}  // namespace simnccl
