#include "intercept/process_collectives.hpp"

#include <algorithm>
#include <new>
#include <thread>

#include "collective/apply_decision.hpp"
#include "intercept/clock.hpp"
#include "intercept/collective_hooks.hpp"
#include "intercept/launch_region.hpp"
#include "intercept/region_collectives.hpp"

namespace contextune::intercept {
namespace {

using collective::Function;

constinit collective::LeaseTable leases;

constexpr std::size_t most_made = 16;
constexpr std::size_t most_grouped = 64;
constexpr std::size_t most_described = 8;
constexpr std::uint8_t movement_kind = 1;  // any number above 0: what is only moved has one kind
constexpr double busy_seconds = 2;         // for which a decision may be under way elsewhere
// A verdict comes from control threads alone, and long before; see SharedTuning.
constexpr double permission_seconds = 620;

/// An operation of the group that this thread has open, or the one that it is in.
struct OfferedOperation {
  const void* communicator;
  Function function;
  std::uint8_t kind;  ///< 0: not known
};

/// A key that a region has a site for.
struct Described {
  collective::LeaseKey key;
  const LaunchRegion* region;
};

/// Trivially destructible: the program may call NCCL from destructors that run after ours would.
struct ThreadCollectives {
  LaunchRegion* region;
  bool counts;
  bool is_inside;
  bool captured;                 ///< one of the operations goes into a graph
  std::uint32_t num_operations;  ///< beyond most_grouped: not all of them are kept
  std::uint32_t num_made;
  std::array<OfferedOperation, most_grouped> operations;
  std::array<DecisionMade, most_made> made;
  std::uint32_t num_described;  ///< ever; the last of them are kept
  std::array<Described, most_described> described;
};
constinit thread_local ThreadCollectives this_call{};

std::optional<Function> function_of(contextune_nccl_fn fn) noexcept {
  switch (fn) {
    case contextune_fn_ncclAllReduce:
      return Function::AllReduce;
    case contextune_fn_ncclAllGather:
      return Function::AllGather;
    case contextune_fn_ncclReduceScatter:
      return Function::ReduceScatter;
    case contextune_fn_ncclBroadcast:
    case contextune_fn_ncclBcast:
      return Function::Broadcast;
    case contextune_fn_ncclReduce:
      return Function::Reduce;
    default:
      return std::nullopt;
  }
}

std::uint8_t kind_of_call(Function function, const contextune_nccl_call& call) noexcept {
  if (!is_reduction(function)) return movement_kind;
  const auto datatype = collective::datatype_of_nccl(call.datatype);
  const auto op = collective::operator_of_nccl(call.op);
  return datatype && op ? kind_of(*datatype, *op) : std::uint8_t{0};
}

std::span<const OfferedOperation> operations_here() noexcept {
  return {this_call.operations.data(),
          std::min<std::size_t>(this_call.num_operations, most_grouped)};
}

/// Whether this thread need not tell the region again what NCCL's table said of the key.
bool is_described(const collective::LeaseKey& key, const LaunchRegion* region) noexcept {
  return std::any_of(this_call.described.begin(), this_call.described.end(),
                     [&](const Described& one) { return one.region == region && one.key == key; });
}

std::size_t slot_of(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) / 64 % 61;
}

/// @return the program's communicator that NCCL asks about; null: not known
const void* communicator_of(const collective::TunerQuestion& question) noexcept {
  if (question.handle != nullptr || question.in_flight->call == nullptr) return question.handle;
  const auto kept = operations_here();
  if (kept.empty()) return nullptr;
  const void* const only = kept.front().communicator;
  const bool several = std::any_of(kept.begin(), kept.end(), [&](const OfferedOperation& one) {
    return one.communicator != only;
  });
  if (several || this_call.num_operations > most_grouped) return nullptr;
  collective_calls().learn_handle(question.tuner, only);
  return only;
}

/// @param communicator null: not known, but where all operations are of one kind it is that
/// @return of all operations that it can be about, 0 if of several kinds; absent: not known
std::optional<std::uint8_t> kind_of_question(const collective::TunerQuestion& question,
                                             const void* communicator) noexcept {
  if (this_call.num_operations > most_grouped) return std::nullopt;
  std::optional<std::uint8_t> kind;
  for (const OfferedOperation& one : operations_here()) {
    const bool is_it = communicator == nullptr || one.communicator == communicator;
    if (!is_it || static_cast<int>(one.function) != question.function) continue;
    if (kind && *kind != one.kind) {
      if (communicator == nullptr) return std::nullopt;
      return std::uint8_t{0};  // never tuned, but counted, on all ranks
    }
    kind = one.kind;
  }
  return kind;
}

bool ends_group(const contextune_nccl_call& call) noexcept {
  return call.kind == contextune_nccl_group && call.fn != contextune_fn_ncclGroupStart &&
         call.group_depth <= 1;
}

}  // namespace

