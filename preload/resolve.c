/* cuGetProcAddress: the driver resolves, unchanged, and what it returned is routed by its address.
 * Names, versions and flags would have to be mapped as the driver maps them, and a wrong guess
 * calls a function with another ABI; the address says which one it is.
 *
 * Nothing is handed over here: where a function lies does not depend on what was launched. */
#include "frontend.h"

static void route(CUresult result, void** pointer, const char* symbol, int version,
                  cuuint64_t flags) {
  if (result == CUDA_SUCCESS && pointer != NULL && *pointer != NULL &&
      contextune_thread.depth == 0) {
    *pointer = contextune_route_pointer(*pointer, symbol, version, flags);
  }
}

CUresult contextune_inner_cuGetProcAddress(const char* symbol, void** pointer, int version,
                                           cuuint64_t flags);
CUresult contextune_inner_cuGetProcAddress(const char* symbol, void** pointer, int version,
                                           cuuint64_t flags) {
  const PFN_cuGetProcAddress_v11030 real =
      (PFN_cuGetProcAddress_v11030)contextune_hot.real[contextune_fn_cuGetProcAddress];
  const CUresult result = real(symbol, pointer, version, flags);
  route(result, pointer, symbol, version, flags);
  return result;
}

CUresult contextune_inner_cuGetProcAddress_v2(const char* symbol, void** pointer, int version,
                                              cuuint64_t flags,
                                              CUdriverProcAddressQueryResult* status);
CUresult contextune_inner_cuGetProcAddress_v2(const char* symbol, void** pointer, int version,
                                              cuuint64_t flags,
                                              CUdriverProcAddressQueryResult* status) {
  const PFN_cuGetProcAddress_v12000 real =
      (PFN_cuGetProcAddress_v12000)contextune_hot.real[contextune_fn_cuGetProcAddress_v2];
  const CUresult result = real(symbol, pointer, version, flags, status);
  route(result, pointer, symbol, version, flags);
  return result;
}
