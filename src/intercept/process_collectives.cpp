#include "intercept/process_collectives.hpp"

#include <algorithm>
#include <new>
#include <thread>

#include "collective/apply_decision.hpp"
#include "intercept/clock.hpp"
#include "intercept/collective_hooks.hpp"
#include "intercept/launch_region.hpp"
#include "intercept/offered_operations.hpp"
#include "intercept/region_collectives.hpp"

namespace contextune::intercept {
namespace {

using collective::Function;

constinit collective::LeaseTable leases;

constexpr std::size_t most_made = 16;
constexpr std::size_t most_described = 8;
constexpr std::uint32_t nearest_config = ~0U;  // of another size: no number in a site's list
constexpr double busy_seconds = 2;             // for which a decision may be under way elsewhere
// A verdict comes from control threads alone, and long before; see SharedTuning.
constexpr double permission_seconds = 620;

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
  bool captured;  ///< one of the operations goes into a graph
  std::uint32_t num_made;
  std::uint64_t last_allocation;  ///< before the call
  OfferedOperations offered;
  std::array<DecisionMade, most_made> made;
  std::uint32_t num_described;  ///< ever; the last of them are kept
  std::array<Described, most_described> described;
};
constinit thread_local ThreadCollectives this_call{};

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
  const void* const only = this_call.offered.only_communicator();
  if (only != nullptr) collective_calls().learn_handle(question.tuner, only);
  return only;
}

void forget_operations() noexcept {
  this_call.offered.clear();
  this_call.captured = false;
}

collective::CostTable table_of(const collective::TunerQuestion& question) noexcept {
  return {question.table, question.algorithms, question.protocols};
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
  if (this_call.offered.count() > OfferedOperations::most_kept) {
    // It may make decisions of any communicator.
    for (std::atomic<int>& one : inside_) one.fetch_add(step, std::memory_order_seq_cst);
    return;
  }
  for (const OfferedOperation& one : this_call.offered.kept())
    inside_[slot_of(one.communicator)].fetch_add(step, std::memory_order_seq_cst);
}

void ProcessCollectives::begin(const contextune_nccl_call& call, LaunchRegion* region, bool counts,
                               bool captured) noexcept {
  this_call.region = region;
  this_call.counts = counts;
  this_call.is_inside = true;
  this_call.num_made = 0;
  const bool lone = call.group_depth == 0 && call.kind != contextune_nccl_group;
  if (lone) forget_operations();
  this_call.captured = this_call.captured || (captured && function_of(call.fn));
  this_call.offered.add(call);
  if (region != nullptr && region->collectives() == nullptr && function_of(call.fn))
    region->saw_collective();
  this_call.last_allocation = memory_ == nullptr ? 0 : memory_->last_serial();
  enter(call, 1);
  if (lone || (ends_group(call) && call.fn == contextune_fn_ncclGroupEnd)) show_exchange();
  const bool decides =
      (lone && function_of(call.fn)) || (ends_group(call) && call.fn == contextune_fn_ncclGroupEnd);
  // In one order with what a region does: it forbids decisions, and then looks who is inside.
  if (decides && holds_.load(std::memory_order_seq_cst) != 0) await_permission(call);
}

void ProcessCollectives::show_exchange() noexcept {
  const OfferedOperations& offered = this_call.offered;
  if (offered.exchanging() == nullptr) return;
  const auto known = collective_calls().find(offered.exchanging());
  if (!known || known->tuner < 0 || known->ranks < 2) return;
  const auto exchange = offered.exchange(known->ranks);
  if (!exchange) return;
  DecisionMade& made = this_call.made[this_call.num_made++];
  made = {};
  made.key.communicator = static_cast<std::uint64_t>(known->tuner) + 1;
  made.key.bytes = space_.of(Function::AllToAll).buckets.bucket_of(exchange->bytes).high_bytes;
  made.key.operations = 1;
  made.key.function = Function::AllToAll;
  made.key.kind = movement_kind;
  made.is_described = is_described(made.key, this_call.region);
  made.communicator = known->tuner_id;
  made.handle = offered.exchanging();
  made.ranks = known->ranks;
  made.nodes = known->nodes;
}

void ProcessCollectives::await_permission(const contextune_nccl_call& call) noexcept {
  const double until = now_seconds() + permission_seconds;
  for (bool waited = true; waited && now_seconds() < until;) {
    waited = false;
    if (holds_.load(std::memory_order_seq_cst) == 0) return;
    for (const auto& one : regions_) {
      RegionCollectives* const region = one.load(std::memory_order_acquire);
      if (region == nullptr || region->permits(this_call.offered.count())) continue;
      enter(call, -1);  // while it waits, it makes no decision
      region->await_permission(this_call.offered.count(), until);
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
    forget_operations();
  }
  RegionCollectives* const region =
      this_call.region == nullptr ? nullptr : this_call.region->collectives();
  if (region == nullptr || call.fn == contextune_fn_ncclGroupSimulateEnd) return;
  if (this_call.num_made > most_made) return region->too_many_at_once();
  for (DecisionMade& made : std::span(this_call.made.data(), this_call.num_made))
    if (made.is_first_use && memory_ != nullptr)
      made.connection_bytes = memory_->device_bytes_since(this_call.last_allocation);
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
    const auto kind = this_call.offered.kind_of(question.function, communicator);
    key.kind = kind.value_or(0);
    // Other ranks may know what this one does not, and count it as something else.
    if (!kind) confuse(key.communicator);
  }
  // Before an answer is written into it.
  const bool describes = this_call.region != nullptr && !is_described(key, this_call.region);
  const collective::CostTable table = describes ? table_of(question) : collective::CostTable();
  const collective::Grant grant = leases.decide(key, space_.takes_nearest);
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
  const bool is_exact =
      decision.is_default() || !is_reduction(*function) || key.kind == 0 ||
      !is_floating(collective::datatype_of(key.kind)) ||
      may_replace(table_of(question).cheapest(), decision.cell, *function,
                  collective::datatype_of(key.kind), collective::operator_of(key.kind),
                  question.ranks, space_.rounding);
  if (!is_exact) {
    decision = {};
    config = 0;
  }
  const collective::TunerAnswer answer{question.table, question.algorithms, question.protocols,
                                       question.channels};
  const bool is_default = decision.is_default();
  const bool applied = !is_default && apply_decision(decision, question.nodes, answer);
  if (!grant.is_counted) return applied;
  if (this_call.num_made < most_made) {
    DecisionMade& made = this_call.made[this_call.num_made];
    made = {};
    made.key = key;
    made.grant = grant;
    made.grant.config = config;
    made.communicator = question.communicator;
    made.handle = communicator;
    made.ranks = question.ranks;
    made.nodes = question.nodes;
    made.was_refused = !is_default && !applied;
    made.is_described = !describes;
    if (describes) {
      made.legal = table.legal();
      made.default_cell = table.cheapest();
    }
    made.ran = applied ? decision.cell : made.default_cell;
    made.is_first_use = made.ran && use(key.communicator, *made.ran);
  }
  ++this_call.num_made;
  return applied;
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
