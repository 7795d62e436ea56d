#include "store/cache_folder.hpp"

namespace contextune::store {

std::string cache_folder(std::string_view cache_dir, std::string_view xdg_cache_home,
                         std::string_view home) {
  if (!cache_dir.empty()) return std::string(cache_dir);
  if (xdg_cache_home.starts_with('/')) return std::string(xdg_cache_home) + "/contextune";
  if (home.starts_with('/')) return std::string(home) + "/.cache/contextune";
  return {};
}

}  // namespace contextune::store
