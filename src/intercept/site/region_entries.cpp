#include "intercept/site/region_entries.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/site/launch_region.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

pid_t thread_id() noexcept {
  thread_local pid_t id = 0;
  if (id == 0) id = static_cast<pid_t>(syscall(SYS_gettid));
  return id;
}

}  // namespace

bool RegionEntries::claim(bool thread_bound) noexcept {
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
  observer_.abandoned();
  unshow();
  return true;
}

void RegionEntries::show() noexcept {
  if (takes_launches_) return services_.open.add(&region_);
  services_.open.want_launches(true);
}

void RegionEntries::unshow() noexcept {
  if (takes_launches_) return services_.open.remove(&region_);
  services_.open.want_launches(false);
}

void RegionEntries::say_first() noexcept {
  if (said_.load(std::memory_order_relaxed) || said_.exchange(true)) return;
  const Uncancelled uncancelled;
  log::write_region(services_.log.lines(), region_.name(), thread_id());
}

void RegionEntries::begin_on_thread(std::uint64_t mark, bool counts_already) noexcept {
  ThreadState& thread = this_thread();
  EntryFrame frame{mark, &region_, counts_already, thread.is_in(&region_)};
  if (frame.inner) {
    const Uncancelled uncancelled;
    if (mark != api_mark)
      services_.log.fallback(FallbackReason::NestedRegion, region_.name(), {}, {});
    (void)thread.open(frame);
    return;
  }
  const bool counts = counts_already || claim();
  frame.counts = counts;
  if (!thread.open(frame)) {
    if (counts) release();
    return;
  }
  say_first();
  show();
  if (!counts || counts_already || services_.stopped.load(std::memory_order_acquire)) return;
  if (observer_.pass_entry()) return;
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  observer_.entered(true);
}

void RegionEntries::end_on_thread(std::uint64_t mark) noexcept {
  const EntryFrame frame = this_thread().close(mark, &region_);
  if (frame.region == &region_) ended(frame);
}

void RegionEntries::ended(const EntryFrame& frame) noexcept {
  if (frame.inner) return;
  if (frame.counts) was_left_.store(true, std::memory_order_relaxed);
  // While it is repeated, launches of other threads have to be seen.
  if (frame.counts && !services_.stopped.load(std::memory_order_acquire)) observer_.left();
  unshow();
  if (frame.counts) release();
}

void RegionEntries::begin_in_process() noexcept {
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

void RegionEntries::end_in_process() noexcept {
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

void RegionEntries::begin_next_in_process() noexcept {
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

void RegionEntries::begin_process_entry() noexcept {
  {
    const std::lock_guard lock(process_mutex_);
    if (std::exchange(process_entry_is_over_, false)) {
      process_entry_begins_ = false;
      return;
    }
  }
  say_first();
  show();
  const bool claimed = claim(false);
  if (claimed && !services_.stopped.load(std::memory_order_acquire)) observer_.entered(false);
  bool is_over = false;
  {
    const std::lock_guard lock(process_mutex_);
    process_entry_begins_ = false;
    is_over = std::exchange(process_entry_is_over_, false);
    if (!is_over) process_entry_counts_ = claimed;
  }
  if (is_over) end_process_entry(claimed);
}

void RegionEntries::end_process_entry(bool counts) noexcept {
  if (counts) was_left_.store(true, std::memory_order_relaxed);
  if (counts && !services_.stopped.load(std::memory_order_acquire)) observer_.left();
  unshow();
  if (counts) release();
}

}  // namespace contextune::intercept
