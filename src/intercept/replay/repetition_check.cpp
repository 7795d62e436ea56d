#include "intercept/replay/repetition_check.hpp"

#include <algorithm>
#include <utility>

#include "intercept/host/context_table.hpp"
#include "intercept/measuring/measurement.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/replay/program_memory.hpp"

namespace contextune::intercept {
namespace {

// Far more than copying or hashing all of a device's memory takes.
constexpr double step_seconds = 60;

gpu::Deadline deadline() {
  return gpu::Deadline::in(step_seconds);
}

}  // namespace

RepetitionCheck::RepetitionCheck(const RegionServices& services, const Options& options)
    : services_(services), options_(options) {}

RepetitionCheck::~RepetitionCheck() {
  for (Part& part : parts_) {
    if (part.copies == nullptr) continue;
    const auto bytes = static_cast<std::ptrdiff_t>(part.copies->device_bytes());
    part.copies.reset();
    services_.memory.own_bytes().add(part.device, -bytes);
  }
  if (claimed_) services_.gate.release();
}

void RepetitionCheck::wait_until_idle(const char* when) const {
  if (services_.captures.any()) throw Impossible("a stream is being captured");
  for (const Part& part : parts_) {
    const gpu::CurrentContext current(services_.driver, part.context);
    std::string why;
    if (!intercept::wait_until_idle(services_.driver, part.context, options_.trial_timeout, why,
                                    &services_.captures)) {
      throw Impossible(std::string(when) + ", " + why);
    }
  }
}

std::vector<RepetitionCheck::Part> RepetitionCheck::find_parts() const {
  CUcontext here = nullptr;
  if (services_.driver.cuCtxGetCurrent(&here) != CUDA_SUCCESS || here == nullptr)
    throw Impossible("no context is current");
  auto contexts = services_.contexts.all();
  if (!contexts) throw Impossible("the program may have a context that was not seen");
  if (std::find(contexts->begin(), contexts->end(), here) == contexts->end())
    contexts->push_back(here);
  std::vector<Part> parts;
  for (CUcontext context : *contexts) {
    const gpu::CurrentContext current(services_.driver, context);
    parts.push_back({context, gpu::current_device(services_.driver).value_or(-1)});
  }
  return parts;
}

std::vector<gpu::MemoryRange> RepetitionCheck::memory_of(const Part& part) const {
  try {
    note_variables(services_, part.context, part.device);
    return program_memory(services_, part.context, part.device, OtherDevices::LeftOut);
  } catch (const MemoryObstacle& obstacle) {
    std::string why = obstacle.text;
    if (why.empty()) why = fallback_info(obstacle.reason).cause;
    if (why.ends_with('.')) why.pop_back();
    throw Impossible("the program has memory that cannot be compared (" + why + ")");
  }
}

void RepetitionCheck::begin() {
  if (services_.frontend == nullptr) throw Impossible("the program's memory is not seen");
  parts_ = find_parts();
  // Other threads' writes would be taken for this one's, and put back.
  if (services_.measurement.cupti().program_has_threads_beside_nccl())
    throw Impossible("other threads of the program may use the GPU meanwhile");
  claimed_ = services_.gate.claim();
  if (!claimed_) throw Impossible("a region is being replayed");
  wait_until_idle("after its first run");
  for (Part& part : parts_) {
    const gpu::CurrentContext current(services_.driver, part.context);
    part.footprint = gpu::Footprint(memory_of(part));
    part.hasher =
        std::make_unique<gpu::BlockHasher>(services_.driver, part.context, services_.block_kernels);
    auto copies =
        std::make_unique<gpu::BlockStore>(services_.driver, part.context, services_.block_kernels,
                                          copy_limits(services_.driver, options_.replay_memory));
    part.hashes = part.hasher->hash(part.footprint, deadline());
    copies->save(part.footprint, deadline());
    part.copies = std::move(copies);
    services_.memory.own_bytes().add(part.device,
                                     static_cast<std::ptrdiff_t>(part.copies->device_bytes()));
  }
}

std::string RepetitionCheck::find_change() {
  wait_until_idle("after its second run");
  std::vector<std::vector<std::uint32_t>> changed;
  std::size_t num_changed = 0;
  std::size_t num_blocks = 0;
  for (Part& part : parts_) {
    const gpu::CurrentContext current(services_.driver, part.context);
    const std::vector<gpu::MemoryRange> there = memory_of(part);
    for (const gpu::MemoryRange& range : part.footprint.ranges()) {
      if (std::find(there.begin(), there.end(), range) == there.end())
        throw Impossible("it gives back device memory from before it");
    }
    const std::vector<std::uint64_t> now = part.hasher->hash(part.footprint, deadline());
    std::vector<std::uint32_t>& blocks = changed.emplace_back();
    for (std::uint32_t block = 0; block < now.size(); ++block)
      if (now[block] != part.hashes[block]) blocks.push_back(block);
    num_changed += blocks.size();
    num_blocks += now.size();
  }
  if (num_changed == 0) return {};
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const gpu::CurrentContext current(services_.driver, parts_[i].context);
    if (!changed[i].empty()) parts_[i].copies->restore(changed[i], deadline());
  }
  return "a second run of its default left other bytes in device memory than the first (" +
         std::to_string(num_changed) + " of " + std::to_string(num_blocks) + " blocks of 64 KiB)";
}

}  // namespace contextune::intercept
