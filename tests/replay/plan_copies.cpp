// The copies of a random region, its end, and what it may hold that cannot be repeated.
#include <algorithm>

#include "plan_author.hpp"

namespace {

/// Bytes of a buffer, not always whole words.
void draw_bytes(Random& random, Action& action, std::uint32_t words, std::uint32_t most_words) {
  const std::uint32_t most = std::min(words, most_words);
  action.bytes = random.between(1, most * 4);
  action.offset_bytes = random.below(std::size_t{words} * 4 - action.bytes + 1);
}

}  // namespace

void PlanAuthor::write_from_host() {
  Action action = on_stream(Action::Kind::HostToDevice);
  action.to = overwritten_buffer();
  action.host = random_.chance(50) ? Action::Host::Pinned : Action::Host::Pageable;
  action.call = static_cast<Action::CopyCall>(random_.below(4));
  if (!host_may_wait()) action.call = Action::CopyCall::Async;
  const bool waiting =
      action.call == Action::CopyCall::Waiting || action.call == Action::CopyCall::AnyKindWaiting;
  if (waiting) action.stream = 0;
  action.value = static_cast<std::uint32_t>(random_.bits());
  action.pinned = any_pinned(false);
  const bool pinned = action.host == Action::Host::Pinned;
  draw_bytes(random_, action, plan_.buffers[action.to].words,
             pinned ? plan_.pinned[action.pinned].words : 5'000);
  std::vector<Use> uses{{action.to, true}};
  if (pinned) uses.push_back({pinned_resource(action.pinned), false});
  put(action, uses);
}

void PlanAuthor::write_on_device() {
  Action action = on_stream(Action::Kind::DeviceToDevice);
  action.to = overwritten_buffer();
  action.from = any_buffer(false);
  if (action.from == action.to) return;
  action.call = static_cast<Action::CopyCall>(random_.below(4));
  if (!host_may_wait()) action.call = Action::CopyCall::Async;
  const bool waiting =
      action.call == Action::CopyCall::Waiting || action.call == Action::CopyCall::AnyKindWaiting;
  if (waiting) action.stream = 0;
  draw_bytes(random_, action, plan_.buffers[action.to].words, plan_.buffers[action.from].words);
  put(action, {{action.from, false}, {action.to, true}});
}

void PlanAuthor::write_set() {
  Action action = on_stream(Action::Kind::Set);
  action.to = overwritten_buffer();
  action.call =
      host_may_wait() && random_.chance(30) ? Action::CopyCall::Waiting : Action::CopyCall::Async;
  if (action.call == Action::CopyCall::Waiting) action.stream = 0;
  static constexpr unsigned kinds[] = {8, 16, 32, 2};
  action.set_bits = kinds[random_.below(4)];
  action.value = random_.below(256);
  action.words = random_.between(1, plan_.buffers[action.to].words);
  put(action, {{action.to, true}});
}

void PlanAuthor::write_to_host(bool pinned) {
  Action action = on_stream(Action::Kind::DeviceToHost);
  action.from = any_buffer(false);
  action.host = pinned ? Action::Host::Pinned : Action::Host::Pageable;
  action.call = random_.chance(50) ? Action::CopyCall::Async : Action::CopyCall::AnyKind;
  if (!pinned && random_.chance(50)) {
    action.call = Action::CopyCall::Waiting;
    action.stream = 0;
  }
  action.pinned = any_pinned(true);
  draw_bytes(random_, action, plan_.buffers[action.from].words,
             pinned ? plan_.pinned[action.pinned].words : 5'000);
  std::vector<Use> uses{{action.from, false}};
  if (pinned) uses.push_back({pinned_resource(action.pinned), true});
  put(action, uses);
  to_host_ = true;
}

std::size_t PlanAuthor::any_pinned(bool result) {
  for (;;) {
    const std::size_t pinned = random_.below(plan_.pinned.size());
    const PinnedPlan& plan = plan_.pinned[pinned];
    if (plan.result == result && !plan.witness) return pinned;
  }
}

void PlanAuthor::write_pinned() {
  // In the next visit the host must know that the copies of this one are over.
  if (!host_may_wait() || !plan_.waits_between) return;
  Action action;
  action.kind = Action::Kind::WritePinned;
  action.pinned = any_pinned(false);
  action.value = static_cast<std::uint32_t>(random_.bits());
  Resource& resource = resources_[pinned_resource(action.pinned)];
  order_host(resource);
  resource = {};
  emit(action);
}

void PlanAuthor::write_tail() {
  const std::uint32_t what = random_.below(4);
  if (what == 0) return;
  if (what >= 2) {
    for (unsigned i = random_.between(1, 2); i > 0; --i) write_to_host(true);
  }
  // From here on the host may know what was copied: nothing may follow.
  Action action;
  if (what == 3) {
    write_to_host(false);
  } else {
    action.kind = Action::Kind::SynchroniseAll;
    emit(action);
    ordering_->join();
  }
  // What the host makes of its results is not for a replay to write over.
  action.kind = Action::Kind::WriteResults;
  action.value = what == 3 ? 0 : 1;
  if (random_.chance(50)) emit(action);
}

void PlanAuthor::write_obstacle() {
  Action action = on_stream(Action::Kind::Kernel);
  action.to = overwritten_buffer();
  action.words = plan_.buffers[action.to].words;
  action.value = 1;
  const auto only = [&](Action::Kind kind) {
    action.kind = kind;
    emit(action);
  };
  const auto writes = [&](Action::Kind kind) {
    action.kind = kind;
    put(action, {{action.to, true}});
  };
  switch (obstacle_) {
    case Obstacle::None:
    case Obstacle::ManagedMemory:
    case Obstacle::SharedMemory:
      return;
    case Obstacle::HostFunction:
      return put((action.kind = Action::Kind::HostFunction, action), {});
    case Obstacle::WaitValue:
      return writes(Action::Kind::WaitValue);
    case Obstacle::Allocate:
      return only(Action::Kind::Allocate);
    case Obstacle::Release:
      return only(Action::Kind::Release);
    case Obstacle::OtherThread:
      action.per_thread_call = false;
      if (plan_.streams[action.stream] == StreamKind::PerThread) action.stream = 0;
      return writes(Action::Kind::OtherThread);
    case Obstacle::KernelOnHost:
      action.kind = Action::Kind::KernelOnHost;
      action.pinned = any_pinned(true);
      return put(action, {{pinned_resource(action.pinned), true}});
    case Obstacle::HostReads: {
      write_to_host(true);
      Action all;
      all.kind = Action::Kind::SynchroniseAll;
      emit(all);
      ordering_->join();
      return writes(Action::Kind::Set);
    }
    case Obstacle::Bounce:
      action.pinned = any_pinned(true);
      action.bytes = 4 * std::min<std::size_t>(action.words, plan_.pinned[action.pinned].words);
      action.host = Action::Host::Pinned;
      action.kind = Action::Kind::DeviceToHost;
      action.from = action.to;
      put(action, {{action.from, false}, {pinned_resource(action.pinned), true}});
      to_host_ = true;
      action.kind = Action::Kind::HostToDevice;
      return put(action, {{action.to, true}, {pinned_resource(action.pinned), false}});
    case Obstacle::CopyWithPitch:
      return writes(Action::Kind::CopyWithPitch);
    case Obstacle::GraphWithHost:
      return write_graph(true);
    case Obstacle::Capture:
      action.stream = plan_.streams.size() - 1;
      return only(Action::Kind::Capture);
    case Obstacle::Unstable:
      action.family = Family::Unstable;
      action.to = any_buffer(true);
      action.words = plan_.buffers[action.to].words;
      return writes(Action::Kind::Kernel);
  }
}
