#include "log/rank_of_environment.hpp"

#include <cstdlib>
#include <string>

#include "core/launcher.hpp"

namespace contextune::log {
namespace {

Launched launched_here() {
  return launched_by([](std::string_view name) { return std::getenv(std::string(name).c_str()); });
}

}  // namespace

int rank_of_environment() noexcept try {
  return static_cast<int>(launched_here().rank & 0x7fffffffU);
} catch (...) {
  return 0;
}

std::uint32_t ranks_of_environment() noexcept try {
  return launched_here().num_ranks;
} catch (...) {
  return 1;
}

}  // namespace contextune::log
