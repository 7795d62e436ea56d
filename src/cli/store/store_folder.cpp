#include "cli/store/store_folder.hpp"

#include "cli/setup/run_setup.hpp"
#include "store/cache_folder.hpp"

namespace contextune::cli {

std::string store_folder(const Environment& environment) {
  const auto text = [&](const char* name) {
    const char* const value = environment.find(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string ignored;  // of other options
  const Options options = options_of_environment(environment, ignored);
  return store::cache_folder(options.cache_dir, text("XDG_CACHE_HOME"), text("HOME"));
}

}  // namespace contextune::cli
