#pragma once

#include <memory>

#include "core/coordination/coordinator.hpp"
#include "rank/agreement_hub.hpp"
#include "rank/rendezvous.hpp"

namespace contextune::rank {

/// What agrees with the ranks of a rendezvous that is whole: one without `error` and `missing`.
/// @throws std::bad_alloc
[[nodiscard]] std::unique_ptr<Coordinator> make_coordinator(const Rendezvous& rendezvous,
                                                            Deciders deciders);

}  // namespace contextune::rank
