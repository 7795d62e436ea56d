#include "intercept/region_replay.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "intercept/clock.hpp"
#include "intercept/idle_wait.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

constexpr double idle_seconds = 10;
constexpr double step_seconds = 60;  // of copying, hashing, or one replay
constexpr double leave_seconds = 1;  // for other threads to come back from the driver
constexpr double release_seconds = 0.5;
constexpr int most_busy_drops = 8;
// Visits that were recorded in vain, because something came or went in them.
constexpr std::uint64_t most_visits = 8;

std::size_t available_host_bytes() noexcept {
  const long pages = sysconf(_SC_AVPHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
}

}  // namespace

RegionReplay::RegionReplay(LaunchRegion& region, const RegionServices& services,
                           const Options& options, Search& search, SiteTable& table)
    : region_(region),
      services_(services),
      budget_bytes_(options.replay_memory),
      tolerance_(ResultTolerance::parse(options.tolerance).value_or(ResultTolerance{})),
      search_(search),
      table_(table) {}

RegionReplay::~RegionReplay() = default;

bool RegionReplay::begin_visit(bool thread_bound) noexcept {
  // What another region is at work on would not be what the program has.
  if (services_.recorder.busy() || !services_.gate.claim()) {
    services_.log.fallback(FallbackReason::OtherRegion, region_.name(), {}, {});
    return false;
  }
  ++visits_;
  try {
    find_context();
    note_variables();
    const auto versions = services_.recorder.versions();
    prepare();
    const auto first_launch = [this](const KnownKernel& kernel) { return look_at(kernel); };
    const auto limits = copy_limits();
    services_.gate.watch(true);
    recording_ = services_.recorder.begin(thread_bound, versions, limits.host_bytes, first_launch,
                                          [this] { drop_memory(true); });
    if (!recording_) services_.log.fallback(FallbackReason::OtherRegion, region_.name(), {}, {});
  } catch (const Declined& declined) {
    decline(declined.obstacle);
  } catch (const std::exception& error) {
    decline({FallbackReason::ReplayFailed, error.what(), false});
  }
  note_own_bytes();
  if (!recording_) {
    drop_memory();
    finish_visit();
  }
  return recording_;
}

void RegionReplay::finish_visit() noexcept {
  services_.gate.watch(false);
  services_.gate.release();
}

void RegionReplay::drop_memory(bool wanted) noexcept {
  const std::unique_lock lock(memory_mutex_, std::try_to_lock);
  // Another thread is at it, or may be at look_at.
  if (!lock || services_.recorder.busy() || services_.recorder.active()) return;
  try {
    if (memory_ != nullptr) unneeded_.push_back(std::move(memory_));
    // Waiting for the GPU ends a capture, and so does freeing.
    if (unneeded_.empty() || services_.captures.any()) return;
    if (!wanted && busy_drops_ == most_busy_drops) {
      if (given_up_) return;
      return decline({FallbackReason::NotIdle,
                      "The GPU was at work whenever copies were to be freed, so no more are made.",
                      false});
    }
    // Freeing waits for all work of the context, and that may itself wait for what the program does
    // next: then it is tried again at the next visit.
    std::string why;
    if (!wait_until_idle(services_.driver, context_, release_seconds, why)) {
      ++busy_drops_;
      return;
    }
  } catch (const std::exception&) {
    return;  // no memory to note it, or no thread to wait with
  }
  unneeded_.clear();
  busy_drops_ = 0;
  note_own_bytes();
}

void RegionReplay::note_own_bytes() noexcept {
  std::size_t bytes = memory_ == nullptr ? 0 : memory_->costs().device_bytes;
  for (const auto& one : unneeded_) bytes += one->costs().device_bytes;
  const auto difference = static_cast<std::ptrdiff_t>(bytes - own_bytes_);
  services_.allocations.add_own_bytes(device_, difference);
  own_bytes_ = bytes;
}

void RegionReplay::forget_context(CUcontext context) noexcept {
  if (context != context_ || (memory_ == nullptr && unneeded_.empty())) return;
  services_.recorder.obstruct(FallbackReason::ReplayAllocation, "It destroys a context.", true);
  drop_memory(true);
  if (services_.recorder.busy()) return;  // by another thread, whose context the program destroys
  const std::lock_guard lock(memory_mutex_);
  // What could not be freed goes with the context; its addresses will be other memory's.
  (void)memory_.release();
  for (auto& one : unneeded_) (void)one.release();
  unneeded_.clear();
  note_own_bytes();
}

