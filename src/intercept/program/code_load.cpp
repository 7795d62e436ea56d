#include "intercept/program/code_load.hpp"

#include <cstddef>
#include <utility>

#include "intercept/host/hook_arguments.hpp"

namespace contextune::intercept {
namespace {

template <typename... Parameters, std::size_t... Indices>
CUresult call(CUresult(CUDAAPI* real)(Parameters...), void* const* args,
              std::index_sequence<Indices...> /*unused*/) noexcept {
  return real(argument<Parameters>(args, Indices)...);
}

template <typename... Parameters>
CUresult call_as(CUresult(CUDAAPI* /*signature*/)(Parameters...), void* real,
                 void* const* args) noexcept {
  return call(reinterpret_cast<CUresult(CUDAAPI*)(Parameters...)>(real), args,
              std::index_sequence_for<Parameters...>{});
}

}  // namespace

CUresult load_code(const contextune_frontend& frontend, contextune_fn fn,
                   void* const* args) noexcept {
  void* real = frontend.real(fn);
  if (real == nullptr) return CUDA_ERROR_NOT_FOUND;
  switch (fn) {
    case contextune_fn_cuModuleLoad:
      return call_as(decltype(&cuModuleLoad){}, real, args);
    case contextune_fn_cuModuleLoadData:
    case contextune_fn_cuModuleLoadFatBinary:
      return call_as(decltype(&cuModuleLoadData){}, real, args);
    case contextune_fn_cuModuleLoadDataEx:
      return call_as(decltype(&cuModuleLoadDataEx){}, real, args);
    case contextune_fn_cuLibraryLoadData:
      return call_as(decltype(&cuLibraryLoadData){}, real, args);
    case contextune_fn_cuLibraryLoadFromFile:
      return call_as(decltype(&cuLibraryLoadFromFile){}, real, args);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace contextune::intercept
