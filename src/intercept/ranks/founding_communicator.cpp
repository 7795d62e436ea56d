#include "intercept/ranks/founding_communicator.hpp"

#include <algorithm>
#include <cstring>

#include "intercept/nccl/collective_calls.hpp"

namespace contextune::intercept {

bool FoundingCommunicator::see(const contextune_nccl_call& call, bool founds) noexcept {
  const bool is_first = unique_id_ == 0;
  if (is_first) {
    unique_id_ = call.unique_id;
    ranks_ = static_cast<std::uint32_t>(call.nranks);
    rank_ = static_cast<std::uint32_t>(call.rank);
    std::memcpy(first_id_.data(), call.first_id, first_id_.size());
    may_meet_.store(founds);
  }
  has_foreign_ = has_foreign_ || unique_id_ != call.unique_id;
  if (unique_id_ == call.unique_id) ++here_;
  return is_first;
}

rank::Rendezvous FoundingCommunicator::with_id(const rank::Rendezvous& launched) const {
  if (!is_known() || ranks_ != launched.num_ranks || rank_ != launched.rank) return launched;
  return launched.with_unique_id(first_id_);
}

std::optional<rank::Rendezvous> FoundingCommunicator::meet() {
  if (!is_known() || here_ == ranks_ || !why_alone_.empty()) return std::nullopt;
  int hosts = 0;
  for (const collective::TunedCommunicator& one : collective_calls().tuned())
    if (one.ranks == static_cast<int>(ranks_)) hosts = std::max(hosts, one.nodes);
  if (hosts == 0) return std::nullopt;  // one that does not block may not be there yet
  may_meet_.store(false);
  if (here_ > 1) {
    why_alone_ = "this process has " + std::to_string(here_) + " of the " + std::to_string(ranks_) +
                 " ranks of its first communicator, not one";
    return std::nullopt;
  }
  rank::Rendezvous where =
      hosts > 1
          ? rank::find_communicator_rendezvous_between_hosts(rank_, ranks_, unique_id_, first_id_)
          : rank::find_communicator_rendezvous(rank_, ranks_, unique_id_);
  if (where.error.empty()) return where;
  why_alone_ = where.error;
  return std::nullopt;
}

}  // namespace contextune::intercept