gpu::BlockStore::Limits RegionReplay::copy_limits() const {
  if (budget_bytes_ > 0) {
    const auto budget = static_cast<std::size_t>(budget_bytes_);
    return {budget, budget};
  }
  // While the region runs the program may want memory, too.
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (services_.driver.cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS) free_bytes = 0;
  return {free_bytes / 2, available_host_bytes() / 4};
}

std::vector<gpu::MemoryRange> RegionReplay::footprint() {
  const AllocationMap& allocations = services_.allocations;
  if (const char* why = allocations.incomplete()) {
    decline_for(FallbackReason::UnknownMemory, why);
  }
  if (allocations.has_surface_arrays()) decline_for(FallbackReason::ArrayMemory, {});
  std::vector<gpu::MemoryRange> ranges;
  int device = -1;
  for (const Allocation& one : allocations.all()) {
    if (one.kind == AllocationKind::Host) continue;
    if (one.kind == AllocationKind::Managed) decline_for(FallbackReason::ManagedMemory, {});
    if (one.kind == AllocationKind::Imported || one.exported) {
      decline_for(FallbackReason::SharedMemory, {});
    }
    // What its own device may not write cannot be read either.
    if (!one.accessible) continue;
    if (one.context != nullptr && one.context != context_) {
      decline_for(FallbackReason::SeveralDevices, "The program has memory in several contexts.");
    }
    if (device >= 0 && one.device != device) decline_for(FallbackReason::SeveralDevices, {});
    device = one.device;
    ranges.push_back({one.begin, one.bytes});
  }
  if (services_.contexts.has_other(context_, device_)) {
    decline_for(FallbackReason::SeveralDevices, "The program has several contexts on the device.");
  }
  return ranges;
}

void RegionReplay::find_context() {
  const gpu::Driver& driver = services_.driver;
  if (driver.cuCtxGetCurrent(&context_) != CUDA_SUCCESS || context_ == nullptr) {
    decline_for(FallbackReason::UnknownMemory, "No context is current where the region begins.",
                true);
  }
  device_ = gpu::current_device(driver).value_or(-1);
  wait_at_begin();
}

void RegionReplay::wait_at_begin() {
  if (services_.captures.any()) decline_for(FallbackReason::Capture, {}, true);
  std::string why;
  if (!wait_until_idle(services_.driver, context_, idle_seconds, why)) {
    decline_for(FallbackReason::NotIdle, "When the region began, " + why + ".");
  }
}

void RegionReplay::note_variables() {
  for (const auto& [owner, use] : services_.variables.of_used()) {
    if (!use->unknown.empty()) {
      decline_for(FallbackReason::UnknownMemory,
                  "A module whose kernels the program has: " + use->unknown + ".");
    }
    for (const gpu::VariableRange& variable : use->variables) {
      if (variable.kind == gpu::VariableKind::Constant) continue;
      Allocation allocation;
      allocation.begin = variable.address;
      allocation.bytes = variable.bytes;
      allocation.kind = variable.kind == gpu::VariableKind::Managed ? AllocationKind::Managed
                                                                    : AllocationKind::Global;
      allocation.device = device_;
      allocation.context = context_;
      services_.allocations.add_variable(allocation, owner);
    }
  }
}

