#include "intercept/regions/discovered_region.hpp"

#include <exception>

#include "gpu/driver/launch_log.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/measuring/measurement.hpp"
#include "intercept/program/argument_words.hpp"
#include "intercept/site/launcher.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

constexpr double seconds_between_lines = 1;

}  // namespace

DiscoveredRegion::DiscoveredRegion(std::string name, const RegionServices& services)
    : LaunchRegion(std::move(name), services),
      table_(this->name(), 0, services.for_sites(), *this),
      search_(services.measurement.add_search()) {
  table_.only_look();
}

CUresult DiscoveredRegion::launch(const contextune_launch& call, bool) noexcept {
  const Launch launch = launch_of(call);
  LaunchTimer* timer = nullptr;
  std::uint64_t tag = 0;
  try {
    entries().say_first();
    const SiteTable::Found found = table_.find(launch);
    if (found.binding != nullptr) tag = count(*found.binding, launch);
    if (tag != 0 && !is_capturing(launch)) {
      if (!wanted_.exchange(true)) (void)services().measurement.want(search_, true);
      timer = services().measurement.timer();
    }
  } catch (const std::exception&) {
    timer = nullptr;  // no memory: not counted
  }
  if (timer != nullptr) timer->launch_begin(tag, launch.stream);
  const CUresult result = services().launcher.as_written(call);
  if (timer == nullptr) return result;
  timer->launch_end(tag, launch.stream);
  if (unread_launches_.fetch_add(1) + 1 < gpu::LaunchLog::capacity / 2) return result;
  unread_launches_ = 0;
  try {
    services().measurement.make_room();
    collect();
  } catch (const std::exception&) {
    // No memory: what is not counted takes what the others did.
  }
  return result;
}

std::uint64_t DiscoveredRegion::count(Binding& binding, const Launch& launch) {
  const std::lock_guard lock(mutex_);
  std::uint16_t slot = binding.slot.load(std::memory_order_relaxed);
  if (slot == 0) {
    if (seen_.size() >= 0xffffU || binding.kernel == nullptr) return 0;
    Seen& seen = seen_.emplace_back();
    seen.kernel = binding.kernel;
    seen.shape = LaunchKey(launch);
    slot = static_cast<std::uint16_t>(seen_.size());
    binding.slot.store(slot, std::memory_order_relaxed);
  }
  ++seen_[slot - 1U].launches;
  changed_ = true;
  return WorkTag{search_, 0, slot}.pack();
}

void DiscoveredRegion::collect() {
  services().measurement.poll(false);
  const std::lock_guard lock(mutex_);
  work_.clear();
  services().measurement.take(search_, work_);
  for (const TimedWork& work : work_) {
    const std::uint16_t slot = WorkTag::unpack(work.tag).slot;
    if (slot == 0 || slot > seen_.size()) continue;
    seen_[slot - 1U].seconds += work.end - work.start;
    ++seen_[slot - 1U].timed;
    changed_ = true;
  }
}

void DiscoveredRegion::left() noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  synchronised();
}

void DiscoveredRegion::synchronised() noexcept {
  if (search_ == 0 || services().stopped.load(std::memory_order_acquire)) return;
  try {
    collect();
    const double now = now_seconds();
    if (now - last_written_ < seconds_between_lines) return;
    last_written_ = now;
    write_kernels(false);
  } catch (const std::exception&) {
    // The sums go on; lines come with the next end.
  }
}

void DiscoveredRegion::write_kernels(bool all) {
  const std::lock_guard lock(mutex_);
  if (!changed_) return;
  changed_ = false;
  for (const Seen& seen : seen_) {
    if (!all && seen.timed == 0) continue;
    log::KernelEvent event;
    event.region = name();
    event.kernel = seen.kernel->identity.name;
    event.key = "grid=" + log::extent_text(seen.shape.grid) +
                " block=" + log::extent_text(seen.shape.block) +
                " shared=" + std::to_string(seen.shape.shared_bytes);
    event.launches = seen.launches;
    // Launches whose records were lost took what the others did.
    if (seen.timed != 0) {
      event.seconds =
          seen.seconds * static_cast<double>(seen.launches) / static_cast<double>(seen.timed);
    }
    event.grid = seen.shape.grid;
    event.block = seen.shape.block;
    event.shared_bytes = seen.shape.shared_bytes;
    event.registers = seen.kernel->identity.registers;
    event.params = argument_words(seen.kernel->parameters, seen.kernel->identity.parameters);
    event.timer = services().measurement.timer_name();
    event.simulated = services().log.simulated();
    log::write_kernel(services().log.lines(), event);
  }
}

void DiscoveredRegion::write_summary() noexcept {
  try {
    write_kernels(true);
  } catch (const std::exception&) {
    // The lines written so far stand.
  }
}

void DiscoveredRegion::stop(FallbackReason reason, const std::string& text) noexcept {
  services().log.fallback(reason, name(), {}, text);
}

}  // namespace contextune::intercept