ProcessCollectives& process_collectives() noexcept {
  alignas(ProcessCollectives) static std::byte place[sizeof(ProcessCollectives)];
  static auto* const one = new (place) ProcessCollectives();
  return *one;
}

bool ProcessCollectives::is_inside() noexcept {
  return this_call.is_inside;
}

std::span<const DecisionMade> ProcessCollectives::made() noexcept {
  return {this_call.made.data(), std::min<std::size_t>(this_call.num_made, most_made)};
}

void ProcessCollectives::enter(const contextune_nccl_call& call, int step) noexcept {
  const bool lone = call.kind == contextune_nccl_collective && call.group_depth == 0;
  if (lone) inside_[slot_of(call.comm)].fetch_add(step, std::memory_order_seq_cst);
  if (!ends_group(call)) return;
  for (const OfferedOperation& one : operations_here())
    inside_[slot_of(one.communicator)].fetch_add(step, std::memory_order_seq_cst);
}

void ProcessCollectives::begin(const contextune_nccl_call& call, LaunchRegion* region, bool counts,
                               bool captured) noexcept {
  this_call.region = region;
  this_call.counts = counts;
  this_call.is_inside = true;
  this_call.num_made = 0;
  const bool lone = call.group_depth == 0 && call.kind != contextune_nccl_group;
  if (lone) {
    this_call.num_operations = 0;
    this_call.captured = false;
  }
  if (const auto function = function_of(call.fn)) {
    this_call.captured = this_call.captured || captured;
    if (this_call.num_operations < most_grouped)
      this_call.operations[this_call.num_operations] = {call.comm, *function,
                                                        kind_of_call(*function, call)};
    ++this_call.num_operations;
  }
  enter(call, 1);
  const bool decides =
      (lone && function_of(call.fn)) || (ends_group(call) && call.fn == contextune_fn_ncclGroupEnd);
  // In one order with what a region does: it forbids decisions, and then looks who is inside.
  if (decides && holds_.load(std::memory_order_seq_cst) != 0) await_permission(call);
}

void ProcessCollectives::await_permission(const contextune_nccl_call& call) noexcept {
  const double until = now_seconds() + permission_seconds;
  for (bool waited = true; waited && now_seconds() < until;) {
    waited = false;
    if (holds_.load(std::memory_order_seq_cst) == 0) return;
    for (const auto& one : regions_) {
      RegionCollectives* const region = one.load(std::memory_order_acquire);
      if (region == nullptr || region->permits(this_call.num_operations)) continue;
      enter(call, -1);  // while it waits, it makes no decision
      region->await_permission(this_call.num_operations, until);
      enter(call, 1);
      waited = true;  // and another question may have been asked meanwhile
    }
  }
}

void ProcessCollectives::end(const contextune_nccl_call& call) noexcept {
  if (!this_call.is_inside) return;
  enter(call, -1);
  this_call.is_inside = false;
  const bool lone = call.group_depth == 0 && call.kind != contextune_nccl_group;
  if (lone || ends_group(call)) {
    // What comes next, a group as well, begins with nothing.
    this_call.num_operations = 0;
    this_call.captured = false;
  }
  RegionCollectives* const region =
      this_call.region == nullptr ? nullptr : this_call.region->collectives();
  if (region == nullptr || call.fn == contextune_fn_ncclGroupSimulateEnd) return;
  if (this_call.num_made > most_made) return region->too_many_at_once();
  region->made(made(), this_call.counts && call.result == 0);
  for (const DecisionMade& one : made())
    if (!one.is_described)
      this_call.described[this_call.num_described++ % most_described] = {one.key, this_call.region};
}

void ProcessCollectives::confuse(std::uint64_t context) noexcept {
  for (auto& one : confused_) {
    std::uint64_t known = 0;
    if (one.compare_exchange_strong(known, context) || known == context) return;
  }
  all_confused_.store(true);
}