void RegionReplay::prepare() {
  auto ranges = footprint();
  wait_at_begin();  // other threads may have gone on
  host_.emplace();
  if (!host_->begin(services_.allocations.all())) {
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
    // What is known already may have been written to since the region began.
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

void RegionReplay::end_visit() noexcept {
  recording_ = false;
  services_.gate.close();
  wait_for_others();
  Recording recording = services_.recorder.end();
  try {
    carry_out(std::move(recording));
  } catch (const Declined& declined) {
    decline(declined.obstacle);
  } catch (const MixedMemory& error) {
    stop_process(error.what());
  } catch (const StuckReplay& error) {
    stop_process(error.what());
  } catch (const std::exception& error) {
    decline({FallbackReason::ReplayFailed, error.what(), false});
  }
  drop_memory();
  services_.gate.open();
  finish_visit();
  search_.occupied(0, {});  // what other ranks were to wait for is over
}

void RegionReplay::wait_for_others() noexcept {
  if (!services_.recorder.active()) return;
  try {
    // Those that wait for work of the region come back when it is done.
    std::string why;
    if (services_.captures.any())
      return services_.recorder.obstruct(FallbackReason::Capture, {}, true);
    if (!wait_until_idle(services_.driver, context_, idle_seconds, why)) {
      return services_.recorder.obstruct(FallbackReason::NotIdle,
                                         "When the region ended, " + why + ".");
    }
    // What another thread has begun and the GPU not yet, we would write over.
    if (services_.gate.others_left(leave_seconds) ||
        !services_.measurement.program_has_other_threads()) {
      return;
    }
    services_.recorder.obstruct(FallbackReason::OtherThread,
                                "Another thread may be inside a call of the driver.", true);
  } catch (const std::exception& error) {
    services_.recorder.obstruct(FallbackReason::ReplayFailed, error.what());
  }
}

void RegionReplay::carry_out(Recording recording) {
  if (recording.obstacle) throw Declined{*recording.obstacle};
  if (services_.captures.any()) decline_for(FallbackReason::Capture, {}, true);
  if (recording.operations.empty()) return;
  const double begin = now_seconds();
  std::string why;
  if (!wait_until_idle(services_.driver, context_, idle_seconds, why)) {
    decline_for(FallbackReason::NotIdle, "When the region ended, " + why + ".");
  }
  if (host_->keep_unexplained(recording) && services_.measurement.program_has_other_threads()) {
    decline_for(FallbackReason::HostMemory,
                "Host memory within the GPU's reach changed in the region, and no copy did that.");
  }
  try {
    if (!memory_->finish()) learn();
  } catch (const gpu::NoRoom& error) {
    decline_for(FallbackReason::ReplayMemory, error.what());
  }
  Replayer replayer(region_, services_, search_, table_, context_, std::move(recording), tolerance_,
                    step_seconds);
  std::exception_ptr failure;
  try {
    tune(replayer);
  } catch (const MixedMemory&) {
    throw;
  } catch (const StuckReplay&) {
    throw;
  } catch (...) {
    failure = std::current_exception();
  }
  // What a pass had issued before it failed may still be under way, and would write over what is
  // put back.
  if (failure && !wait_until_idle(services_.driver, context_, idle_seconds, why)) {
    throw StuckReplay(why);
  }
  memory_->restore_final();
  if (failure) std::rethrow_exception(failure);
  given_up_ = visits_ >= most_visits && !search_.finished();
  write_line(replayer, now_seconds() - begin);
}

void RegionReplay::learn() {
  for (const gpu::MemoryRange& block : memory_->dirty()) {
    const auto allocation = services_.allocations.find(block.begin);
    const gpu::MemoryRange whole =
        allocation ? gpu::MemoryRange{allocation->begin, allocation->bytes} : block;
    if (std::find(learned_.begin(), learned_.end(), whole) == learned_.end()) {
      learned_.push_back(whole);
    }
  }
  decline_for(
      FallbackReason::ReplayMemory,
      "Not all memory can be copied; this visit told what has to be, and the next is tried.", true);
}

void RegionReplay::decline(const Recording::Obstacle& obstacle) noexcept {
  given_up_ = given_up_ || !obstacle.retry || visits_ >= most_visits;
  services_.log.fallback(obstacle.reason, region_.name(), {}, obstacle.text);
}

void RegionReplay::stop_process(const std::string& why) noexcept {
  const std::string text = "contextune: the replay of region '" + region_.name() +
                           "' failed and the program's memory cannot be put back: " + why +
                           "; the program is stopped here, since its results would be wrong. Run "
                           "it with --mode live.\n";
  services_.log.fault(text);
  (void)!write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

void RegionReplay::write_line(const Replayer& replayer, double seconds) noexcept {
  const ReplayMemory::Costs& costs = memory_->costs();
  log::ReplayEvent event;
  event.region = region_.name();
  event.visit = visits_;
  event.operations = replayer.num_operations();
  event.replays = replays_;
  event.seconds = seconds;
  event.footprint_bytes = costs.footprint_bytes;
  event.dirty_bytes = costs.dirty_bytes;
  event.device_bytes = costs.device_bytes;
  event.host_bytes = costs.host_bytes;
  event.hash_seconds = costs.hash_seconds;
  event.save_seconds = costs.save_seconds;
  event.restore_seconds = costs.restore_seconds;
  event.simulated = services_.log.simulated();
  log::write_replay(services_.log.lines(), event);
}

}  // namespace contextune::intercept
