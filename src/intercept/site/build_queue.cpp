#include "intercept/site/build_queue.hpp"

#include <chrono>
#include <exception>

#include "gpu/driver/detached_process.hpp"
#include "host/own_thread.hpp"

namespace contextune::intercept {
namespace {

std::vector<std::string> name_of(const LaunchChange& change) {
  std::vector<std::string> name{change.module, change.source, change.function};
  name.insert(name.end(), change.build_options.begin(), change.build_options.end());
  return name;
}

}  // namespace

const BuildQueue::Result* BuildQueue::find_or_start(const LaunchChange& change, CUcontext context) {
  const std::lock_guard lock(mutex_);
  const auto [place, fresh] = results_.try_emplace(name_of(change));
  if (!fresh) return place->second.get();
  if (stopped_) {
    place->second = std::make_unique<Result>(Result{nullptr, "the program is about to end"});
    return place->second.get();
  }
  jobs_.push_back({change, context});
  if (!running_) start_thread();
  changed_.notify_all();
  return place->second.get();
}

void BuildQueue::start_thread() {
  try {
    code_.set_environment(gpu::environment_for_detached());
    host::start_own_thread("contextune-build", [this] { work(); });
    running_ = true;
  } catch (const std::exception& error) {
    for (const Job& job : jobs_) {
      results_[name_of(job.change)] = std::make_unique<Result>(Result{
          nullptr, std::string("no thread could be started for the build: ") + error.what()});
      done_.fetch_add(1, std::memory_order_release);
    }
    jobs_.clear();
  }
}

void BuildQueue::work() noexcept {
  std::unique_lock lock(mutex_);
  while (!jobs_.empty()) {
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    if (stopped_) continue;
    building_ = true;
    lock.unlock();
    Result result = build(job);
    lock.lock();
    building_ = false;
    results_[name_of(job.change)] = std::make_unique<Result>(std::move(result));
    done_.fetch_add(1, std::memory_order_release);
    changed_.notify_all();
  }
  running_ = false;
}

BuildQueue::Result BuildQueue::build(const Job& job) noexcept {
  try {
    const gpu::CurrentContext current(driver_, job.context);
    const gpu::RelaxedCapture relaxed(driver_);
    const LaunchChange& change = job.change;
    if (!change.source.empty()) {
      return {code_.from_source(change.source, change.build_options, change.function), {}};
    }
    return {code_.from_file(change.module, change.function), {}};
  } catch (const std::exception& error) {
    return {nullptr, error.what()};
  } catch (...) {
    return {nullptr, "the build ended with an unknown exception"};
  }
}

bool BuildQueue::wait_idle(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return jobs_.empty() && !building_; });
}

void BuildQueue::stop() noexcept {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

}  // namespace contextune::intercept
