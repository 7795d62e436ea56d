// Making communicators, asking about them, and ending them.
#include <algorithm>
#include <chrono>
#include <thread>

#include "group.hpp"
#include "rendezvous.hpp"
#include "settings.hpp"

using namespace simnccl;

namespace {

constexpr int most_ranks = 128;

void apply(CommunicatorPlan& plan, const ncclConfig_t* config) {
  if (config == nullptr) return;
  require(config->magic == 0xcafebeef, ncclInvalidArgument,
          "the configuration was not made with NCCL_CONFIG_INITIALIZER");
  const auto given = [](int value) { return value != NCCL_CONFIG_UNDEF_INT; };
  if (given(config->blocking)) plan.blocking = config->blocking != 0;
  if (given(config->maxCTAs)) plan.channels = std::min(plan.channels, config->maxCTAs);
  if (given(config->minCTAs)) plan.channels = std::max(plan.channels, config->minCTAs);
  if (given(config->splitShare)) plan.split_share = config->splitShare != 0;
  require(plan.channels >= 1 && plan.channels <= 64, ncclInvalidArgument,
          "minCTAs and maxCTAs are 1 to 64");
}

// The context that is current, or the primary one of a device.
void choose_device(CommunicatorPlan& plan, int device) {
  require(cuInit(0) == CUDA_SUCCESS, ncclUnhandledCudaError, "there is no driver");
  CUdevice current = device;
  if (device < 0)
    require(cuCtxGetCurrent(&plan.context) == CUDA_SUCCESS && plan.context != nullptr &&
                cuCtxGetDevice(&current) == CUDA_SUCCESS,
            ncclInvalidUsage, "simnccl needs a current context");
  else
    require(cuDevicePrimaryCtxRetain(&plan.context, device) == CUDA_SUCCESS, ncclInvalidArgument,
            "there is no such device");
  plan.device = current;
}

void make(ncclComm& handle, const CommunicatorPlan& plan) {
  handle.plan = plan;
  handle.communicator = std::make_shared<Communicator>(plan, handle.aborted);
}

ncclResult_t init(ncclComm_t* comm, int nranks, const ncclUniqueId& id, int rank, int device,
                  const ncclConfig_t* config) {
  require(comm != nullptr && nranks >= 1 && nranks <= most_ranks && rank >= 0 && rank < nranks,
          ncclInvalidArgument, "simnccl makes communicators of 1 to 128 ranks");
  CommunicatorPlan plan;
  plan.id = id;
  plan.ranks = nranks;
  plan.rank = rank;
  plan.hash = digest({id.internal, sizeof id.internal});
  plan.channels = Settings::instance().channels;
  choose_device(plan, device);
  apply(plan, config);
  auto handle = std::make_unique<ncclComm>();
  handle->plan = plan;
  *comm = handle.get();
  try {
    const ncclResult_t result = add(*handle, [at = handle.get(), plan] { make(*at, plan); });
    (void)handle.release();
    return result;
  } catch (...) {
    *comm = nullptr;
    throw;
  }
}

void wait_for_threads(const ncclComm& handle) {
  while (handle.threads.load(std::memory_order_acquire) > 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void dispose(ncclComm& handle) {
  handle.magic = 0;
  delete &handle;
}

}  // namespace

SIMNCCL_FUNCTION(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * uniqueId)) {
  return api([&] {
    require(uniqueId != nullptr, ncclInvalidArgument, "no place for the id");
    *uniqueId = make_unique_id();
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommInitRank,
                 (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank)) {
  return api([&] { return init(comm, nranks, commId, rank, -1, nullptr); });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommInitRankConfig,
                 (ncclComm_t * comm, int nranks, ncclUniqueId commId, int rank,
                  ncclConfig_t* config)) {
  return api([&] { return init(comm, nranks, commId, rank, -1, config); });
}

// Several ids make the rendezvous of very many ranks faster. Here one is enough.
SIMNCCL_FUNCTION(ncclResult_t, ncclCommInitRankScalable,
                 (ncclComm_t * newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                  ncclConfig_t* config)) {
  return api([&] {
    require(commIds != nullptr && nId >= 1 && nId <= nranks, ncclInvalidArgument,
            "there is no unique id");
    return init(newcomm, nranks, commIds[0], myrank, -1, config);
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommInitAll, (ncclComm_t * comm, int ndev, const int* devlist)) {
  return api([&] {
    const ncclUniqueId id = make_unique_id();
    return in_group([&] {
      for (int i = 0; i < ndev; ++i)
        init(comm + i, ndev, id, i, devlist == nullptr ? i : devlist[i], nullptr);
    });
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommSplit,
                 (ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config)) {
  return api([&] {
    ncclComm& parent = ready(comm);
    require(newcomm != nullptr && color >= NCCL_SPLIT_NOCOLOR, ncclInvalidArgument,
            "a colour is not negative");
    CommunicatorPlan like = parent.plan;
    apply(like, config);
    *newcomm = nullptr;
    auto child = std::make_shared<std::unique_ptr<ncclComm>>();
    if (color != NCCL_SPLIT_NOCOLOR) {
      *child = std::make_unique<ncclComm>();
      (*child)->plan = like;
      // Whoever aborts either of them aborts both; else the parent can end the creation only.
      if (parent.plan.split_share) (*child)->aborted = parent.aborted;
      parent.child_aborted.store((*child)->aborted);
    }
    // The parent says whether the call blocks and how far it is; what has begun is a success. Until
    // it is over there is no child.
    const ncclResult_t result =
        add(parent, [communicator = parent.communicator, child, newcomm, like, color, key] {
          CommunicatorPlan plan;
          if (!communicator->split(color, key, plan)) return;
          plan.blocking = like.blocking;
          plan.channels = like.channels;
          plan.split_share = like.split_share;
          make(**child, plan);
          *newcomm = child->release();
        });
    return result == ncclInProgress ? ncclSuccess : result;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommFinalize, (ncclComm_t comm)) {
  return api([&] {
    ready(comm);
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommDestroy, (ncclComm_t comm)) {
  return api([&] {
    if (comm == nullptr) return ncclSuccess;
    ncclComm& handle = live(comm);
    wait_for_threads(handle);
    if (handle.communicator != nullptr) handle.communicator->close();
    dispose(handle);
    return ncclSuccess;
  });
}

// What waits for other ranks goes on, with buffers half written. The memory of connections stays:
// to free it would wait for other work, which may hang as well.
SIMNCCL_FUNCTION(ncclResult_t, ncclCommAbort, (ncclComm_t comm)) {
  return api([&] {
    if (comm == nullptr) return ncclSuccess;
    ncclComm& handle = live(comm);
    handle.aborted->store(true, std::memory_order_release);
    if (const auto child = handle.child_aborted.load()) child->store(true);
    wait_for_threads(handle);
    if (handle.communicator != nullptr) handle.communicator->end();
    dispose(handle);
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* asyncError)) {
  return api([&] {
    require(asyncError != nullptr, ncclInvalidArgument, "no place for the error");
    *asyncError = live(comm).state.load(std::memory_order_acquire);
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int* count)) {
  return api([&] {
    *count = ready(comm).communicator->ranks();
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int* device)) {
  return api([&] {
    *device = ready(comm).plan.device;
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int* rank)) {
  return api([&] {
    *rank = ready(comm).communicator->rank();
    return ncclSuccess;
  });
}

// Registered buffers are no faster here.
SIMNCCL_FUNCTION(ncclResult_t, ncclCommRegister,
                 (const ncclComm_t comm, void* buff, size_t, void** handle)) {
  return api([&] {
    ready(comm);
    *handle = buff;
    return ncclSuccess;
  });
}

SIMNCCL_FUNCTION(ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void*)) {
  return api([&] {
    ready(comm);
    return ncclSuccess;
  });
}
