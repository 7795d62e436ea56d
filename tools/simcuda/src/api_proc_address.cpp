#include <cstring>
#include <type_traits>

#include "driver.hpp"

#pragma GCC visibility push(default)
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#pragma GCC visibility pop

using namespace simcuda;

namespace {

/// One exported entry point under the name and version that a program asks for.
struct Form {
  const char* name;
  int version;
  bool per_thread;
  void* pointer;
};

template <class Typed, class Defined>
void* checked(Defined* function) {
  static_assert(std::is_same_v<Typed, Defined*>, "not the version that cudaTypedefs.h describes");
  return reinterpret_cast<void*>(function);
}

const Form forms[] = {
#define ENTRY(NAME, VERSION, SYMBOL) \
  {#NAME, VERSION, false, checked<PFN_##NAME##_v##VERSION>(&SYMBOL)},
#define ENTRY_PER_THREAD(NAME, VERSION, SUFFIX, SYMBOL) \
  {#NAME, VERSION, true, checked<PFN_##NAME##_v##VERSION##SUFFIX>(&SYMBOL)},
#include "entry_points.inc"
#undef ENTRY
#undef ENTRY_PER_THREAD
};

CUresult look_up(const char* symbol, void** pfn, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t known =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || pfn == nullptr || (flags & ~known) != 0 || flags == known)
    return CUDA_ERROR_INVALID_VALUE;
  *pfn = nullptr;
  if (version > driver().version()) return CUDA_ERROR_INVALID_VALUE;
  const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const Form* best = nullptr;
  bool known_name = false;
  for (const Form& form : forms) {
    if (std::strcmp(form.name, symbol) != 0) continue;
    known_name = true;
    if (form.version > version || (form.per_thread && !per_thread)) continue;
    // The newest form counts; of one age, or where asked for at all, the per-thread one.
    const bool better = best == nullptr || (form.per_thread && !best->per_thread) ||
                        (form.per_thread == best->per_thread && form.version > best->version);
    if (better) best = &form;
  }
  if (best != nullptr) *pfn = best->pointer;
  if (status != nullptr)
    *status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known_name    ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  // As cuda.h documents it: without the symbol the pointer is null and the call still succeeds.
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion,
                                  cuuint64_t flags) {
  return look_up(symbol, pfn, cudaVersion, flags, nullptr);
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion,
                                     cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* symbolStatus) {
  return look_up(symbol, pfn, cudaVersion, flags, symbolStatus);
}
