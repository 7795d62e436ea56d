// Collectives, messages and groups.
#include "group.hpp"
#include "reduction.hpp"

using namespace simnccl;

namespace {

// An average of floating-point numbers adds up inputs that are already divided, as NCCL does.
std::optional<Scale> scale_of(const ncclComm& handle, ncclRedOp_t op, ncclDataType_t type) {
  if (op == ncclAvg && is_floating(type) && handle.plan.ranks > 1)
    return Scale{scalar_of(type, 1.0 / handle.plan.ranks), nullptr};
  if (op >= ncclSum && op < ncclNumOps) return {};
  const auto found = handle.operations.find(op);
  require(found != handle.operations.end() && found->second.type == type, ncclInvalidArgument,
          "there is no such reduction operation for this type");
  return found->second.scale;
}

ncclResult_t collective(ncclComm_t comm, Collective one, const void* send, void* receive,
                        size_t count, ncclDataType_t type, cudaStream_t stream) {
  return api([&] {
    ncclComm& handle = ready(comm);
    require(element_bytes(type) != 0, ncclInvalidArgument, "there is no such data type");
    require(one.root >= 0 && one.root < handle.plan.ranks, ncclInvalidArgument,
            "the root is not a rank");
    if (one.function != broadcast && one.function != all_gather)
      one.scale = scale_of(handle, one.op, type);
    if (count == 0) return ncclSuccess;
    one.send = send;
    one.receive = receive;
    one.count = count;
    one.type = type;
    one.stream = stream;
    return add(handle, one);
  });
}

Collective kind(int function, ncclRedOp_t op = ncclSum, int root = 0) {
  Collective one;
  one.function = function;
  one.op = op;
  one.root = root;
  return one;
}

ncclResult_t message(ncclComm_t comm, Message one, size_t count, ncclDataType_t type, int peer,
                     cudaStream_t stream) {
  ncclComm& handle = ready(comm);
  require(element_bytes(type) != 0, ncclInvalidArgument, "there is no such data type");
  require(peer >= 0 && peer < handle.plan.ranks, ncclInvalidArgument, "the peer is not a rank");
  if (count == 0) return ncclSuccess;
  one.bytes = count * element_bytes(type);
  one.peer = peer;
  one.stream = stream;
  return add(handle, one);
}

ncclResult_t send(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  return message(comm, {true, from, nullptr, 0, 0, nullptr}, count, type, peer, stream);
}

ncclResult_t receive(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream) {
  return message(comm, {false, nullptr, to, 0, 0, nullptr}, count, type, peer, stream);
}

const void* part(const void* buffer, int index, size_t count, ncclDataType_t type) {
  return static_cast<const std::byte*>(buffer) +
         static_cast<size_t>(index) * count * element_bytes(type);
}
void* part(void* buffer, int index, size_t count, ncclDataType_t type) {
  return const_cast<void*>(part(static_cast<const void*>(buffer), index, count, type));
}

}  // namespace

SIMNCCL_FUNCTION(ncclResult_t, ncclAllReduce,
                 (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return collective(comm, kind(all_reduce, op), sendbuff, recvbuff, count, datatype, stream);
}

SIMNCCL_FUNCTION(ncclResult_t, ncclAllGather,
                 (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                  ncclComm_t comm, cudaStream_t stream)) {
  return collective(comm, kind(all_gather), sendbuff, recvbuff, sendcount, datatype, stream);
}

SIMNCCL_FUNCTION(ncclResult_t, ncclReduceScatter,
                 (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return collective(comm, kind(reduce_scatter, op), sendbuff, recvbuff, recvcount, datatype,
                    stream);
}

SIMNCCL_FUNCTION(ncclResult_t, ncclBroadcast,
                 (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                  int root, ncclComm_t comm, cudaStream_t stream)) {
  return collective(comm, kind(broadcast, ncclSum, root), sendbuff, recvbuff, count, datatype,
                    stream);
}

SIMNCCL_FUNCTION(ncclResult_t, ncclBcast,
                 (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                  cudaStream_t stream)) {
  return collective(comm, kind(broadcast, ncclSum, root), buff, buff, count, datatype, stream);
}

SIMNCCL_FUNCTION(ncclResult_t, ncclReduce,
                 (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                  ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)) {
  return collective(comm, kind(reduce, op, root), sendbuff, recvbuff, count, datatype, stream);
}

SIMNCCL_FUNCTION(ncclResult_t, ncclSend,
                 (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                  ncclComm_t comm, cudaStream_t stream)) {
  return api([&] { return send(sendbuff, count, datatype, peer, comm, stream); });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclRecv,
                 (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                  cudaStream_t stream)) {
  return api([&] { return receive(recvbuff, count, datatype, peer, comm, stream); });
}

// The next three are messages, as in the real library; the tuner is not asked.

SIMNCCL_FUNCTION(ncclResult_t, ncclAlltoAll,
                 (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                  ncclComm_t comm, cudaStream_t stream)) {
  return api([&] {
    const int ranks = ready(comm).plan.ranks;
    return in_group([&] {
      for (int i = 0; i < ranks; ++i) {
        send(part(sendbuff, i, count, datatype), count, datatype, i, comm, stream);
        receive(part(recvbuff, i, count, datatype), count, datatype, i, comm, stream);
      }
    });
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclGather,
                 (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                  int root, ncclComm_t comm, cudaStream_t stream)) {
  return api([&] {
    const CommunicatorPlan plan = ready(comm).plan;
    require(root >= 0 && root < plan.ranks, ncclInvalidArgument, "the root is not a rank");
    return in_group([&] {
      send(sendbuff, count, datatype, root, comm, stream);
      if (plan.rank == root)
        for (int i = 0; i < plan.ranks; ++i)
          receive(part(recvbuff, i, count, datatype), count, datatype, i, comm, stream);
    });
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclScatter,
                 (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                  int root, ncclComm_t comm, cudaStream_t stream)) {
  return api([&] {
    const CommunicatorPlan plan = ready(comm).plan;
    require(root >= 0 && root < plan.ranks, ncclInvalidArgument, "the root is not a rank");
    return in_group([&] {
      receive(recvbuff, count, datatype, root, comm, stream);
      if (plan.rank == root)
        for (int i = 0; i < plan.ranks; ++i)
          send(part(sendbuff, i, count, datatype), count, datatype, i, comm, stream);
    });
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclGroupStart, ()) {
  start_group();
  return ncclSuccess;
}

SIMNCCL_FUNCTION(ncclResult_t, ncclGroupEnd, ()) {
  return api([] { return end_group(); });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclGroupSimulateEnd, (ncclSimInfo_t * simInfo)) {
  return api([&] {
    require(simInfo == nullptr || simInfo->magic == 0x74685283, ncclInvalidArgument,
            "the structure was not made with NCCL_SIM_INFO_INITIALIZER");
    const float microseconds = end_group_simulated();
    if (simInfo != nullptr) simInfo->estimatedTime = microseconds;
    return ncclSuccess;
  });
}
