#pragma once

#include <string>
#include <string_view>

namespace contextune::store {

/// The folder of the store: `cache_dir` (the option) if it is given, else "contextune" in
/// `xdg_cache_home`, else in ".cache" in `home`. Values of the environment, empty where it has
/// none. As the XDG specification has it, the latter two do not count unless they are absolute.
/// Nothing is looked at or created. Empty: there is no such folder.
[[nodiscard]] std::string cache_folder(std::string_view cache_dir, std::string_view xdg_cache_home,
                                       std::string_view home);

}  // namespace contextune::store
