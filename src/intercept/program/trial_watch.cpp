#include "intercept/program/trial_watch.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "host/own_thread.hpp"

namespace contextune::intercept {
namespace {

std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

TrialWatch& TrialWatch::get() {
  static auto* const watch = new TrialWatch;  // its thread ends after it would have gone
  return *watch;
}

bool TrialWatch::watch(const std::shared_ptr<Watched>& one, double seconds) {
  const std::lock_guard lock(mutex_);
  if (!running_ && !start_thread()) return false;
  appointments_[one.get()] = {Clock::now() + duration_of(seconds), one};
  changed_.notify_all();
  return true;
}

void TrialWatch::forget(const Watched& one) {
  const std::lock_guard lock(mutex_);
  appointments_.erase(&one);
}

bool TrialWatch::start_thread() {
  try {
    host::start_own_thread("contextune-trial", [this] { work(); });
    running_ = true;
  } catch (const std::exception&) {
    // Nobody looks, then.
  }
  return running_;
}

void TrialWatch::work() noexcept {
  std::unique_lock lock(mutex_);
  while (!appointments_.empty()) {
    const auto first =
        std::min_element(appointments_.begin(), appointments_.end(),
                         [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
    if (const auto due = first->second.due; Clock::now() < due) {
      (void)changed_.wait_until(lock, due);
      continue;
    }
    auto kept = appointments_.extract(first);
    lock.unlock();
    double again = 0;
    // An object that ends with this look ends here, without the lock.
    if (const auto one = kept.mapped().with.lock()) again = one->look();
    lock.lock();
    // Whoever has asked anew meanwhile is to be called as it said then.
    kept.mapped().due = Clock::now() + duration_of(again);
    if (again > 0 && !kept.mapped().with.expired()) appointments_.insert(std::move(kept));
  }
  running_ = false;
}

}  // namespace contextune::intercept
