#include "gpu/driver/loaded_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>
#include <algorithm>

#include "environment/variables.hpp"

namespace contextune::gpu {
namespace {

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

struct Search {
  std::string_view prefix;
  std::vector<std::string>* found;
};

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  if (file_name(path).substr(0, search.prefix.size()) == search.prefix && !path.empty()) {
    search.found->emplace_back(path);
  }
  return 0;
}

// Never unloaded: its code may be running on a thread of its own.
constexpr int open_flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

}  // namespace

std::vector<std::string> loaded_libraries(std::string_view prefix) {
  std::vector<std::string> found;
  Search search{prefix, &found};
  dl_iterate_phdr(&visit, &search);
  return found;
}

std::vector<std::string> cuda_library_folders(std::string_view package) {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
  };
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = variable(name);
    if (root == nullptr || *root == '\0') continue;
    add(std::string(root) + "/lib64");
    add(std::string(root) + "/extras/CUPTI/lib64");
  }
  add("/usr/local/cuda/lib64");
  add("/usr/local/cuda/extras/CUPTI/lib64");
  // pip packages: nvidia/cu13/lib holds everything; before that nvidia/<package>/lib, beside
  // nvidia/cuda_runtime/lib. PyTorch's own libraries lie in torch/lib, next to nvidia/.
  for (const char* prefix : {"libcudart.so", "libnvrtc.so", "libcublas.so"}) {
    for (const std::string& path : loaded_libraries(prefix)) {
      const std::string folder = folder_of(path);
      add(folder);
      add(folder + "/../../" + std::string(package) + "/lib");
    }
  }
  for (const char* prefix : {"libtorch_cuda", "libc10_cuda"}) {
    for (const std::string& path : loaded_libraries(prefix)) {
      const std::string site = folder_of(path) + "/../../nvidia/";
      add(site + "cu13/lib");
      add(site + std::string(package) + "/lib");
    }
  }
  return folders;
}

void* open_library(const std::vector<std::string>& names, const std::vector<std::string>& folders,
                   std::string& path, std::string& tried) {
  const auto note = [&](const std::string& candidate) {
    if (!tried.empty()) tried += ", ";
    tried += candidate;
  };
  for (const std::string& name : names) {
    // By path as well: a copy that was opened by its path is not found by its name alone.
    for (const std::string& loaded : loaded_libraries(name)) {
      if (void* library = dlopen(loaded.c_str(), open_flags | RTLD_NOLOAD)) {
        path = loaded;
        return library;
      }
    }
  }
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), open_flags)) {
      path = name;
      return library;
    }
    note(name);
  }
  for (const std::string& folder : folders) {
    for (const std::string& name : names) {
      const std::string candidate = folder + "/" + name;
      if (access(candidate.c_str(), R_OK) != 0) continue;
      if (void* library = dlopen(candidate.c_str(), open_flags)) {
        path = candidate;
        return library;
      }
      note(candidate);
    }
  }
  return nullptr;
}

}  // namespace contextune::gpu
