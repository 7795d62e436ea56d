// The memory that a replay puts back: which it is, and what of it is copied.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "intercept/replay/program_memory.hpp"
#include "intercept/replay/region_replay.hpp"

namespace contextune::intercept {
gpu::BlockStore::Limits RegionReplay::copy_limits() const {
  return intercept::copy_limits(services_.driver, options_.replay_memory);
}

bool RegionReplay::lacks(std::size_t bytes) const noexcept {
  constexpr std::size_t of_driver = std::size_t{64} << 20U;  // what it takes in larger pieces
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const bool known = services_.driver.cuMemGetInfo(&free_bytes, &total_bytes) == CUDA_SUCCESS;
  return !known || free_bytes < of_driver || free_bytes - of_driver < bytes;
}

std::vector<gpu::MemoryRange> RegionReplay::footprint() {
  try {
    return program_memory(services_, context_, device_);
  } catch (const MemoryObstacle& obstacle) {
    decline_for(obstacle.reason, obstacle.text);
  }
}

void RegionReplay::note_variables() {
  try {
    intercept::note_variables(services_, context_, device_);
  } catch (const MemoryObstacle& obstacle) {
    decline_for(obstacle.reason, obstacle.text);
  }
}

void RegionReplay::prepare() {
  auto ranges = footprint();
  host_.emplace();
  if (!host_->begin(services_.memory.allocations().all())) {
    decline_for(FallbackReason::HostMemory,
                "There is more host memory within the GPU's reach than can be watched.");
  }
  auto memory = std::make_unique<ReplayMemory>(services_.driver, context_, services_.block_kernels,
                                               copy_limits(), tolerance_, step_seconds);
  {
    const std::lock_guard lock(memory_mutex_);
    if (memory_ != nullptr) unneeded_.push_back(std::move(memory_));
    memory_ = std::move(memory);
  }
  try {
    memory_->add(ranges, learned_);
  } catch (const gpu::NoRoom& error) {
    if (!learned_.empty()) decline_for(FallbackReason::ReplayMemory, error.what());
    // Not everything can be copied; this visit tells what has to be.
    memory_->add_uncopied(std::move(ranges));
  }
}

std::optional<Recording::Obstacle> RegionReplay::look_at(const KnownKernel& kernel) {
  const auto obstacle = [&](FallbackReason reason, std::string text) {
    return Recording::Obstacle{reason, "Kernel " + kernel.identity.name + ": " + std::move(text),
                               false};
  };
  const auto use = services_.variables.of(kernel.identity);
  if (!use->unknown.empty()) return obstacle(FallbackReason::UnknownMemory, use->unknown);
  const char* effect = nullptr;
  if (use->uses_printf) effect = "its module uses printf.";
  if (use->uses_malloc) effect = "its module uses malloc.";
  if (use->launches_kernels) effect = "its module launches kernels on the device.";
  if (effect != nullptr) return obstacle(FallbackReason::DeviceSideEffect, effect);
  std::vector<gpu::MemoryRange> ranges;
  for (const gpu::VariableRange& variable : use->variables) {
    if (variable.kind == gpu::VariableKind::Managed) {
      return obstacle(FallbackReason::ManagedMemory, "its module has managed variables.");
    }
    const gpu::MemoryRange range{variable.address, variable.bytes};
    // Memory that is known already may have been written to since the region began.
    if (variable.kind == gpu::VariableKind::Device && !memory_->has(range)) ranges.push_back(range);
  }
  if (ranges.empty()) return std::nullopt;
  try {
    memory_->add(std::move(ranges));
    note_own_bytes();
  } catch (const gpu::NoRoom& error) {
    return obstacle(FallbackReason::ReplayMemory, error.what());
  }
  return std::nullopt;
}

void RegionReplay::learn() {
  for (const gpu::MemoryRange& block : memory_->dirty()) {
    const auto allocation = services_.memory.allocations().find(block.begin);
    const gpu::MemoryRange whole =
        allocation ? gpu::MemoryRange{allocation->begin, allocation->bytes} : block;
    if (std::find(learned_.begin(), learned_.end(), whole) == learned_.end()) {
      learned_.push_back(whole);
    }
  }
  decline_for(FallbackReason::ReplayMemory,
              "Not all memory can be copied; this visit showed which memory has to be, and the "
              "next visit is tried.",
              true);
}

void RegionReplay::memory_is_lost(const std::string& why) noexcept {
  // Another thread ends the program, and what it has of device memory nobody can look at any more.
  if (gpu::has_ended(services_.driver)) {
    (void)host_->put_back();
    return decline({FallbackReason::ReplayFailed,
                    "The program ended, and the driver with it, before the replay did.", false});
  }
  std::string text = "contextune: the replay of region '" + region_.name() +
                     "' failed and the program's memory cannot be put back: " + why +
                     "; the program is stopped here, since its results would be wrong.";
  // Its process ends by our own hand, whoever looks after it.
  const std::string next = services_.store.journal().hung();
  text += next.empty() ? " Run it with --mode live.\n" : " " + next + "\n";
  services_.log.fault(text);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

}  // namespace contextune::intercept
