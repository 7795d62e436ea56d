#include "collective/all_to_all.hpp"

#include <vector>

namespace contextune::collective {

std::optional<AllToAll> find_all_to_all(std::span<const PeerCall> calls, int ranks) {
  if (ranks < 1) return std::nullopt;
  const auto peers = static_cast<std::size_t>(ranks);
  if (calls.size() != 2 * peers) return std::nullopt;
  const PeerCall& first = calls.front();
  if (first.count == 0) return std::nullopt;

  // As many calls as there are places, none of them taken twice: so each is taken.
  std::vector<bool> taken(2 * peers, false);
  for (const PeerCall& call : calls) {
    if (call.count != first.count || call.datatype != first.datatype) return std::nullopt;
    if (call.peer < 0 || call.peer >= ranks) return std::nullopt;
    const bool receives = call.direction == PeerCall::Direction::Recv;
    const std::size_t place = static_cast<std::size_t>(call.peer) + (receives ? peers : 0);
    if (taken[place]) return std::nullopt;
    taken[place] = true;
  }
  return AllToAll{first.count, first.datatype,
                  message_bytes(Function::AllToAll, first.datatype, first.count, ranks)};
}

}  // namespace contextune::collective
