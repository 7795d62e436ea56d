#include "log/rank_of_environment.hpp"

#include <cstdlib>
#include <string>

#include "core/launcher.hpp"

namespace contextune::log {

int rank_of_environment() noexcept try {
  const Launched launched =
      launched_by([](std::string_view name) { return std::getenv(std::string(name).c_str()); });
  return static_cast<int>(launched.rank & 0x7fffffffU);
} catch (...) {
  return 0;
}

}  // namespace contextune::log
