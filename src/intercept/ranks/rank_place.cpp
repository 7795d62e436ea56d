#include "intercept/ranks/rank_place.hpp"

#include "log/rank_of_environment.hpp"

namespace contextune::intercept {

RankPlace launched_place() noexcept {
  return {static_cast<std::uint32_t>(log::rank_of_environment()), log::ranks_of_environment()};
}

}  // namespace contextune::intercept
