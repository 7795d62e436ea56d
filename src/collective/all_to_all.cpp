#include "collective/all_to_all.hpp"

namespace contextune::collective {

void PeerCalls::add(const PeerCall& call) noexcept {
  if (num_calls_++ == 0) {
    count_ = call.count;
    datatype_ = call.datatype;
  }
  const bool is_like_the_first = call.count == count_ && call.datatype == datatype_;
  if (!is_like_the_first || call.count == 0 || call.peer < 0 || call.peer >= most_ranks) {
    is_something_else_ = true;
    return;
  }
  Peers& peers = call.direction == PeerCall::Direction::Send ? sent_to_ : received_from_;
  const auto peer = static_cast<std::size_t>(call.peer);
  is_something_else_ = is_something_else_ || peers[peer];
  peers.set(peer);
}

std::optional<AllToAll> PeerCalls::all_to_all(int ranks) const noexcept {
  if (is_something_else_ || ranks < 1 || ranks > most_ranks) return std::nullopt;
  const auto all = static_cast<std::size_t>(ranks);
  const std::size_t peers = sent_to_.count();
  const bool is_whole = peers == all || (peers + 1 == all && peers > 0);
  if (!is_whole || sent_to_ != received_from_ || (sent_to_ >> all).any()) return std::nullopt;
  return AllToAll{count_, datatype_, message_bytes(Function::AllToAll, datatype_, count_, ranks)};
}

}  // namespace contextune::collective
