#include "intercept/collectives/process_collectives.hpp"
#include "intercept/nccl/nccl_function.hpp"

#include <algorithm>
#include <new>

#include "intercept/collectives/region_collectives.hpp"
#include "intercept/collectives/thread_collectives.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/nccl/nccl_library.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

constinit thread_local ThreadCollectives this_call{};

namespace {

using collective::Function;

// A verdict comes from control threads alone, and long before; see SharedTuning.
constexpr double permission_seconds = 620;

/// A number from 0 to 63.
std::size_t slot_of(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) * 0x9e3779b97f4a7c15ULL >> 58U;
}

void forget_operations() noexcept {
  this_call.offered.clear();
  this_call.untunable.reset();
  this_call.captured = false;
}

/// This call that ends was settled, as far as its thread has looked at it.
void remember(const contextune_nccl_call& call, bool passes_launches) noexcept {
  SettledCollective& settled = this_call.settled;
  settled.version = this_call.version;
  settled.region = this_call.region;
  settled.passes_launches = passes_launches;
  this_thread().collectives.remember(call, settled);
}

bool is_untunable(const contextune_nccl_call& call) noexcept {
  const bool moves_data =
      call.kind == contextune_nccl_collective || call.kind == contextune_nccl_point_to_point;
  return moves_data && !function_of(call.fn);
}

