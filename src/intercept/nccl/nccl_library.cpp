#include "intercept/nccl/nccl_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <vector>

namespace contextune::intercept {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load(void* library, NcclLibrary& nccl) {
  return find(library, "pncclCommUserRank", nccl.get_rank) &&
         find(library, "pncclCommCount", nccl.get_count) &&
         find(library, "pncclCommCuDevice", nccl.get_device) &&
         find(library, "pncclCommGetAsyncError", nccl.get_async_error) &&
         find(library, "pncclCommSplit", nccl.split) &&
         find(library, "pncclAllGather", nccl.all_gather) &&
         find(library, "pncclCommFinalize", nccl.finalize) &&
         find(library, "pncclCommDestroy", nccl.destroy) &&
         find(library, "pncclCommAbort", nccl.abort) &&
         find(library, "pncclGetErrorString", nccl.text);
}

int collect_name(dl_phdr_info* info, std::size_t, void* names) {
  // Exceptions may not pass through libc.
  try {
    static_cast<std::vector<std::string>*>(names)->emplace_back(
        info->dlpi_name == nullptr ? "" : info->dlpi_name);
  } catch (...) {
    return 1;
  }
  return 0;
}

const void* base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

}  // namespace

bool find_nccl(void* library, NcclLibrary& nccl, std::string& error) {
  if (library != nullptr) {
    if (load(library, nccl)) return true;
    error = "the NCCL of the communicator is too old: it takes 2.18";
    return false;
  }
  std::vector<std::string> names;
  dl_iterate_phdr(&collect_name, &names);
  const void* found = nullptr;
  for (const std::string& name : names) {
    // Lookups in an object go on to those that it needs: of several only those with a copy of
    // their own count. The program's own object has no name.
    void* object = dlopen(name.empty() ? nullptr : name.c_str(), RTLD_NOLOAD | RTLD_LAZY);
    if (object == nullptr) continue;
    NcclLibrary one;
    const bool is_nccl = load(object, one);
    dlclose(object);
    if (!is_nccl) continue;
    const void* base = base_of(reinterpret_cast<const void*>(one.split));
    if (found != nullptr && found != base) {
      error =
          "there are several NCCLs in this process, and the communicator was made unseen by one";
      return false;
    }
    found = base;
    nccl = one;
  }
  if (found == nullptr) error = "there is no NCCL in this process, or one older than 2.18";
  return found != nullptr;
}

}  // namespace contextune::intercept
