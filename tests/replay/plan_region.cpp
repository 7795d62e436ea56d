// What a random region does.
#include <algorithm>

#include "plan_author.hpp"

Plan make_plan(std::uint64_t seed) {
  return PlanAuthor(seed).write();
}

void PlanAuthor::write_region() {
  target_ = &plan_.region;
  const unsigned count = random_.between(2, 24);
  const unsigned obstacle_at = random_.below(count);
  const unsigned kernel_at = random_.chance(50) ? 0 : random_.below(count);
  const unsigned graph_at = random_.below(count * 8);
  const unsigned module_at = random_.below(count * 20);
  for (unsigned i = 0; i < count; ++i) {
    if (i == kernel_at) write_kernel(true);
    if (i == obstacle_at) write_obstacle();
    if (i == graph_at) write_graph(false);
    if (i > graph_at && random_.chance(10)) launch_graph(0);
    if (i == module_at) write_module_load();
    write_one(true);
  }
  undo_shuffles();
  if (any_flavour_ && random_.chance(15)) write_pair();
  if (any_flavour_ && random_.chance(15)) write_seen_by_host_alone();
  write_tail();
}

void PlanAuthor::write_one(bool in_region) {
  const std::uint32_t what = random_.below(100);
  if (what < 50) return write_kernel(in_region);
  if (what < 60) return write_from_host();
  if (what < 68) return write_on_device();
  if (what < 76) return write_set();
  if (what < 88) return write_loose_event();
  if (!in_region) return;
  if (what < 92) return write_host_wait();
  if (what < 95) return write_pinned();
  if (random_.chance(40)) write_to_host(true);
}

Action PlanAuthor::on_stream(Action::Kind kind) {
  Action action;
  action.kind = kind;
  action.stream = random_.below(plan_.streams.size());
  const StreamKind stream = plan_.streams[action.stream];
  action.per_thread_call =
      stream == StreamKind::PerThread ? random_.chance(50) : random_.chance(10);
  return action;
}

std::size_t PlanAuthor::any_buffer(bool kept_only) {
  for (;;) {
    const std::size_t buffer = random_.below(plan_.buffers.size());
    if (buffer == plan_.table_buffer || buffer == plan_.mark_buffer) continue;
    if (!kept_only || plan_.buffers[buffer].kept) return buffer;
  }
}

std::size_t PlanAuthor::overwritten_buffer() {
  for (;;) {
    const std::size_t buffer = any_buffer(false);
    if (!plan_.buffers[buffer].kept) return buffer;
  }
}

bool PlanAuthor::pick_victim(Action& action) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    const std::size_t memory = random_.below(plan_.memory.size());
    const MemoryPlan& plan = plan_.memory[memory];
    if (plan.kind == MemoryKind::Managed || plan.bytes < 4) continue;
    const std::size_t byte = std::size_t{random_.below(plan.bytes / 4)} * 4;
    const bool lost = std::any_of(plan_.buffers.begin(), plan_.buffers.end(), [&](const auto& one) {
      return !one.kept && one.memory == memory && byte + 4 > one.first_byte &&
             byte < one.first_byte + std::size_t{one.words} * 4;
    });
    if (lost) continue;
    action.victim_memory = memory;
    action.victim_byte = byte;
    return true;
  }
  return false;
}

void PlanAuthor::write_kernel(bool in_region) {
  Action action = on_stream(Action::Kind::Kernel);
  const std::vector<Use> uses = draw_kernel(action, in_region, false);
  put(action, uses);
}