bool ProcessCollectives::decide(const collective::TunerQuestion& question) noexcept {
  const auto function = collective::function_of_nccl(question.function);
  const bool simulated = question.in_flight->is_simulated();
  if (!function || *function == Function::AllToAll || simulated) return false;
  const void* const communicator = communicator_of(question);
  collective::LeaseKey key;
  key.communicator = static_cast<std::uint64_t>(question.tuner) + 1;  // above 0
  key.bytes = space_.of(*function).buckets.bucket_of(question.bytes).high_bytes;
  key.operations = static_cast<std::uint32_t>(question.num_pipelined);
  key.function = *function;
  key.kind = movement_kind;
  if (is_reduction(*function)) {
    const auto kind = kind_of_question(question, communicator);
    key.kind = kind.value_or(0);
    // Other ranks may know what this one does not, and count it as something else.
    if (!kind) confuse(key.communicator);
  }
  // Before an answer is written into it.
  const bool describes = this_call.region != nullptr && !is_described(key, this_call.region);
  const collective::CostTable table =
      describes ? collective::CostTable(question.table, question.algorithms, question.protocols)
                : collective::CostTable();
  const collective::Grant grant = leases.decide(key);
  if (!grant.is_counted) return false;
  collective::Decision decision = grant.decision;
  std::uint32_t config = grant.config;
  if (this_call.captured && grant.is_trial) {
    // A graph would keep it; all ranks capture it or none does.
    decision = {};
    config = 0;
  }
  const collective::TunerAnswer answer{question.table, question.algorithms, question.protocols,
                                       question.channels};
  const bool is_default = decision.is_default();
  const bool applied = !is_default && apply_decision(decision, question.nodes, answer);
  if (this_call.num_made < most_made) {
    DecisionMade& made = this_call.made[this_call.num_made];
    made = {key, grant, question.communicator,   communicator, question.ranks, question.nodes,
            {},  {},    !is_default && !applied, !describes};
    made.grant.config = config;
    if (describes) {
      made.legal = table.legal();
      made.default_cell = table.cheapest();
    }
  }
  ++this_call.num_made;
  return applied;
}

void ProcessCollectives::forget(std::int64_t tuner) noexcept {
  const auto context = static_cast<std::uint64_t>(tuner) + 1;
  for (const auto& one : regions_)
    if (RegionCollectives* const region = one.load(std::memory_order_acquire))
      region->forget(context);
  const std::lock_guard lock(owner_);
  leases.forget(context);
}

bool ProcessCollectives::add(RegionCollectives& region) {
  for (auto& place : regions_) {
    RegionCollectives* nobody = nullptr;
    if (place.compare_exchange_strong(nobody, &region, std::memory_order_acq_rel)) return true;
  }
  return false;
}

bool ProcessCollectives::is_of_another(const collective::LeaseKey& key,
                                       const RegionCollectives& region) const noexcept {
  return std::any_of(regions_.begin(), regions_.end(), [&](const auto& one) {
    const RegionCollectives* const other = one.load(std::memory_order_acquire);
    return other != nullptr && other != &region && other->has(key);
  });
}

std::uint64_t ProcessCollectives::decisions(const collective::LeaseKey& key) const noexcept {
  return leases.decisions(key);
}

bool ProcessCollectives::is_sound(const collective::LeaseKey& key,
                                  const void* handle) const noexcept {
  const auto is_busy = [](const std::atomic<int>& calls) {
    return calls.load(std::memory_order_seq_cst) != 0;
  };
  // Any call may be about a communicator of which only the number is known.
  const bool busy = handle == nullptr ? std::any_of(inside_.begin(), inside_.end(), is_busy)
                                      : is_busy(inside_[slot_of(handle)]);
  if (busy || all_confused_.load()) return false;
  for (const auto& one : confused_)
    if (one.load() == key.communicator) return false;
  return true;
}

std::string ProcessCollectives::commit(const collective::Lease& lease) {
  using Refusal = collective::LeaseTable::Refusal;
  const std::lock_guard lock(owner_);
  Refusal refusal = leases.prepare(lease);
  const double until = now_seconds() + busy_seconds;
  while (refusal == Refusal::DecisionNow && now_seconds() < until) {
    std::this_thread::yield();
    refusal = leases.prepare(lease);
  }
  if (refusal != Refusal::None) return std::string(text_of(refusal));
  if (leases.commit(lease.epoch).late > 0) return "its first decision was made meanwhile";
  return {};
}

}  // namespace contextune::intercept
