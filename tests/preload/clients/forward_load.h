/* A call of the registry's kind `load`, with the driver's own function and the arguments shown. */
#pragma once

#include "preload/contextune_abi.h"
#include "preload/registry/newer_types.h"

static inline CUresult forward_load(void* real, enum contextune_fn fn, void* const* args) {
#define ARGUMENT(type, index) (*(type const*)args[index])
  switch (fn) {
    case contextune_fn_cuModuleLoadDataEx:
      return ((PFN_cuModuleLoadDataEx_v2010)real)(ARGUMENT(CUmodule*, 0), ARGUMENT(const void*, 1),
                                                  ARGUMENT(unsigned int, 2),
                                                  ARGUMENT(CUjit_option*, 3), ARGUMENT(void**, 4));
    case contextune_fn_cuLibraryLoadData:
    case contextune_fn_cuLibraryLoadFromFile:
      return ((PFN_cuLibraryLoadData_v12000)real)(
          ARGUMENT(CUlibrary*, 0), ARGUMENT(const void*, 1), ARGUMENT(CUjit_option*, 2),
          ARGUMENT(void**, 3), ARGUMENT(unsigned int, 4), ARGUMENT(CUlibraryOption*, 5),
          ARGUMENT(void**, 6), ARGUMENT(unsigned int, 7));
    default:
      return ((PFN_cuModuleLoadData_v2000)real)(ARGUMENT(CUmodule*, 0), ARGUMENT(const void*, 1));
  }
#undef ARGUMENT
}