bool is_exchange(const DecisionMade& made) noexcept {
  return made.key.function == Function::AllToAll;
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

bool ProcessCollectives::is_in_message() noexcept {
  const ReplayGate* const gate = process_collectives().gate_;
  return gate != nullptr && gate->is_in_message();
}

bool ProcessCollectives::is_inside() noexcept {
  return this_thread().collectives.repeated() != nullptr || this_call.is_inside || is_in_message();
}

std::span<const DecisionMade> ProcessCollectives::made() noexcept {
  if (this_thread().collectives.repeated() != nullptr || is_in_message()) return {};
  return {this_call.made.data(),
          std::min<std::size_t>(this_call.num_made, ThreadCollectives::most_made)};
}

bool ProcessCollectives::any_under_way() const noexcept {
  return others_under_way_.load(std::memory_order_seq_cst) != 0 ||
         std::ranges::any_of(inside_,
                             [](const CallsUnderWay& calls) {
                               return calls.count.load(std::memory_order_seq_cst) != 0;
                             }) ||
         (gate_ != nullptr && gate_->any_in_message());
}

void ProcessCollectives::enter(const contextune_nccl_call& call, int step) noexcept {
  if (call.kind != contextune_nccl_collective && call.kind != contextune_nccl_other)
    others_under_way_.fetch_add(step, std::memory_order_seq_cst);
  const bool lone = call.kind == contextune_nccl_collective && call.group_depth == 0;
  if (lone) inside_[slot_of(call.comm)].count.fetch_add(step, std::memory_order_seq_cst);
  if (!ends_group(call)) return;
  if (!this_call.offered.keeps_all()) {
    // It may make decisions of any communicator.
    for (CallsUnderWay& one : inside_) one.count.fetch_add(step, std::memory_order_seq_cst);
    return;
  }
  for (const OfferedOperation& one : this_call.offered.kept())
    inside_[slot_of(one.communicator)].count.fetch_add(step, std::memory_order_seq_cst);
}

void ProcessCollectives::start(const contextune_nccl_call& call, LaunchRegion* region, bool counts,
                               bool captured) noexcept {
  this_call.region = region;
  this_call.counts = counts;
  this_call.is_inside = true;
  this_call.num_made = 0;
  this_call.settled.tuner = -1;
  this_call.granted.reset();
  this_call.version = settled_version.load(std::memory_order_acquire);
  const bool lone = call.group_depth == 0 && call.kind != contextune_nccl_group;
  if (lone) forget_operations();
  this_call.captured = this_call.captured || (captured && function_of(call.fn));
  this_call.offered.add(call);
  if (is_untunable(call)) this_call.untunable = call.fn;
  if (const auto function = function_of(call.fn); region != nullptr && function) {
    if (!was_seen(*function)) seen_.fetch_or(bit_of(*function), std::memory_order_relaxed);
    if (region->collectives() == nullptr) region->saw_collective();
  }
  this_call.begun = region == nullptr ? 0 : now_seconds();
  this_call.last_allocation = memory_ == nullptr ? 0 : memory_->changes().last_serial();
}

void ProcessCollectives::begin(const contextune_nccl_call& call, LaunchRegion* region, bool counts,
                               bool captured) noexcept {
  start(call, region, counts, captured);
  enter(call, 1);
  // In one order with whoever closes it, who looks then who is inside.
  while (gate_ != nullptr && gate_->keeps_out()) {
    enter(call, -1);
    gate_->wait_until_open();
    enter(call, 1);
  }
  const bool lone = call.group_depth == 0 && call.kind != contextune_nccl_group;
  if (lone || (ends_group(call) && call.fn == contextune_fn_ncclGroupEnd)) show_exchange();
  const bool decides =
      (lone && function_of(call.fn)) || (ends_group(call) && call.fn == contextune_fn_ncclGroupEnd);
  // In one order with what a region does: it forbids decisions, and then looks who is inside.
  if (decides && regions_.any_holds()) await_permission(call);
}

bool ProcessCollectives::begin_settled(const contextune_nccl_call& call, LaunchRegion* region,
                                       SettledCollectives& of_thread) noexcept {
  if (call.kind != contextune_nccl_collective || call.group_depth != 0) return false;
  const SettledCollective* const known = of_thread.find(call, region);
  if (known == nullptr) return false;
  std::atomic<int>& inside = inside_[slot_of(call.comm)].count;
  inside.fetch_add(1, std::memory_order_seq_cst);
  // In one order, as in begin().
  if (regions_.any_holds()) {
    inside.fetch_sub(1, std::memory_order_seq_cst);
    return false;
  }
  of_thread.begin(*known, call);
  return true;
}

bool ProcessCollectives::end_settled(SettledCollectives& of_thread) noexcept {
  if (of_thread.repeated() == nullptr) return false;
  if (!of_thread.has_decided()) {
    unsettle(of_thread);  // NCCL asked nobody, which is counted there
    return false;
  }
  inside_[slot_of(of_thread.call().comm)].count.fetch_sub(1, std::memory_order_seq_cst);
  of_thread.end();
  return true;
}

void ProcessCollectives::unsettle(SettledCollectives& of_thread) noexcept {
  LaunchRegion* const region = of_thread.repeated()->region;
  of_thread.end();
  const ThreadState& thread = this_thread();
  collective_calls().before(of_thread.call());
  start(of_thread.call(), region, thread.region == nullptr || thread.counts, false);
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
  made.key.bytes = space_.of(Function::AllToAll).buckets.bucket_of(exchange->bytes).high;
  made.key.operations = 1;
  made.key.function = Function::AllToAll;
  made.key.kind = movement_kind;
  made.is_described = this_call.is_described(made.key);
  made.communicator = known->tuner_id;
  made.handle = offered.exchanging();
  made.ranks = known->ranks;
  made.nodes = known->nodes;
}

void ProcessCollectives::await_permission(const contextune_nccl_call& call) noexcept {
  const double until = now_seconds() + permission_seconds;
  const std::uint32_t decisions = this_call.offered.count();
  while (now_seconds() < until) {
    RegionCollectives* const region = regions_.forbidding(decisions);
    if (region == nullptr) return;
    enter(call, -1);  // while it waits, it makes no decision
    region->await_permission(decisions, until);
    enter(call, 1);  // and another question may have been asked meanwhile
  }
}

void ProcessCollectives::end(const contextune_nccl_call& call, bool may_settle,
                             bool passes_launches) noexcept {
  if (!this_call.is_inside) return;
  enter(call, -1);
  this_call.is_inside = false;
  const bool lone = call.group_depth == 0 && call.kind != contextune_nccl_group;
  const bool offers = this_call.offered.count() != 0;
  const bool goes_on = call.result == nccl_in_progress && offers;
  const auto untunable = this_call.untunable;
  if (lone || ends_group(call)) {
    // The next call or group begins with no operations.
    forget_operations();
  }
  RegionCollectives* const region =
      this_call.region == nullptr ? nullptr : this_call.region->collectives();
  const bool is_settled =
      may_settle && call.result == 0 && this_call.num_made == 1 && this_call.settled.tuner >= 0;
  if (is_settled && region == nullptr) remember(call, false);
  if (region == nullptr || call.fn == contextune_fn_ncclGroupSimulateEnd) return;
  if (goes_on && (lone || ends_group(call))) region->decides_later();
  if (this_call.num_made > ThreadCollectives::most_made) return region->too_many_at_once();
  for (DecisionMade& made : std::span(this_call.made.data(), this_call.num_made))
    if (made.is_first_use && memory_ != nullptr)
      made.connection_bytes = memory_->allocations().device_bytes_since(this_call.last_allocation);
  if (lone || ends_group(call)) {
    if (offers && this_call.num_made == 0) region->nobody_is_asked(call.tuner);
    if (untunable && std::ranges::none_of(made(), &is_exchange)) region->saw_untunable(*untunable);
  }
  region->made(made(), this_call.counts && call.result == 0, now_seconds() - this_call.begun);
  for (const DecisionMade& one : made())
    if (!one.is_described) this_call.note_described(one.key);
  if (is_settled && this_call.region->finished()) remember(call, passes_launches);
}

bool ProcessCollectives::is_sound(const collective::LeaseKey& key,
                                  const void* handle) const noexcept {
  const auto is_busy = [](const CallsUnderWay& calls) {
    return calls.count.load(std::memory_order_seq_cst) != 0;
  };
  // Any call may be about a communicator of which only the number is known.
  const bool busy =
      handle == nullptr ? std::ranges::any_of(inside_, is_busy) : is_busy(inside_[slot_of(handle)]);
  return !busy && confused_[slot_of_context(key.communicator)].load() != key.communicator;
}

}  // namespace contextune::intercept
