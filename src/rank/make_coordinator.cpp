#include "rank/make_coordinator.hpp"

#include <utility>

#include "rank/local_coordinator.hpp"
#include "rank/socket_coordinator.hpp"

namespace contextune::rank {

std::unique_ptr<Coordinator> make_coordinator(const Rendezvous& rendezvous, Deciders deciders) {
  if (rendezvous.num_ranks == 1) return std::make_unique<LocalCoordinator>(std::move(deciders));
  SocketSettings settings;
  settings.rank = rendezvous.rank;
  settings.num_ranks = rendezvous.num_ranks;
  settings.job = rendezvous.job;
  settings.address = rendezvous.address;
  settings.secret = rendezvous.secret;
  settings.listener = rendezvous.listener;
  return std::make_unique<SocketCoordinator>(settings, std::move(deciders));
}

}  // namespace contextune::rank
