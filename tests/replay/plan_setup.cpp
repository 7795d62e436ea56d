// What a random program begins with: streams, events, memory.
#include <algorithm>
#include <iterator>

#include "plan_author.hpp"

PlanAuthor::PlanAuthor(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15U + 1) {
  plan_.seed = seed;
}

Plan PlanAuthor::write() {
  plan_.visits = random_.between(1, 4);
  plan_.deferred = random_.chance(80);
  plan_.waits_between = random_.chance(70);
  draw_obstacle();
  draw_streams();
  draw_memory();
  draw_table();
  ordering_.emplace(plan_.streams);
  resources_.resize(plan_.buffers.size() + 1 + plan_.pinned.size());
  write_region();
  write_between();
  return plan_;
}

void PlanAuthor::draw_obstacle() {
  struct Row {
    Obstacle obstacle;
    const char* reason;
  };
  static constexpr Row rows[num_obstacles] = {
      {Obstacle::None, "replay"},
      {Obstacle::ManagedMemory, "managed_memory"},
      {Obstacle::SharedMemory, "shared_memory"},
      {Obstacle::HostFunction, "host_call"},
      {Obstacle::WaitValue, "stream_memory"},
      {Obstacle::Allocate, "replay_allocation"},
      {Obstacle::Release, "replay_allocation"},
      {Obstacle::OtherThread, "other_thread"},
      {Obstacle::KernelOnHost, "host_memory"},
      {Obstacle::HostReads, "host_reads"},
      {Obstacle::Bounce, "host_memory"},
      {Obstacle::CopyWithPitch, "unsupported_transfer"},
      {Obstacle::GraphWithHost, "graph_unreplayable"},
      {Obstacle::Capture, "capture"},
      {Obstacle::Unstable, "not_deterministic"},
  };
  if (random_.chance(75)) return;
  const Row& row = rows[random_.between(1, num_obstacles - 1)];
  obstacle_ = row.obstacle;
  const bool again = obstacle_ == Obstacle::Allocate || obstacle_ == Obstacle::Release;
  if (again) {
    plan_.only_first_visit = random_.chance(50);
    const unsigned in_vain = plan_.only_first_visit ? 1 : plan_.visits;
    plan_.expected.assign(in_vain, row.reason);
    if (in_vain < plan_.visits) plan_.expected.emplace_back("replay");
    return;
  }
  plan_.expected = {row.reason};
  // Its visits are then tuned live, where the output of a trial is the program's.
  any_flavour_ = false;
  // How often it has run so far is what it computes.
  if (obstacle_ == Obstacle::Unstable) plan_.visits = 1;
}

void PlanAuthor::draw_streams() {
  plan_.streams = {StreamKind::Legacy};
  const unsigned more = random_.below(4);
  for (unsigned i = 0; i < more; ++i) {
    static constexpr StreamKind kinds[] = {StreamKind::PerThread, StreamKind::Blocking,
                                           StreamKind::NonBlocking, StreamKind::NonBlocking};
    const StreamKind kind = kinds[random_.below(4)];
    const bool taken = kind == StreamKind::PerThread &&
                       std::count(plan_.streams.begin(), plan_.streams.end(), kind) != 0;
    plan_.streams.push_back(taken ? StreamKind::NonBlocking : kind);
  }
  if (obstacle_ == Obstacle::Capture) plan_.streams.push_back(StreamKind::NonBlocking);
  plan_.num_events = random_.between(1, 3);
  events_.resize(plan_.num_events);
}

void PlanAuthor::add_buffer(std::size_t memory, std::size_t first_byte, std::uint32_t words,
                            bool kept) {
  plan_.buffers.push_back({memory, first_byte, words, kept});
  // What follows a buffer, up to the next one or the end, is never written by the program.
  auto& bytes = plan_.memory[memory].bytes;
  bytes = std::max(bytes, first_byte + std::size_t{words} * 4 + random_.below(24));
}

void PlanAuthor::draw_memory() {
  const unsigned count = random_.between(3, 8);
  for (unsigned i = 0; i < count; ++i) {
    // Blocks of 64 KiB are what is restored: some buffers are smaller, some have several.
    const std::uint32_t words =
        random_.chance(15) ? random_.between(10'000, 50'000) : random_.between(64, 3'000);
    const bool kept = i == 0 || (i != 1 && random_.chance(50));
    if (i > 0 && random_.chance(30)) {
      const std::size_t memory = plan_.memory.size() - 1;
      const std::size_t end = plan_.memory[memory].bytes + random_.below(200);
      add_buffer(memory, (end + 3) / 4 * 4, words, kept);
      continue;
    }
    static constexpr MemoryKind kinds[] = {
        MemoryKind::Alloc,  MemoryKind::Alloc,  MemoryKind::Alloc,
        MemoryKind::Pitch,  MemoryKind::Async,  MemoryKind::Pool,
        MemoryKind::Global, MemoryKind::Global, MemoryKind::Published};
    MemoryKind kind = kinds[random_.below(std::size(kinds))];
    const auto is_global = [](const MemoryPlan& one) { return one.kind == MemoryKind::Global; };
    const auto globals = std::count_if(plan_.memory.begin(), plan_.memory.end(), is_global);
    if (kind == MemoryKind::Global && globals >= 2) kind = MemoryKind::Alloc;
    // It comes in pieces of 2 MiB, which take their time.
    if (random_.chance(3)) kind = MemoryKind::Virtual;
    plan_.memory.push_back({kind, 0});
    add_buffer(plan_.memory.size() - 1, std::size_t{random_.below(20)} * 4, words, kept);
  }
  if (obstacle_ == Obstacle::ManagedMemory || obstacle_ == Obstacle::SharedMemory) {
    const bool managed = obstacle_ == Obstacle::ManagedMemory;
    plan_.memory.push_back({managed ? MemoryKind::Managed : MemoryKind::Shared, 0});
    add_buffer(plan_.memory.size() - 1, 0, 200, false);
  }
  const unsigned pinned = random_.between(2, 4);
  for (unsigned i = 0; i < pinned; ++i) {
    plan_.pinned.push_back({random_.between(100, 2'000), random_.chance(30), i % 2 == 1, false});
  }
  plan_.pinned.push_back({1'000, false, true, true});
}

void PlanAuthor::draw_table() {
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (plan_.buffers[i].kept) plan_.table.push_back(i);
  }
  random_.shuffle(plan_.table);
  table_now_ = plan_.table;
  plan_.memory.push_back({MemoryKind::Alloc, 0});
  plan_.table_buffer = plan_.buffers.size();
  add_buffer(plan_.memory.size() - 1, 0, static_cast<std::uint32_t>(plan_.table.size()) * 2, false);
  plan_.mark_buffer = plan_.buffers.size();
  add_buffer(random_.below(plan_.memory.size() - 1), 0, 1, false);
  // Behind what is there already.
  BufferPlan& mark = plan_.buffers.back();
  MemoryPlan& memory = plan_.memory[mark.memory];
  mark.first_byte = (memory.bytes + 3) / 4 * 4;
  memory.bytes = mark.first_byte + 4;
}
