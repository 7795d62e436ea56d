// The answers to NCCL's questions, and the leases that they come from.
#include <thread>

#include "collective/apply_decision.hpp"
#include "intercept/collectives/region_collectives.hpp"
#include "intercept/collectives/thread_collectives.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/nccl/collective_calls.hpp"

namespace contextune::intercept {
namespace {

using collective::Function;

constinit collective::LeaseTable leases;

constexpr std::uint32_t nearest_config = ~0U;  // of another size: no number in a site's list
constexpr double decides_for_seconds = 2;      // for which a decision may be under way elsewhere

/// @return the program's communicator that NCCL asks about; null: not known
const void* communicator_of(const collective::TunerQuestion& question) noexcept {
  if (question.handle != nullptr || question.in_flight->call == nullptr) return question.handle;
  const void* const only = this_call.offered.only_communicator();
  if (only != nullptr) collective_calls().learn_handle(question.tuner, only);
  return only;
}

collective::CostTable table_of(const collective::TunerQuestion& question) noexcept {
  return {question.table, question.algorithms, question.protocols};
}

/// Whether floating-point numbers come out the same only next to some of NCCL's own choices.
bool depends_on_table(const collective::Decision& decision, std::uint8_t kind,
                      int function) noexcept {
  return !decision.is_default() && kind != 0 && is_reduction(static_cast<Function>(function)) &&
         is_floating(collective::datatype_of(kind));
}

/// Takes note of the decision of a call that may turn out to be settled.
void settle(const collective::LeaseKey& key, const collective::LeaseTable::Seat& seat,
            const collective::Grant& grant, const collective::Decision& decision,
            const collective::TunerQuestion& question) noexcept {
  SettledCollective& settled = this_call.settled;
  settled.tuner = question.tuner;
  settled.bytes = question.bytes;
  settled.function = question.function;
  settled.ranks = question.ranks;
  settled.nodes = question.nodes;
  settled.key = key;
  settled.seat = seat;
  settled.grant = grant;
  settled.decision = decision;
  settled.checks_exactness = depends_on_table(decision, key.kind, question.function);
}

}  // namespace

bool ProcessCollectives::decide(const collective::TunerQuestion& question) noexcept {
  const auto function = collective::function_of_nccl(question.function);
  const bool simulated = question.in_flight->is_simulated();
  if (!function || *function == Function::AllToAll || simulated) return false;
  const void* const communicator = communicator_of(question);
  collective::LeaseKey key;
  key.communicator = static_cast<std::uint64_t>(question.tuner) + 1;  // above 0
  key.bytes = space_.of(*function).buckets.bucket_of(question.bytes).high;
  key.operations = static_cast<std::uint32_t>(question.num_pipelined);
  key.function = *function;
  key.kind = movement_kind;
  if (is_reduction(*function)) {
    const auto kind = this_call.offered.kind_of(question.function, communicator);
    key.kind = kind.value_or(0);
    // Other ranks may know what this one does not, and count it as something else.
    if (!kind) confuse(key.communicator);
  }
  // Before an answer is written into it.
  const bool describes = this_call.region != nullptr && !this_call.is_described(key);
  const collective::CellSet legal = describes ? table_of(question).legal() : collective::CellSet();
  const auto default_cell =
      describes ? table_of(question).cheapest() : std::optional<collective::Cell>();
  const collective::LeaseTable::Seat seat = leases.seat_of(key);
  const collective::Grant grant =
      this_call.granted ? *this_call.granted : leases.decide(seat, key, space_.takes_nearest);
  this_call.granted.reset();
  collective::Decision decision = grant.decision;
  std::uint32_t config = grant.is_nearest ? nearest_config : grant.config;
  if (grant.is_nearest && !is_worth_a_pass(decision, question.bytes)) {
    decision = {};
    config = 0;
  }
  if (this_call.captured && grant.is_trial) {
    // A graph would keep it; all ranks capture it or none does.
    decision = {};
    config = 0;
  }
  const collective::Decision as_granted = decision;
  if (!is_exact(decision, key.kind, question)) {
    decision = {};
    config = 0;
  }
  const collective::TunerAnswer answer{question.table, question.algorithms, question.protocols,
                                       question.channels};
  const bool is_default = decision.is_default();
  const bool applied = !is_default && apply_decision(decision, question.nodes, answer);
  if (!grant.is_counted) return applied;
  // NCCL asks about a group in an order of its own, and about later work on a thread of its own.
  if (!grant.is_trial && !this_call.captured && key.kind != 0 && question.num_pipelined == 1 &&
      question.in_flight->is_lone_operation() && question.in_flight->call->comm == communicator)
    settle(key, seat, grant, as_granted, question);
  if (this_call.num_made < ThreadCollectives::most_made) {
    DecisionMade& made = this_call.made[this_call.num_made];
    made.key = key;
    made.grant = grant;
    made.grant.config = config;
    made.communicator = question.communicator;
    made.handle = communicator;
    made.ranks = question.ranks;
    made.nodes = question.nodes;
    made.legal = legal;
    made.default_cell = default_cell;
    made.was_refused = !is_default && !applied;
    made.is_described = !describes;
    made.ran = applied ? decision.cell : default_cell;
    made.connection_bytes = 0;
    made.is_first_use = made.ran && use(key.communicator, *made.ran);
  }
  ++this_call.num_made;
  return applied;
}

bool ProcessCollectives::is_exact(const collective::Decision& decision, std::uint8_t kind,
                                  const collective::TunerQuestion& question) const noexcept {
  if (!depends_on_table(decision, kind, question.function)) return true;
  return may_replace(table_of(question).cheapest(), decision.cell,
                     static_cast<Function>(question.function), collective::datatype_of(kind),
                     collective::operator_of(kind), question.ranks, space_.rounding);
}

std::optional<bool> ProcessCollectives::decide_settled(const collective::TunerQuestion& question,
                                                       SettledCollectives& of_thread) noexcept {
  const SettledCollective* const known = of_thread.repeated();
  if (known == nullptr) return std::nullopt;
  std::optional<collective::Grant> grant;
  if (question.tuner == known->tuner && question.function == known->function &&
      question.bytes == known->bytes && question.num_pipelined == 1 && !of_thread.has_decided() &&
      leases.is_taken(known->seat))
    grant = leases.decide(known->seat, known->key, space_.takes_nearest);
  if (!grant || !known->is_granted_as_before(*grant)) {
    unsettle(of_thread);
    this_call.granted = grant;  // which counts it
    return std::nullopt;
  }
  of_thread.note_decision();
  collective::TunerQuestion asked = question;
  asked.ranks = known->ranks;
  if (known->decision.is_default() ||
      (known->checks_exactness && !is_exact(known->decision, known->key.kind, asked)))
    return false;
  return apply_decision(
      known->decision, known->nodes,
      {question.table, question.algorithms, question.protocols, question.channels});
}

bool ProcessCollectives::use(std::uint64_t context, collective::Cell cell) noexcept {
  std::atomic<std::uint32_t>& used = used_[slot_of_context(context)];
  const std::uint32_t bit = 1U << cell.index();
  return (used.load(std::memory_order_relaxed) & bit) == 0 &&
         (used.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

void ProcessCollectives::forget(std::int64_t tuner) noexcept {
  const auto context = static_cast<std::uint64_t>(tuner) + 1;
  used_[slot_of_context(context)].store(0, std::memory_order_relaxed);
  regions_.forget(context);
  const std::lock_guard lock(owner_);
  leases.forget(context);
}

std::uint64_t ProcessCollectives::decisions(const collective::LeaseKey& key) noexcept {
  return leases.decisions(key);
}

std::string ProcessCollectives::commit(const collective::Lease& lease) {
  using Refusal = collective::LeaseTable::Refusal;
  const std::lock_guard lock(owner_);
  Refusal refusal = leases.prepare(lease);
  const double until = now_seconds() + decides_for_seconds;
  while (refusal == Refusal::DecisionNow && now_seconds() < until) {
    std::this_thread::yield();
    refusal = leases.prepare(lease);
  }
  if (refusal != Refusal::None) return std::string(text_of(refusal));
  if (leases.commit(lease.epoch).late > 0) return "its first decision was made meanwhile";
  return {};
}

}  // namespace contextune::intercept
