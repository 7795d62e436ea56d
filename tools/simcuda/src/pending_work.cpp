#include "pending_work.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "driver.hpp"
#include "host_functions.hpp"

namespace simcuda {

namespace {

// More than a program leaves open between two waits; past it the host is held up.
constexpr std::size_t most_tasks = 4096;
constexpr auto overdue = std::chrono::milliseconds(20);
// A value in memory, or another process, tells nobody when it is there.
constexpr auto between_looks = std::chrono::microseconds(50);

}  // namespace

void PendingWork::set_order(std::optional<std::uint64_t> seed) {
  deferred_ = seed.has_value();
  if (!deferred_) return;
  random_.seed(*seed);
  // A seed is a style too: some devices start at once, others late; some run their streams in
  // turns, others one stream as long as it has work. Each kind of missing edge shows with some
  // style.
  constexpr std::array eagerness{0.0, 0.0, 0.125, 0.5};
  constexpr std::array switching{1.0 / 32, 0.25, 1.0};
  eagerness_ = eagerness[random_() % eagerness.size()];
  switching_ = switching[random_() % switching.size()];
}

bool PendingWork::chance(double probability) {
  return std::uniform_real_distribution<>(0, 1)(random_) < probability;
}

void PendingWork::submit(const TaskPtr& task, const std::vector<TaskPtr>& after) {
  task->sequence = next_sequence_++;
  task->submitted = std::chrono::steady_clock::now();
  for (const TaskPtr& before : after) {
    if (before == nullptr || before->done) continue;
    before->followers.push_back(task);
    ++task->waits_for;
  }
  tasks_.emplace(task->sequence, task);
  if (task->waits_for == 0) make_ready(task, {});
  if (!overdue_thread_started_) {
    overdue_thread_started_ = true;
    start_driver_thread("cuda-sim-work", [this] { run_overdue(); });
  }
  if (tasks_.size() == 1) arrived_.notify_one();
  if (!deferred_)
    while (run_one()) {
    }
  while (chance(eagerness_) && run_one()) {
  }
  while (tasks_.size() > most_tasks && run_one()) {
  }
}

void PendingWork::make_ready(const TaskPtr& task, std::optional<std::uint64_t> inherited) {
  // Without a seed the oldest goes first.
  task->priority = !deferred_ ? ~task->sequence : inherited.value_or(random_());
  ready_.push_back(task);
}

bool PendingWork::run_one() {
  if (ready_.empty()) return false;
  if (deferred_ && chance(switching_))
    for (const TaskPtr& task : ready_) task->priority = random_();
  auto best = ready_.end();
  for (auto at = ready_.begin(); at != ready_.end(); ++at) {
    if (best != ready_.end() && (*at)->priority <= (*best)->priority) continue;
    if ((*at)->may_run == nullptr || (*at)->context->error != CUDA_SUCCESS || (*at)->may_run())
      best = at;
  }
  if (best == ready_.end()) return false;
  const TaskPtr task = *best;
  ready_.erase(best);
  const bool alive = task->context->error == CUDA_SUCCESS;
  if (alive && task->host_function != nullptr) {
    start_host_function(task);
    return true;
  }
  if (alive && task->effect != nullptr) task->effect();
  complete(task);
  return true;
}

void PendingWork::complete(const TaskPtr& task) {
  if (task->done) return;  // dropped with its context
  task->done = true;
  task->effect = nullptr;  // with what it holds
  task->may_run = nullptr;
  tasks_.erase(task->sequence);
  // The first to follow goes on where this one stopped, as the next operation of a stream does.
  std::optional<std::uint64_t> inherited = task->priority;
  for (const TaskPtr& follower : task->followers)
    if (--follower->waits_for == 0) make_ready(follower, std::exchange(inherited, std::nullopt));
  task->followers.clear();
}

void PendingWork::start_host_function(const TaskPtr& task) {
  ++host_functions_running_;
  HostFunctionThread::instance().enqueue(task->host_function, task->host_data, [this, task] {
    const DriverLock lock(driver().mutex);
    --host_functions_running_;
    complete(task);
    if (!deferred_)
      while (run_one()) {
      }
    changed_.notify_all();
  });
}

void PendingWork::finish(const std::vector<TaskPtr>& tasks, std::unique_lock<std::mutex>& lock) {
  // In the order in which they were submitted: the last one of a stream says it for all.
  for (const TaskPtr& task : tasks)
    while (!try_finish(task)) changed_.wait_for(lock, between_looks);
}

void PendingWork::finish_all(const Context* context, std::unique_lock<std::mutex>& lock) {
  finish(of(context), lock);
}

bool PendingWork::try_finish(const TaskPtr& task) {
  while (task != nullptr && !task->done)
    if (!run_one()) return false;
  return true;
}

void PendingWork::advance() {
  if (deferred_)
    while (chance(0.5) && run_one()) {
    }
}

void PendingWork::abandon(const Context* context, std::unique_lock<std::mutex>& lock) {
  for (const TaskPtr& task : of(context))
    while (!try_finish(task) && host_functions_running_ > 0)
      changed_.wait_for(lock, std::chrono::milliseconds(1));
  for (const TaskPtr& task : of(context)) {
    std::erase(ready_, task);
    complete(task);
    // What followed in the same context is dropped in its turn.
  }
}

std::vector<TaskPtr> PendingWork::of(const Context* context) const {
  std::vector<TaskPtr> found;
  for (const auto& [sequence, task] : tasks_)
    if (context == nullptr || task->context == context) found.push_back(task);
  return found;
}

void PendingWork::run_overdue() {
  DriverLock lock(driver().mutex);
  for (;;) {
    arrived_.wait(lock, [this] { return !tasks_.empty(); });
    const auto age = std::chrono::steady_clock::now() - tasks_.begin()->second->submitted;
    if (age > overdue && run_one()) {
      // Others may want the lock between two tasks.
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      continue;
    }
    changed_.notify_all();
    arrived_.wait_for(lock, std::chrono::milliseconds(2));
  }
}

}  // namespace simcuda
