#include "intercept/trial_watch.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "intercept/thread_census.hpp"

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

bool TrialWatch::watch(const void* owner, double seconds, Look look) {
  const std::lock_guard lock(mutex_);
  if (!running_ && !start_thread()) return false;
  watched_[owner] = {Clock::now() + duration_of(seconds), std::move(look)};
  changed_.notify_all();
  return true;
}

void TrialWatch::forget(const void* owner) noexcept {
  std::unique_lock lock(mutex_);
  watched_.erase(owner);
  changed_.wait(lock, [&] { return looking_ != owner; });
  watched_.erase(owner);
}

bool TrialWatch::start_thread() {
  // The program's signal handlers must not run on a thread that it does not know.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { work(); }).detach();
    running_ = true;
  } catch (const std::exception&) {
    // Nobody looks, then.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return running_;
}

void TrialWatch::work() noexcept {
  name_this_thread("contextune-trial");
  std::unique_lock lock(mutex_);
  while (!watched_.empty()) {
    const auto first =
        std::min_element(watched_.begin(), watched_.end(),
                         [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
    if (const auto due = first->second.due; Clock::now() < due) {
      (void)changed_.wait_until(lock, due);
      continue;
    }
    looking_ = first->first;
    Look look = std::move(first->second.look);
    watched_.erase(first);
    lock.unlock();
    const double again = look();
    lock.lock();
    // Whoever has asked anew meanwhile is to be called as it said then.
    if (again > 0) watched_.try_emplace(looking_, Clock::now() + duration_of(again), look);
    looking_ = nullptr;
    changed_.notify_all();
  }
  running_ = false;
}

}  // namespace contextune::intercept
