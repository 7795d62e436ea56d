// cuInit, versions and error texts.
#include "driver.hpp"

using namespace simcuda;

CUresult CUDAAPI cuInit(unsigned int Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Driver& state = driver();
  if (state.ended.load(std::memory_order_acquire)) return CUDA_ERROR_DEINITIALIZED;
  const DriverLock lock(state.mutex);
  try {
    state.initialise();
  } catch (const Failure& failure) {
    return failure.code;
  }
  return CUDA_SUCCESS;
}

// Works before cuInit, as in the real driver.
CUresult CUDAAPI cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = driver().version();
  return CUDA_SUCCESS;
}

// NVIDIA's private tables are not imitated: programs on the CUDA runtime need a real driver.
CUresult CUDAAPI cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (ppExportTable == nullptr || pExportTableId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *ppExportTable = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

constexpr ErrorText error_texts[] = {
#define ERROR_TEXT(CODE, TEXT) \
  { CODE, #CODE, TEXT }
    ERROR_TEXT(CUDA_SUCCESS, "no error"),
    ERROR_TEXT(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR_TEXT(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR_TEXT(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR_TEXT(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR_TEXT(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR_TEXT(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR_TEXT(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR_TEXT(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR_TEXT(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution"),
    ERROR_TEXT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported"),
    ERROR_TEXT(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    ERROR_TEXT(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ERROR_TEXT(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "shared object symbol not found"),
    ERROR_TEXT(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "shared object initialization failed"),
    ERROR_TEXT(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR_TEXT(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ERROR_TEXT(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR_TEXT(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR_TEXT(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR_TEXT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR_TEXT(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR_TEXT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR_TEXT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    ERROR_TEXT(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
    ERROR_TEXT(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR_TEXT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory is already registered"),
    ERROR_TEXT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "memory has not been registered"),
    ERROR_TEXT(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR_TEXT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    ERROR_TEXT(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR_TEXT(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not permitted when stream is capturing"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the stream capture was invalidated"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the call would merge two captures"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not started in this stream"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capture has an unjoined stream"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency on uncaptured work in a capture"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the call depends on a capturing stream"),
    ERROR_TEXT(CUDA_ERROR_CAPTURED_EVENT, "the event is part of a capture"),
    ERROR_TEXT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "capture was started by another thread"),
    ERROR_TEXT(CUDA_ERROR_TIMEOUT, "wait operation timed out"),
    ERROR_TEXT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "graph update failed"),
    ERROR_TEXT(CUDA_ERROR_INVALID_CLUSTER_SIZE, "cluster misconfiguration"),
    ERROR_TEXT(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR_TEXT
};

const ErrorText* find_text(CUresult error) {
  for (const ErrorText& entry : error_texts)
    if (entry.code == error) return &entry;
  return nullptr;
}

}  // namespace

CUresult CUDAAPI cuGetErrorString(CUresult error, const char** pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const entry = find_text(error);
  *pStr = entry == nullptr ? nullptr : entry->text;
  return entry == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const entry = find_text(error);
  *pStr = entry == nullptr ? nullptr : entry->name;
  return entry == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
