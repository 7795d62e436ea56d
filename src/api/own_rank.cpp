#include "api/own_rank.hpp"

#include "api/process.hpp"
#include "intercept/ranks/rank_place.hpp"

namespace contextune::api {

void own_rank(std::uint32_t* rank, std::uint32_t* num_ranks) noexcept {
  intercept::Runtime* const now = runtime();
  const intercept::RankPlace place =
      now == nullptr ? intercept::launched_place() : now->ranks().place();
  if (rank != nullptr) *rank = place.rank;
  if (num_ranks != nullptr) *num_ranks = place.num_ranks;
}

}  // namespace contextune::api
