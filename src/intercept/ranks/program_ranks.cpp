#include "intercept/ranks/program_ranks.hpp"

#include "intercept/nccl/collective_calls.hpp"
#include "intercept/ranks/communicator_join.hpp"

namespace contextune::intercept {

std::string ProgramRanks::join(void* communicator, double seconds) {
  const auto known = collective_calls().find(communicator);
  const rank::Rendezvous met = meet_over(
      driver_, {communicator, known ? known->library : nullptr, known && known->shares_with_splits},
      seconds, stopped_.load() ? rank::Standing{"its tuning has ended", 0} : ranks_.standing());
  return ranks_.join(met);
}

}  // namespace contextune::intercept
