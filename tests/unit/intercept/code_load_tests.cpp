#include "intercept/program/code_load.hpp"

#include <array>
#include <cstdint>
#include <sstream>
#include <string>
#include <tuple>

#include "catch.hpp"

using namespace contextune::intercept;

namespace {

std::string loaded_with;

template <typename... Arguments>
CUresult note_load(const char* entry, Arguments... arguments) {
  std::ostringstream text;
  text << entry;
  ((text << ' ' << reinterpret_cast<std::uintptr_t>(reinterpret_cast<void*>(arguments))), ...);
  loaded_with = text.str();
  return CUDA_ERROR_INVALID_IMAGE;
}

CUresult CUDAAPI file_load(CUmodule* module, const char* path) {
  return note_load("file", module, const_cast<char*>(path));
}
CUresult CUDAAPI data_load(CUmodule* module, const void* image) {
  return note_load("data", module, const_cast<void*>(image));
}
CUresult CUDAAPI options_load(CUmodule* module, const void* image, unsigned num_options,
                              CUjit_option* options, void** values) {
  return note_load("options", module, const_cast<void*>(image), std::uintptr_t{num_options},
                   options, values);
}
CUresult CUDAAPI library_load(CUlibrary* library, const void* code, CUjit_option* jit_options,
                              void** jit_values, unsigned num_jit_options, CUlibraryOption* options,
                              void** values, unsigned num_options) {
  return note_load("library", library, const_cast<void*>(code), jit_options, jit_values,
                   std::uintptr_t{num_jit_options}, options, values, std::uintptr_t{num_options});
}

void* real_load(contextune_fn fn) {
  switch (fn) {
    case contextune_fn_cuModuleLoad:
      return reinterpret_cast<void*>(&file_load);
    case contextune_fn_cuModuleLoadData:
    case contextune_fn_cuModuleLoadFatBinary:
      return reinterpret_cast<void*>(&data_load);
    case contextune_fn_cuModuleLoadDataEx:
      return reinterpret_cast<void*>(&options_load);
    case contextune_fn_cuLibraryLoadData:
      return reinterpret_cast<void*>(&library_load);
    default:
      return nullptr;
  }
}

/// Loads with the arguments 1, 2 and so on, of the widths that `Arguments` says.
template <typename... Arguments>
CUresult load_counting(contextune_fn fn) {
  contextune_frontend frontend{};
  frontend.real = &real_load;
  std::tuple<Arguments...> values;
  return std::apply(
      [&frontend, fn](auto&... value) {
        unsigned number = 0;
        ((value = ++number), ...);
        const std::array<void*, sizeof...(value)> addresses{&value...};
        return load_code(frontend, fn, addresses.data());
      },
      values);
}

using Pointer = std::uintptr_t;

}  // namespace

TEST_CASE("A load goes to the driver with the arguments of the call, and its result comes back",
          "[load]") {
  CHECK(load_counting<Pointer, Pointer>(contextune_fn_cuModuleLoad) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(loaded_with == "file 1 2");
  CHECK(load_counting<Pointer, Pointer>(contextune_fn_cuModuleLoadData) ==
        CUDA_ERROR_INVALID_IMAGE);
  CHECK(loaded_with == "data 1 2");
  loaded_with.clear();
  CHECK(load_counting<Pointer, Pointer>(contextune_fn_cuModuleLoadFatBinary) ==
        CUDA_ERROR_INVALID_IMAGE);
  CHECK(loaded_with == "data 1 2");
  CHECK(load_counting<Pointer, Pointer, unsigned, Pointer, Pointer>(
            contextune_fn_cuModuleLoadDataEx) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(loaded_with == "options 1 2 3 4 5");
  CHECK(load_counting<Pointer, Pointer, Pointer, Pointer, unsigned, Pointer, Pointer, unsigned>(
            contextune_fn_cuLibraryLoadData) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(loaded_with == "library 1 2 3 4 5 6 7 8");
}

TEST_CASE("A load that the driver does not have fails", "[load]") {
  loaded_with.clear();
  CHECK(load_counting<Pointer, Pointer, Pointer, Pointer, unsigned, Pointer, Pointer, unsigned>(
            contextune_fn_cuLibraryLoadFromFile) == CUDA_ERROR_NOT_FOUND);
  CHECK(loaded_with.empty());
}
