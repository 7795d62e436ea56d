#include "rank/meeting/make_coordinator.hpp"

#include <sched.h>

#include <utility>

#include "rank/members/local_coordinator.hpp"
#include "rank/star/socket_coordinator.hpp"

namespace contextune::rank {

namespace {

// Two threads of each rank may be at it at a time, and whoever is late needs a processor as well.
bool has_processors_to_spare(std::uint32_t num_ranks) noexcept {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 &&
         static_cast<std::uint32_t>(CPU_COUNT(&set)) > 2 * num_ranks;
}

}  // namespace

std::unique_ptr<Coordinator> make_coordinator(const Rendezvous& rendezvous, Deciders deciders) {
  if (rendezvous.num_ranks == 1) return std::make_unique<LocalCoordinator>(std::move(deciders));
  SocketSettings settings;
  settings.rank = rendezvous.rank;
  settings.num_ranks = rendezvous.num_ranks;
  settings.job = rendezvous.job;
  settings.address = rendezvous.address;
  settings.secret = rendezvous.secret;
  settings.listener = rendezvous.listener;
  settings.may_spin = has_processors_to_spare(rendezvous.num_ranks);
  return std::make_unique<SocketCoordinator>(settings, std::move(deciders));
}

}  // namespace contextune::rank
