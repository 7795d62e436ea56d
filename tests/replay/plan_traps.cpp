// What only a close look finds: configs that are wrong in each other's company, and results that
// only the host sees.
#include <algorithm>

#include "plan_author.hpp"

void PlanAuthor::write_pair() {
  Action set = on_stream(Action::Kind::Set);
  set.to = plan_.mark_buffer;
  set.set_bits = 32;
  set.value = set.words = 1;
  put(set, {{set.to, true}});
  for (const Family family : {Family::Leave, Family::Clear}) {
    Action action = on_stream(Action::Kind::Kernel);
    action.family = family;
    action.to = plan_.mark_buffer;
    action.words = set.value;  // what the word is to be
    if (!pick_victim(action)) return;
    put(action, {{action.to, true}});
  }
}

void PlanAuthor::write_seen_by_host_alone() {
  // Wrong, seen by the host, and gone.
  Action action = on_stream(Action::Kind::Kernel);
  action.flavour = Flavour::Wrong;
  action.to = overwritten_buffer();
  action.words = random_.between(1, std::min(plan_.buffers[action.to].words, 1'000U));
  plan_.wrong_kernels.push_back(kernel_name(action.family, action.flavour));
  put(action, {{action.to, true}});
  const std::size_t witness = plan_.pinned.size() - 1;
  Action copy = on_stream(Action::Kind::DeviceToHost);
  copy.from = action.to;
  copy.pinned = witness;
  copy.host = Action::Host::Pinned;
  copy.bytes = std::size_t{action.words} * 4;
  put(copy, {{copy.from, false}, {pinned_resource(witness), true}});
  to_host_ = true;
  Action set = on_stream(Action::Kind::Set);
  set.to = action.to;
  set.set_bits = 32;
  set.words = action.words;
  put(set, {{set.to, true}});
}
