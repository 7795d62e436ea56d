#include "intercept/site/launch_region.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/program/capture_watch.hpp"
#include "log/events.hpp"

namespace contextune::intercept {

namespace {

pid_t thread_id() noexcept {
  thread_local pid_t id = 0;
  if (id == 0) id = static_cast<pid_t>(syscall(SYS_gettid));
  return id;
}

}  // namespace

Launch LaunchRegion::launch_of(const contextune_launch& call) const noexcept {
  Launch launch(call);
  if (services_.several_devices) (void)services_.driver.cuCtxGetCurrent(&launch.context);
  return launch;
}

bool LaunchRegion::is_capturing(const Launch& launch) const noexcept {
  // The driver is asked only while a capture is under way somewhere.
  return services_.captures.possible() && services_.captures.is_capturing(launch.stream);
}

bool LaunchRegion::claim_entry(bool thread_bound) noexcept {
  const pid_t own = thread_bound ? thread_id() : -1;
  pid_t holder = 0;
  if (occupied_by_.compare_exchange_strong(holder, own)) return true;
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  if (holder == own || holder == -1 || syscall(SYS_tgkill, getpid(), holder, 0) == 0 ||
      errno != ESRCH) {
    return false;
  }
  if (!occupied_by_.compare_exchange_strong(holder, own)) return false;
  abandoned();
  unshow();
  return true;
}

void LaunchRegion::show() noexcept {
  if (takes_launches_) return services_.open.add(this);
  services_.open.want_launches(true);
}

void LaunchRegion::unshow() noexcept {
  if (takes_launches_) return services_.open.remove(this);
  services_.open.want_launches(false);
}

void LaunchRegion::say_first_entry() noexcept {
  if (said_.load(std::memory_order_relaxed) || said_.exchange(true)) return;
  const Uncancelled uncancelled;
  log::write_region(services_.log.lines(), name_, thread_id());
}

void LaunchRegion::begin_on_thread(std::uint64_t mark, bool counts_already) noexcept {
  ThreadState& thread = this_thread();
  EntryFrame frame{mark, this, counts_already, thread.is_in(this)};
  if (frame.inner) {
    const Uncancelled uncancelled;
    if (mark != api_mark) services_.log.fallback(FallbackReason::NestedRegion, name_, {}, {});
    (void)thread.open(frame);
    return;
  }
  const bool counts = counts_already || claim_entry();
  frame.counts = counts;
  if (!thread.open(frame)) {
    if (counts) release_entry();
    return;
  }
  say_first_entry();
  show();
  if (!counts || counts_already || services_.stopped.load(std::memory_order_acquire)) return;
  if (pass_entry()) return;
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  entered(true);
}

void LaunchRegion::end_on_thread(std::uint64_t mark) noexcept {
  const EntryFrame frame = this_thread().close(mark, this);
  if (frame.region == this) ended(frame);
}

void LaunchRegion::ended(const EntryFrame& frame) noexcept {
  if (frame.inner) return;
  if (frame.counts) was_left_.store(true, std::memory_order_relaxed);
  // While it is repeated, launches of other threads have to be seen.
  if (frame.counts && !services_.stopped.load(std::memory_order_acquire)) left();
  unshow();
  if (frame.counts) release_entry();
}

void LaunchRegion::begin_in_process() noexcept {
  const Uncancelled uncancelled;
  {
    const std::lock_guard lock(process_mutex_);
    if (process_entries_.fetch_add(1) != 0) return;
    process_entry_counts_ = !process_entry_begins_;
    if (process_entry_counts_) process_entry_begins_ = true;
    if (!process_entry_counts_) return show();
  }
  begin_process_entry();
}

void LaunchRegion::end_in_process() noexcept {
  const Uncancelled uncancelled;
  bool counts = false;
  {
    const std::lock_guard lock(process_mutex_);
    if (process_entries_.load() == 0) return;  // an end without a begin
    if (process_entries_.fetch_sub(1) != 1) return;
    counts = std::exchange(process_entry_counts_, false);
    if (counts && process_entry_begins_) {
      process_entry_is_over_ = true;
      return;
    }
  }
  end_process_entry(counts);
}

void LaunchRegion::begin_next_in_process() noexcept {
  const Uncancelled uncancelled;
  bool open = false;
  bool counts = false;
  {
    const std::lock_guard lock(process_mutex_);
    open = process_entries_.exchange(1) != 0;
    counts = std::exchange(process_entry_counts_, false);
    if (process_entry_begins_) {
      // An entry that ends here is closed by its thread; nothing of the next is measured.
      if (counts) process_entry_is_over_ = true;
      if (counts || !open) show();
      return;
    }
    process_entry_counts_ = process_entry_begins_ = true;
  }
  if (open) end_process_entry(counts);
  begin_process_entry();
}

void LaunchRegion::begin_process_entry() noexcept {
  {
    const std::lock_guard lock(process_mutex_);
    if (std::exchange(process_entry_is_over_, false)) {
      process_entry_begins_ = false;
      return;
    }
  }
  say_first_entry();
  show();
  const bool claimed = claim_entry(false);
  if (claimed && !services_.stopped.load(std::memory_order_acquire)) entered(false);
  bool is_over = false;
  {
    const std::lock_guard lock(process_mutex_);
    process_entry_begins_ = false;
    is_over = std::exchange(process_entry_is_over_, false);
    if (!is_over) process_entry_counts_ = claimed;
  }
  if (is_over) end_process_entry(claimed);
}

void LaunchRegion::end_process_entry(bool counts) noexcept {
  if (counts) was_left_.store(true, std::memory_order_relaxed);
  if (counts && !services_.stopped.load(std::memory_order_acquire)) left();
  unshow();
  if (counts) release_entry();
}

}  // namespace contextune::intercept
