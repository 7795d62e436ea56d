#include "intercept/repetition_check.hpp"

#include <algorithm>
#include <utility>

#include "intercept/idle_wait.hpp"
#include "intercept/measurement.hpp"
#include "intercept/process_ranks.hpp"
#include "intercept/program_memory.hpp"

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
  if (copies_ != nullptr) {
    const auto bytes = static_cast<std::ptrdiff_t>(copies_->device_bytes());
    copies_.reset();
    services_.allocations.add_own_bytes(device_, -bytes);
  }
  if (claimed_) services_.gate.release();
}

void RepetitionCheck::wait_until_idle(const char* when) const {
  std::string why;
  if (services_.captures.any()) throw Impossible("a stream is being captured");
  if (!intercept::wait_until_idle(services_.driver, context_, options_.trial_timeout, why,
                                  &services_.captures)) {
    throw Impossible(std::string(when) + ", " + why);
  }
}

std::vector<gpu::MemoryRange> RepetitionCheck::program_memory() const {
  try {
    note_variables(services_, context_, device_);
    return intercept::program_memory(services_, context_, device_);
  } catch (const MemoryObstacle& obstacle) {
    std::string why = obstacle.text;
    if (why.empty()) why = fallback_info(obstacle.reason).cause;
    if (why.ends_with('.')) why.pop_back();
    throw Impossible("the program has memory that cannot be compared (" + why + ")");
  }
}

void RepetitionCheck::begin() {
  if (services_.frontend == nullptr) throw Impossible("the program's memory is not seen");
  if (services_.ranks.num_ranks() > 1)
    throw Impossible("other ranks tune it as well, whose memory nobody compares");
  if (services_.driver.cuCtxGetCurrent(&context_) != CUDA_SUCCESS || context_ == nullptr)
    throw Impossible("no context is current");
  device_ = gpu::current_device(services_.driver).value_or(-1);
  // What another thread writes meanwhile would be taken for this one's, and put back.
  if (services_.measurement.program_has_other_threads())
    throw Impossible("other threads of the program may use the GPU meanwhile");
  claimed_ = services_.gate.claim();
  if (!claimed_) throw Impossible("a region is being replayed");
  wait_until_idle("after its first run");
  footprint_ = gpu::Footprint(program_memory());
  hasher_ = std::make_unique<gpu::BlockHasher>(services_.driver, context_, services_.block_kernels);
  copies_ =
      std::make_unique<gpu::BlockStore>(services_.driver, context_, services_.block_kernels,
                                        copy_limits(services_.driver, options_.replay_memory));
  hashes_ = hasher_->hash(footprint_, deadline());
  copies_->save(footprint_, deadline());
  services_.allocations.add_own_bytes(device_,
                                      static_cast<std::ptrdiff_t>(copies_->device_bytes()));
}

std::string RepetitionCheck::find_change() {
  wait_until_idle("after its second run");
  const std::vector<gpu::MemoryRange> there = program_memory();
  for (const gpu::MemoryRange& range : footprint_.ranges()) {
    if (std::find(there.begin(), there.end(), range) == there.end())
      throw Impossible("it gives back device memory from before it");
  }
  const std::vector<std::uint64_t> now = hasher_->hash(footprint_, deadline());
  std::vector<std::uint32_t> changed;
  for (std::uint32_t block = 0; block < now.size(); ++block)
    if (now[block] != hashes_[block]) changed.push_back(block);
  if (changed.empty()) return {};
  copies_->restore(changed, deadline());
  return "a second run of its default left other bytes in device memory than the first (" +
         std::to_string(changed.size()) + " of " + std::to_string(now.size()) +
         " blocks of 64 KiB)";
}

}  // namespace contextune::intercept
