#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace contextune::gpu {

/// Full paths of the shared libraries of this process whose file name starts with `prefix`.
[[nodiscard]] std::vector<std::string> loaded_libraries(std::string_view prefix);

/// Where a CUDA library may lie that is not on the loader's path: the toolkit ($CUDA_HOME,
/// $CUDA_PATH, /usr/local/cuda), and the pip packages beside the CUDA libraries that this process
/// has loaded. `package` is the pip package's folder before CUDA 13 ("cuda_cupti", "cuda_nvrtc").
[[nodiscard]] std::vector<std::string> cuda_library_folders(std::string_view package);

/// Opens the first library that can be opened, for good: one that is loaded already, by `names` in
/// order, then by `names` on the loader's path, then in `folders`. Null: none, and `tried` lists
/// what was tried. `path` is where the library came from.
[[nodiscard]] void* open_library(const std::vector<std::string>& names,
                                 const std::vector<std::string>& folders, std::string& path,
                                 std::string& tried);

}  // namespace contextune::gpu
