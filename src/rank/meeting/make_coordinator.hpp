#pragma once

#include <memory>

#include "core/coordination/coordinator.hpp"
#include "rank/meeting/rendezvous.hpp"
#include "rank/members/agreement_hub.hpp"

namespace contextune::rank {

/// Makes the coordinator that agrees with the ranks of a whole rendezvous, which has no `error` and
/// no `missing`.
/// @throws std::bad_alloc
[[nodiscard]] std::unique_ptr<Coordinator> make_coordinator(const Rendezvous& rendezvous,
                                                            Deciders deciders);

}  // namespace contextune::rank
