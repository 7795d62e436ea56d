#include "intercept/replay/region_memory.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "intercept/memory/process_memory.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/recording/declined.hpp"
#include "intercept/recording/recorder.hpp"
#include "intercept/replay/program_memory.hpp"

namespace contextune::intercept {
namespace {

constexpr double release_seconds = 0.5;
constexpr int most_busy_drops = 8;

}  // namespace

void RegionMemory::find_context() {
  const gpu::Driver& driver = services_.driver;
  if (driver.cuCtxGetCurrent(&context_) != CUDA_SUCCESS || context_ == nullptr) {
    decline_for(FallbackReason::UnknownMemory, "No context is current where the region begins.",
                true);
  }
  device_ = gpu::current_device(driver).value_or(-1);
}

gpu::BlockStore::Limits RegionMemory::copy_limits() const {
  return intercept::copy_limits(services_.driver, options_.replay_memory);
}

bool RegionMemory::lacks(std::size_t bytes) const noexcept {
  constexpr std::size_t of_driver = std::size_t{64} << 20U;  // what it takes in larger pieces
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const bool known = services_.driver.cuMemGetInfo(&free_bytes, &total_bytes) == CUDA_SUCCESS;
  return !known || free_bytes < of_driver || free_bytes - of_driver < bytes;
}

std::vector<gpu::MemoryRange> RegionMemory::footprint() {
  try {
    return program_memory(services_, context_, device_);
  } catch (const MemoryObstacle& obstacle) {
    decline_for(obstacle.reason, obstacle.text);
  }
}

void RegionMemory::note_variables() {
  try {
    intercept::note_variables(services_, context_, device_);
  } catch (const MemoryObstacle& obstacle) {
    decline_for(obstacle.reason, obstacle.text);
  }
}

void RegionMemory::prepare() {
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

std::optional<Recording::Obstacle> RegionMemory::look_at(const KnownKernel& kernel) {
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

void RegionMemory::finish() {
  try {
    if (!memory_->finish()) learn();
  } catch (const gpu::NoRoom& error) {
    decline_for(FallbackReason::ReplayMemory, error.what());
  }
}

void RegionMemory::learn() {
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

std::optional<Recording::Obstacle> RegionMemory::drop(std::optional<std::size_t> wanted) noexcept {
  const std::unique_lock lock(memory_mutex_, std::try_to_lock);
  // Another thread is at it, or may be at look_at.
  if (in_use_.load() || !lock || services_.recorder.busy() || services_.recorder.active())
    return std::nullopt;
  try {
    if (memory_ != nullptr) unneeded_.push_back(std::move(memory_));
    // Waiting for the GPU ends a capture, and so does freeing.
    if (unneeded_.empty() || services_.captures.any()) return std::nullopt;
    if (!wanted && busy_drops_ == most_busy_drops) {
      return Recording::Obstacle{
          FallbackReason::NotIdle,
          "The GPU was at work whenever copies were to be freed, so no more are made.", false};
    }
    // Freeing waits for all work of the context, and that may itself wait for what the program does
    // next: then it is tried again at the next visit. Where the program would not get what it
    // wants, it waits as long as it is let.
    std::string why;
    const double most = wanted && lacks(*wanted) ? idle_seconds : release_seconds;
    const double seconds = std::max(0.0, most - busy_seconds(context_));
    if (!wait_until_idle(services_.driver, context_, seconds, why, &services_.captures)) {
      ++busy_drops_;
      return std::nullopt;
    }
  } catch (const std::exception&) {
    return std::nullopt;  // no memory to note it, or no thread to wait with
  }
  unneeded_.clear();
  busy_drops_ = 0;
  note_own_bytes();
  return std::nullopt;
}

void RegionMemory::note_own_bytes() noexcept {
  std::size_t bytes = memory_ == nullptr ? 0 : memory_->costs().device_bytes;
  for (const auto& one : unneeded_) bytes += one->costs().device_bytes;
  const auto difference = static_cast<std::ptrdiff_t>(bytes - own_bytes_);
  services_.memory.own_bytes().add(device_, difference);
  own_bytes_ = bytes;
}

void RegionMemory::forget_context(CUcontext context, bool gone) noexcept {
  if (context != context_ || is_dropped()) return;
  services_.recorder.obstruct(FallbackReason::ReplayAllocation, "The region destroys a context.",
                              true);
  if (!gone) (void)drop(0);
  if (services_.recorder.busy()) return;  // by another thread, whose context the program destroys
  const std::lock_guard lock(memory_mutex_);
  // Memory that could not be freed goes with the context; its addresses will be other memory's.
  (void)memory_.release();
  for (auto& one : unneeded_) (void)one.release();
  unneeded_.clear();
  note_own_bytes();
}

}  // namespace contextune::intercept
