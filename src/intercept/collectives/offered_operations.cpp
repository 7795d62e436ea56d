#include "intercept/collectives/offered_operations.hpp"
#include "intercept/nccl/nccl_function.hpp"

#include <algorithm>

#include "collective/lease.hpp"

namespace contextune::intercept {
namespace {

using collective::Function;

std::uint8_t kind_of_call(Function function, const contextune_nccl_call& call) noexcept {
  if (!is_reduction(function)) return movement_kind;
  const auto datatype = collective::datatype_of_nccl(call.datatype);
  const auto op = collective::operator_of_nccl(call.op);
  return datatype && op ? collective::kind_of(*datatype, *op) : std::uint8_t{0};
}

}  // namespace

void OfferedOperations::clear() noexcept {
  count_ = num_kept_ = 0;
  keeps_all_ = true;
  if (exchanging_ == nullptr) return;
  exchanging_ = nullptr;
  exchanges_otherwise_ = false;
  messages_ = {};
  called_ = {};
}

void OfferedOperations::add(const contextune_nccl_call& call) noexcept {
  add_message(call);
  const auto function = function_of(call.fn);
  if (!function) return;
  keep({call.comm, *function, kind_of_call(*function, call)});
  ++count_;
}

void OfferedOperations::keep(const OfferedOperation& operation) noexcept {
  const auto known = kept();
  // As a rule it is like the one before.
  if (std::find(known.rbegin(), known.rend(), operation) != known.rend()) return;
  if (num_kept_ < most_kept) {
    kept_[num_kept_++] = operation;
  } else {
    keeps_all_ = false;
  }
}

void OfferedOperations::add_message(const contextune_nccl_call& call) noexcept {
  const bool is_send = call.fn == contextune_fn_ncclSend;
  const bool is_message = is_send || call.fn == contextune_fn_ncclRecv;
  const bool is_exchange = call.fn == contextune_fn_ncclAlltoAll;
  if (!is_message && !is_exchange) return;
  const bool is_first = exchanging_ == nullptr;
  const auto datatype = collective::datatype_of_nccl(call.datatype);
  if (!datatype || (!is_first && exchanging_ != call.comm)) exchanges_otherwise_ = true;
  exchanging_ = call.comm;
  if (exchanges_otherwise_) return;
  if (is_exchange) {
    exchanges_otherwise_ = !is_first;
    called_ = {call.count, *datatype, 0};
  } else {
    using Direction = collective::PeerCall::Direction;
    exchanges_otherwise_ = called_.count != 0;
    messages_.add({is_send ? Direction::Send : Direction::Recv, call.root, call.count, *datatype});
  }
}

std::optional<collective::AllToAll> OfferedOperations::exchange(int ranks) const noexcept {
  if (exchanges_otherwise_) return std::nullopt;
  if (called_.count == 0) return messages_.all_to_all(ranks);
  collective::AllToAll one = called_;
  one.bytes = message_bytes(Function::AllToAll, one.datatype, one.count, ranks);
  return one;
}

const void* OfferedOperations::only_communicator() const noexcept {
  if (count_ == 0 || !keeps_all_) return nullptr;
  const void* const only = kept_.front().communicator;
  const bool several = std::ranges::any_of(
      kept(), [&](const OfferedOperation& one) { return one.communicator != only; });
  return several ? nullptr : only;
}

std::optional<std::uint8_t> OfferedOperations::kind_of(int function,
                                                       const void* communicator) const noexcept {
  if (!keeps_all_) return std::nullopt;
  std::optional<std::uint8_t> kind;
  for (const OfferedOperation& one : kept()) {
    const bool is_it = communicator == nullptr || one.communicator == communicator;
    if (!is_it || static_cast<int>(one.function) != function) continue;
    if (kind && *kind != one.kind) {
      if (communicator == nullptr) return std::nullopt;
      return std::uint8_t{0};  // never tuned, but counted, on all ranks
    }
    kind = one.kind;
  }
  return kind;
}

}  // namespace contextune::intercept