std::vector<PlanAuthor::Use> PlanAuthor::draw_kernel(Action& action, bool in_region,
                                                     bool in_graph) {
  do action.family = static_cast<Family>(random_.below(num_flavoured_families + 1));
  while (in_graph && (action.family == Family::Shuffle || action.family == Family::Through));
  if (in_region && any_flavour_ && action.family != Family::Shuffle) {
    action.flavour = static_cast<Flavour>(random_.below(3));
  }
  const std::uint32_t form = random_.below(10);
  action.form = form < 5   ? Form::Parameters
                : form < 7 ? Form::Packed
                : form < 9 ? Form::Extended
                           : Form::Cooperative;
  action.module = random_.chance(80) ? 0 : 1;
  action.block = random_.chance(50) ? 32 : 128;
  action.grid = random_.between(1, 4);
  action.value = random_.below(1'000'000);
  if (action.family == Family::Shuffle) {
    action.from = random_.below(table_now_.size());
    action.to = random_.below(table_now_.size());
    std::swap(table_now_[action.from], table_now_[action.to]);
    shuffles_.emplace_back(action.from, action.to);
    return {{plan_.table_buffer, true}};
  }
  std::size_t from = action.from = any_buffer(false);
  std::size_t to = action.to = any_buffer(action.flavour != Flavour::Right);
  std::vector<Use> uses;
  if (action.family == Family::Through) {
    action.from = random_.below(table_now_.size());
    action.to = random_.below(table_now_.size());
    from = table_now_[action.from];
    to = table_now_[action.to];
    uses.push_back({plan_.table_buffer, false});
  }
  bool reads = action.family == Family::Mix || action.family == Family::Job ||
               action.family == Family::Through || action.family == Family::Count;
  if (reads && from == to) {
    // What is added to itself may lose something.
    action.family = Family::Twist;
    action.from = action.to = to;
    reads = false;
    uses.clear();
  }
  action.words = std::min(plan_.buffers[from].words, plan_.buffers[to].words);
  if (random_.chance(60)) action.words = random_.between(1, action.words);
  if (action.flavour == Flavour::Stray && !pick_victim(action)) action.flavour = Flavour::Wrong;
  if (action.family == Family::Tally) {
    uses.push_back({from, false});
    uses.push_back({counters(), true});
  } else {
    if (reads) uses.push_back({from, false});
    if (action.family == Family::Recall) uses.push_back({counters(), false});
    uses.push_back({to, true});
  }
  if (in_region && action.flavour != Flavour::Right) {
    plan_.wrong_kernels.push_back(kernel_name(action.family, action.flavour));
  }
  return uses;
}

void PlanAuthor::write_graph(bool calls_host) {
  GraphPlan graph;
  graph.calls_host = calls_host;
  std::vector<Use> uses;
  for (unsigned i = random_.between(1, 4); i > 0; --i) {
    Action node;
    if (random_.chance(60)) {
      const auto more = draw_kernel(node, true, true);
      node.form = Form::Parameters;
      uses.insert(uses.end(), more.begin(), more.end());
    } else {
      node.kind = random_.chance(50) ? Action::Kind::Set : Action::Kind::DeviceToDevice;
      node.to = overwritten_buffer();
      node.words = random_.between(1, plan_.buffers[node.to].words);
      node.value = random_.below(256);
      do node.from = any_buffer(false);
      while (node.from == node.to);
      node.words = std::min(node.words, plan_.buffers[node.from].words);
      uses.push_back({node.to, true});
      if (node.kind == Action::Kind::DeviceToDevice) uses.push_back({node.from, false});
    }
    graph.nodes.push_back(node);
  }
  plan_.graphs.push_back(graph);
  graph_uses_.push_back(uses);
  launch_graph(plan_.graphs.size() - 1);
}

void PlanAuthor::launch_graph(std::size_t graph) {
  Action action = on_stream(Action::Kind::Graph);
  action.graph = graph;
  put(action, graph_uses_[graph]);
}

void PlanAuthor::write_module_load() {
  // A kernel of it reads the buffer, and writes a variable of its own.
  Action action = on_stream(Action::Kind::LoadModule);
  action.to = any_buffer(false);
  action.words = plan_.buffers[action.to].words;
  put(action, {{action.to, false}});
}

void PlanAuthor::undo_shuffles() {
  while (!shuffles_.empty()) {
    Action action = on_stream(Action::Kind::Kernel);
    action.family = Family::Shuffle;
    action.from = shuffles_.back().first;
    action.to = shuffles_.back().second;
    shuffles_.pop_back();
    put(action, {{plan_.table_buffer, true}});
  }
  table_now_ = plan_.table;
}
