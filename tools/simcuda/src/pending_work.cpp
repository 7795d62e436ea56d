#include "pending_work.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <thread>

#include "driver.hpp"
#include "host_functions.hpp"

namespace simcuda {

namespace {

// More than a program leaves open between two waits; past it the host is held up.
constexpr std::size_t most_tasks = 4096;
// More than a device begins before the first of them has ended.
constexpr std::size_t most_held = 256;
constexpr auto overdue = std::chrono::milliseconds(20);

// A value in memory, or another process, tells nobody when it is there, so whoever waits looks:
// first often, then each time the wait has grown by an eighth. Many processes that wait for one
// another have few processors, and those that are not there yet need them. When 64 looked every 50
// us on two processors, Linux 6.18 kept one that could run from running for 9 s and more.
constexpr std::chrono::nanoseconds shortest_nap = std::chrono::microseconds(50);
constexpr std::chrono::nanoseconds shortest_overdue_nap = std::chrono::milliseconds(2);
constexpr std::chrono::nanoseconds longest_nap = std::chrono::milliseconds(10);

std::chrono::nanoseconds nap_after(std::chrono::nanoseconds waited,
                                   std::chrono::nanoseconds shortest) {
  return std::clamp(waited / 8, shortest, longest_nap);
}

// How long a thread was on a processor; 0 when it has ended.
double busy_seconds(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A program that has done nothing since, because others had the processor, is not kept waiting: it
// is about to make its next call. One that looks at memory is busy, or asleep for long.
bool held_for_long(const Task& task) {
  if (std::chrono::steady_clock::now() - task.submitted > std::chrono::seconds(1)) return true;
  const std::chrono::duration<double> limit = overdue;
  return busy_seconds(task.submitter) - task.submitter_busy > limit.count();
}

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
  if (!deferred_ && !holding_) {
    if (task->hold == Task::Hold::no || held_.size() >= most_held)
      release();
    else if (task->hold == Task::Hold::anew)
      release(task->stream);
  }
  task->held = task->newest_first = !deferred_ && (holding_ || task->hold != Task::Hold::no);
  if (task->held) {
    held_.push_back(task);
    if (pthread_getcpuclockid(pthread_self(), &task->submitter) == 0)
      task->submitter_busy = busy_seconds(task->submitter);
  }
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
  if (overdue_thread_idle_) arrived_.notify_one();
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
  if (deferred_)
    task->priority = inherited.value_or(random_());
  else
    task->priority = task->newest_first ? task->sequence : ~task->sequence;
  ready_.push_back(task);
}

bool PendingWork::run_one() {
  if (ready_.empty()) return false;
  if (deferred_ && chance(switching_))
    for (const TaskPtr& task : ready_) task->priority = random_();
  auto best = ready_.end();
  for (auto at = ready_.begin(); at != ready_.end(); ++at) {
    if ((*at)->held) continue;
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
  if (task->awaited) changed_.notify_all();
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

void PendingWork::hold() {
  release();
  holding_ = !deferred_;
}

void PendingWork::release(const Stream* only) {
  holding_ = false;
  if (held_.empty()) return;
  std::erase_if(held_, [&](const TaskPtr& task) {
    task->held = only != nullptr && task->stream != only;
    return !task->held;
  });
  while (run_one()) {
  }
}

void PendingWork::finish(const std::vector<TaskPtr>& tasks, std::unique_lock<std::mutex>& lock) {
  release();
  const auto begin = std::chrono::steady_clock::now();
  // In the order in which they were submitted: the last one of a stream says it for all.
  for (const TaskPtr& task : tasks) {
    while (!try_finish(task)) {
      task->awaited = true;
      changed_.wait_for(lock, nap_after(std::chrono::steady_clock::now() - begin, shortest_nap));
    }
  }
}

void PendingWork::finish_all(const Context* context, std::unique_lock<std::mutex>& lock) {
  finish(of(context), lock);
}

bool PendingWork::try_finish(const TaskPtr& task) {
  release();
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
    overdue_thread_idle_ = true;
    arrived_.wait(lock, [this] { return !tasks_.empty(); });
    overdue_thread_idle_ = false;
    if (!held_.empty() && held_for_long(*held_.front())) release();
    if (tasks_.empty()) continue;
    const auto age = std::chrono::steady_clock::now() - tasks_.begin()->second->submitted;
    if (age > overdue && run_one()) {
      // Others may want the lock between two tasks, and to run what came behind this one.
      changed_.notify_all();
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      continue;
    }
    arrived_.wait_for(lock, nap_after(age, shortest_overdue_nap));
  }
}

}  // namespace simcuda
