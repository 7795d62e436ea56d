#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "collective.hpp"

namespace simnccl {

/// An operation of ncclRedOpCreatePreMulSum.
struct UserOperation {
  ncclDataType_t type = ncclFloat32;
  Scale scale;
};

}  // namespace simnccl

/// What the program's handle points to. Made before the communicator, which a non-blocking creation
/// makes on a thread of its own.
struct ncclComm {
  static constexpr unsigned alive = 0x51C0FFEE;
  unsigned magic = alive;
  simnccl::CommunicatorPlan plan;
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
  std::atomic<std::shared_ptr<std::atomic<bool>>> child_aborted;  // of the last split
  std::shared_ptr<simnccl::Communicator> communicator;            // published by `state`
  std::atomic<ncclResult_t> state{ncclSuccess};  // ncclInProgress while a thread works on it
  std::atomic<int> threads{0};                   // that work on it
  std::map<ncclRedOp_t, simnccl::UserOperation> operations;
};

namespace simnccl {

/// @throws Error{ncclInvalidArgument} for anything but a live handle
inline ncclComm& live(ncclComm_t comm) {
  require(comm != nullptr && comm->magic == ncclComm::alive, ncclInvalidArgument,
          "not a communicator");
  return *comm;
}

/// The same, ready to be used. @throws Error
inline ncclComm& ready(ncclComm_t comm) {
  ncclComm& handle = live(comm);
  const ncclResult_t state = handle.state.load(std::memory_order_acquire);
  require(state != ncclInProgress, ncclInvalidUsage,
          "the communicator is still busy: ask ncclCommGetAsyncError first");
  require(state == ncclSuccess, state, "the communicator is broken");
  require(handle.communicator != nullptr, ncclInvalidUsage,
          "the communicator is made at the end of the group");
  return handle;
}

}  // namespace simnccl
