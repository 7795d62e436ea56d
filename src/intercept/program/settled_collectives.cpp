#include "intercept/program/settled_collectives.hpp"

namespace contextune::intercept {

void SettledCollectives::remember(const contextune_nccl_call& call,
                                  const SettledCollective& settled) noexcept {
  SettledCollective& place = collectives_[place_of(call)];
  place = settled;
  place.communicator = call.comm;
  place.count = call.count;
  place.fn = call.fn;
  place.datatype = call.datatype;
  place.op = call.op;
}

}  // namespace contextune::intercept
