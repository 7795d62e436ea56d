// The events and waits of a random program: as few as make it right.
#include <algorithm>

#include "plan_author.hpp"

void PlanAuthor::put(Action action, const std::vector<Use>& uses) {
  order(action.stream, uses);
  const Ordering::Step step = ordering_->submit(action.stream);
  for (const Use& use : uses) {
    Resource& resource = resources_[use.resource];
    if (use.writes) {
      resource = {step, {}};
    } else {
      resource.read.push_back(step);
    }
  }
  emit(action);
}

void PlanAuthor::order(std::size_t stream, const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    const Resource resource = resources_[use.resource];
    const auto after = [&](const Ordering::Step& step) {
      if (!ordering_->is_over(step, stream)) add_edge(step, stream);
    };
    if (resource.written) after(*resource.written);
    if (use.writes) std::for_each(resource.read.begin(), resource.read.end(), after);
  }
}

void PlanAuthor::order_host(const Resource& resource) {
  const auto after = [this](const Ordering::Step& step) {
    if (ordering_->is_over_for_host(step)) return;
    Action action;
    action.kind = Action::Kind::SynchroniseStream;
    action.stream = step.stream;
    emit(action);
    ordering_->host_waits(ordering_->record(step.stream));
  };
  if (resource.written) after(*resource.written);
  std::for_each(resource.read.begin(), resource.read.end(), after);
}

void PlanAuthor::add_edge(const Ordering::Step& from, std::size_t to) {
  // An event that was recorded for something else will do, if it is late enough.
  std::vector<std::size_t> late_enough;
  for (std::size_t event = 0; event < events_.size(); ++event) {
    if (holds(events_[event], from)) late_enough.push_back(event);
  }
  if (!late_enough.empty()) return wait(to, random_.one_of(late_enough));
  if (host_may_wait() && random_.chance(4)) {
    Action action;
    action.kind = Action::Kind::SynchroniseStream;
    action.stream = from.stream;
    emit(action);
    return ordering_->host_waits(ordering_->record(from.stream));
  }
  const std::size_t event = random_.below(events_.size());
  record(event, from.stream);
  wait(to, event);
}

void PlanAuthor::record(std::size_t event, std::size_t stream) {
  Action action;
  action.kind = Action::Kind::Record;
  action.stream = stream;
  action.event = event;
  emit(action);
  events_[event] = ordering_->record(stream);
}

void PlanAuthor::wait(std::size_t stream, std::size_t event) {
  Action action;
  action.kind = Action::Kind::Wait;
  action.stream = stream;
  action.event = event;
  emit(action);
  ordering_->wait(stream, events_[event]);
}

void PlanAuthor::write_loose_event() {
  const std::size_t event = random_.below(events_.size());
  const std::size_t stream = random_.below(plan_.streams.size());
  if (random_.chance(60)) {
    record(event, stream);
  } else {
    wait(stream, event);
  }
}

void PlanAuthor::write_host_wait() {
  if (!host_may_wait()) return;
  Action action = on_stream(Action::Kind::Query);
  action.event = random_.below(events_.size());
  switch (random_.below(5)) {
    case 0:
      action.kind = Action::Kind::SynchroniseStream;
      ordering_->host_waits(ordering_->record(action.stream));
      break;
    case 1:
      action.kind = Action::Kind::SynchroniseEvent;
      ordering_->host_waits(events_[action.event]);
      break;
    case 2:
      action.kind = Action::Kind::SynchroniseAll;
      ordering_->join();
      break;
    default:
      break;
  }
  emit(action);
}

void PlanAuthor::write_between() {
  target_ = &plan_.between;
  to_host_ = true;  // no waits of the host: the next visit begins while this work is under way
  for (unsigned i = random_.below(4); i > 0; --i) write_one(false);
  undo_shuffles();
  if (plan_.waits_between) {
    Action action;
    action.kind = Action::Kind::SynchroniseAll;
    emit(action);
  } else {
    // All streams meet without the host.
    for (std::size_t stream = 1; stream < plan_.streams.size(); ++stream) {
      record(0, stream);
      wait(0, 0);
    }
    record(0, 0);
    for (std::size_t stream = 1; stream < plan_.streams.size(); ++stream) wait(stream, 0);
  }
}
