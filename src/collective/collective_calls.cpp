#include "collective/collective_calls.hpp"

#include <limits>

namespace contextune::collective {
namespace {

/// Trivially destructible: the program may call NCCL from destructors that run after ours would.
constinit thread_local CallInFlight in_flight_here;

constexpr int in_progress = 7;

bool has_begun(const contextune_nccl_call& call) noexcept {
  return call.result == 0 || call.result == in_progress;
}

bool ends_communicator(contextune_nccl_fn fn) noexcept {
  return fn == contextune_fn_ncclCommDestroy || fn == contextune_fn_ncclCommAbort;
}

/// Before 2.28 NCCL does not tell its plugin which communicator it is. A communicator without a
/// parent is then named by the id that it was made of, which all its ranks have.
std::uint64_t id_of(std::uint64_t told, const KnownCommunicator& known) noexcept {
  return told == 0 && known.parent == nullptr ? known.unique_id : told;
}

/// ncclConfig_t::splitShare; absent: the config does not say.
std::optional<bool> split_share_in(const void* config) noexcept {
  struct Config {  // as since NCCL 2.18; it grows at the end only
    std::size_t size;
    unsigned magic, version;
    int until_net_name[4];
    const char* net_name;
    int split_share;
  };
  const auto* settings = static_cast<const Config*>(config);
  if (settings == nullptr || settings->magic != 0xcafebeef || settings->size < sizeof(Config) ||
      settings->split_share == std::numeric_limits<int>::min())
    return std::nullopt;
  return settings->split_share != 0;
}

}  // namespace

void CollectiveCalls::before(const contextune_nccl_call& call) noexcept {
  CallInFlight& here = in_flight_here;
  here.call = &call;
  here.asked_tuner = -1;
  here.began_tuner = -1;
  if (ends_communicator(call.fn)) {
    // Before the call: afterwards another thread may have one at the same address.
    const std::lock_guard lock(mutex_);
    communicators_.erase(call.comm);
  }
}

void CollectiveCalls::after(const contextune_nccl_call& call) noexcept {
  CallInFlight& here = in_flight_here;
  if (call.num_made > 0 && has_begun(call)) made(call);
  if (here.call == &call && here.is_lone_operation() && here.asked_tuner >= 0) {
    learn_tuner(call.comm, here.asked_tuner);
  }
  here.call = nullptr;
}

void CollectiveCalls::made(const contextune_nccl_call& call) noexcept {
  if (call.made == nullptr) return;
  try {
    for (int i = 0; i < call.num_made; ++i) add(call, i);
  } catch (...) {
    // No memory: this one stays unknown.
  }
}

void CollectiveCalls::add(const contextune_nccl_call& call, int index) {
  KnownCommunicator known;
  known.handle = call.made[index];
  if (known.handle == nullptr) return;  // a split without a colour
  const bool all_at_once = call.fn == contextune_fn_ncclCommInitAll;
  known.parent = call.comm;
  known.library = call.library;
  known.unique_id = call.unique_id;
  known.ranks = call.nranks;
  known.shares_with_splits = split_share_in(call.config).value_or(false);
  // The context of a communicator that is made in this very call, on this thread, is known.
  const std::int64_t tuner = in_flight_here.began_tuner;
  if (Tuner* const of_it = call.num_made == 1 ? find_tuner(tuner) : nullptr) {
    of_it->communicator.store(known.handle, std::memory_order_relaxed);
    known.tuner = tuner;
    of_it->id = id_of(of_it->id, known);
    known.tuner_id = of_it->id;
    known.ranks = of_it->ranks;
    known.nodes = of_it->nodes;
  }
  if (!all_at_once && known.ranks > 1) has_peers_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (call.config == nullptr && known.parent != nullptr) {
    const auto parent = communicators_.find(known.parent);
    known.shares_with_splits = parent != communicators_.end() && parent->second.shares_with_splits;
  }
  communicators_.insert_or_assign(known.handle, known);
}

std::int64_t CollectiveCalls::begin_tuner(const contextune_tuner_comm& comm) noexcept {
  if (comm.tuner != contextune_tuner_offered) return -1;
  for (std::size_t i = 0; i < tuners_.size(); ++i) {
    Tuner& tuner = tuners_[i];
    if (tuner.is_taken.exchange(true, std::memory_order_acquire)) continue;
    tuner.id = comm.id;
    tuner.ranks = static_cast<int>(comm.nranks);
    tuner.nodes = static_cast<int>(comm.nnodes);
    tuner.communicator.store(nullptr, std::memory_order_relaxed);
    const std::int64_t number = tuner.uses++ * max_tuners + static_cast<std::int64_t>(i);
    tuner.number.store(number, std::memory_order_release);
    in_flight_here.began_tuner = number;
    return number;
  }
  had_too_many_.store(true, std::memory_order_relaxed);
  return -1;
}

CollectiveCalls::Tuner* CollectiveCalls::find_tuner(std::int64_t number) noexcept {
  if (number < 0) return nullptr;
  Tuner& tuner = tuners_[static_cast<std::size_t>(number % max_tuners)];
  return tuner.number.load(std::memory_order_acquire) == number ? &tuner : nullptr;
}

void CollectiveCalls::learn_tuner(const void* communicator, std::int64_t number) noexcept {
  Tuner* const tuner = find_tuner(number);
  if (tuner == nullptr) return;  // ended meanwhile, by another thread
  if (tuner->communicator.load(std::memory_order_relaxed) == communicator) return;
  tuner->communicator.store(communicator, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  const auto found = communicators_.find(communicator);
  if (found == communicators_.end()) return;
  KnownCommunicator& known = found->second;
  known.tuner = number;
  tuner->id = id_of(tuner->id, known);
  known.tuner_id = tuner->id;
  known.ranks = tuner->ranks;
  known.nodes = tuner->nodes;
}

void CollectiveCalls::learn_handle(std::int64_t number, const void* communicator) noexcept {
  if (Tuner* const tuner = find_tuner(number))
    tuner->communicator.store(communicator, std::memory_order_relaxed);
}

bool CollectiveCalls::decide(TunerQuestion question) noexcept {
  const Tuner* const tuner = find_tuner(question.tuner);
  if (tuner == nullptr) return false;
  CallInFlight& here = in_flight_here;
  here.asked_tuner = question.tuner;
  CollectiveDecider* const decider = decider_.load(std::memory_order_acquire);
  if (decider == nullptr) return false;
  question.communicator = tuner->id;
  question.handle = tuner->communicator.load(std::memory_order_relaxed);
  question.ranks = tuner->ranks;
  question.nodes = tuner->nodes;
  question.in_flight = &here;
  return decider->decide(question);
}

void CollectiveCalls::end_tuner(std::int64_t tuner) noexcept {
  Tuner* const ended = find_tuner(tuner);
  if (ended == nullptr) return;
  if (CollectiveDecider* const decider = decider_.load(std::memory_order_acquire)) {
    decider->forget(tuner);
  }
  ended->number.store(-1, std::memory_order_relaxed);
  ended->is_taken.store(false, std::memory_order_release);
}

std::vector<TunedCommunicator> CollectiveCalls::tuned() const {
  std::vector<TunedCommunicator> all;
  for (const Tuner& tuner : tuners_) {
    const std::int64_t number = tuner.number.load(std::memory_order_acquire);
    if (number < 0) continue;
    const TunedCommunicator one{tuner.id, tuner.ranks, tuner.nodes};
    if (tuner.number.load(std::memory_order_acquire) == number) all.push_back(one);
  }
  return all;
}

std::vector<KnownCommunicator> CollectiveCalls::known() const {
  std::vector<KnownCommunicator> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [handle, one] : communicators_) all.push_back(one);
  return all;
}

std::optional<KnownCommunicator> CollectiveCalls::find(const void* communicator) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = communicators_.find(communicator);
  if (found == communicators_.end()) return std::nullopt;
  return found->second;
}

}  // namespace contextune::collective
