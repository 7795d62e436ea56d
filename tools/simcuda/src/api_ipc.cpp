// Handles of memory for other processes. Each process simulates a device of its own, so a handle
// opens in the process that made it, as the same memory, and in no other.
#include <unistd.h>

#include <cstring>

#include "contexts.hpp"

using namespace simcuda;

namespace {

// What lies in a CUipcMemHandle.
struct Shared {
  char mark[8];
  pid_t process;
  std::uint64_t block;
  std::uintptr_t begin;
};
static_assert(sizeof(Shared) <= sizeof(CUipcMemHandle));
constexpr char mark[8] = "simcuda";

CUresult open(CUdeviceptr* to, const CUipcMemHandle& handle, unsigned flags) {
  require(to != nullptr && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  (void)current_context();
  Shared shared{};
  std::memcpy(&shared, &handle, sizeof shared);
  require(std::memcmp(shared.mark, mark, sizeof mark) == 0, CUDA_ERROR_INVALID_HANDLE);
  require(shared.process == getpid(), CUDA_ERROR_MAP_FAILED);
  const Memory::Block* const block = driver().memory.at(shared.begin);
  require(block != nullptr && block->id == shared.block, CUDA_ERROR_INVALID_HANDLE);
  driver().memory.count_opened(shared.begin, 1);
  *to = shared.begin;
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuIpcGetMemHandle, (CUipcMemHandle * pHandle, CUdeviceptr dptr), {
  require(pHandle != nullptr);
  (void)current_context();
  const Memory::Block* const block = driver().memory.find(dptr);
  require(block != nullptr && block->kind == Memory::Kind::device && !block->freed);
  Shared shared{};
  std::memcpy(shared.mark, mark, sizeof mark);
  shared.process = getpid();
  shared.block = block->id;
  shared.begin = block->begin;
  std::memset(pHandle, 0, sizeof *pHandle);
  std::memcpy(pHandle, &shared, sizeof shared);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuIpcOpenMemHandle, (CUdeviceptr * pdptr, CUipcMemHandle handle, unsigned int Flags),
              { return open(pdptr, handle, Flags); })
SIMCUDA_ENTRY(cuIpcOpenMemHandle_v2,
              (CUdeviceptr * pdptr, CUipcMemHandle handle, unsigned int Flags),
              { return open(pdptr, handle, Flags); })
SIMCUDA_ENTRY(cuIpcCloseMemHandle, (CUdeviceptr dptr), {
  const Memory::Block* const block = driver().memory.at(dptr);
  require(block != nullptr && block->opened > 0);
  driver().pending.finish_all(nullptr, lock);
  driver().memory.count_opened(dptr, -1);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuIpcGetEventHandle, (CUipcEventHandle*, CUevent),
              { return CUDA_ERROR_NOT_SUPPORTED; })
SIMCUDA_ENTRY(cuIpcOpenEventHandle, (CUevent*, CUipcEventHandle),
              { return CUDA_ERROR_NOT_SUPPORTED; })
