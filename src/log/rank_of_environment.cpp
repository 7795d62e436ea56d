#include "log/rank_of_environment.hpp"

#include "core/value/launcher.hpp"
#include "environment/variables.hpp"

namespace contextune::log {
namespace {

Launched launched_here() {
  return launched_by(variable);
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
