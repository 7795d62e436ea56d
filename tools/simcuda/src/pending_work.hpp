#pragma once

#include <time.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "cuda_api.hpp"

namespace simcuda {

struct Context;
struct Stream;
struct Task;
using TaskPtr = std::shared_ptr<Task>;

/// A piece of work whose effect on memory may still be to come. Its time was settled when it was
/// submitted; only the effect waits. Guarded by the driver's lock.
struct Task {
  Context* context = nullptr;
  std::function<void()> effect;      // under the driver's lock; null: the task is only an order
  std::function<bool()> may_run;     // null: as soon as everything before it is done
  CUhostFn host_function = nullptr;  // in place of an effect: runs on a thread of its own
  void* host_data = nullptr;
  bool done = false;
  // Without a seed: runs at the call, or is held until release(). One that begins anew releases
  // what its stream held before.
  enum class Hold { no, anew, with_others } hold = Hold::no;
  const Stream* stream = nullptr;  // of one that is held

  std::uint64_t sequence = 0;  // the rest belongs to PendingWork
  std::uint64_t priority = 0;
  std::size_t waits_for = 0;
  bool held = false;
  bool awaited = false;  // a thread sleeps until it is done
  bool newest_first = false;
  std::vector<TaskPtr> followers;
  std::chrono::steady_clock::time_point submitted;
  clockid_t submitter = 0;    // the clock of the thread that submitted it, where it is held,
  double submitter_busy = 0;  // and how long that was on a processor until then
};

/// All tasks that are not done. Without a seed a task runs when it is submitted, as soon as nothing
/// before it waits for a value in memory; those that are held run when somebody waits, or submits
/// work that is not, the newest first as far as their edges allow. With a seed tasks run late, in
/// an order drawn among all that their edges allow: when somebody waits, sometimes after a
/// submission or a query, and, so that a program that only watches memory gets on too, when they
/// are older than 20 ms. Guarded by the driver's lock.
class PendingWork {
 public:
  /// Replaces the seed. Nothing may be pending.
  void set_order(std::optional<std::uint64_t> seed);
  /// True when work has its effect at the call, so that no task is needed.
  [[nodiscard]] bool immediate() const { return !deferred_ && !holding_ && tasks_.empty(); }
  [[nodiscard]] bool deferred() const { return deferred_; }

  /// Adds a task that runs after all of `after`.
  void submit(const TaskPtr& task, const std::vector<TaskPtr>& after);
  /// Without a seed: holds all that is submitted from now on until release().
  void hold();
  /// Runs what is held, of one stream or of all.
  void release(const Stream* only = nullptr);
  /// Runs tasks until all of `tasks` are done. Blocks, with the lock released, behind host
  /// functions and values that the host is to write.
  void finish(const std::vector<TaskPtr>& tasks, std::unique_lock<std::mutex>& lock);
  /// The same for everything that was submitted in a context; null: in any.
  void finish_all(const Context* context, std::unique_lock<std::mutex>& lock);
  /// Runs tasks until `task` is done or nothing can run. Never blocks. A null task is done.
  bool try_finish(const TaskPtr& task);
  /// Runs a few tasks or none, as a device that is busy meanwhile.
  void advance();
  /// Runs what can run of a context that goes away, and drops the rest.
  void abandon(const Context* context, std::unique_lock<std::mutex>& lock);

 private:
  [[nodiscard]] std::vector<TaskPtr> of(const Context* context) const;
  [[nodiscard]] bool chance(double probability);
  void make_ready(const TaskPtr& task, std::optional<std::uint64_t> inherited);
  bool run_one();
  void complete(const TaskPtr& task);
  void start_host_function(const TaskPtr& task);
  void run_overdue();

  bool deferred_ = false;
  bool holding_ = false;
  std::vector<TaskPtr> held_;
  std::mt19937_64 random_;
  double eagerness_ = 0;  // chance that one more task runs after a submission
  double switching_ = 1;  // chance that the next pick has nothing to do with the last one
  std::uint64_t next_sequence_ = 1;
  std::map<std::uint64_t, TaskPtr> tasks_;
  std::vector<TaskPtr> ready_;
  unsigned host_functions_running_ = 0;
  bool overdue_thread_started_ = false;
  bool overdue_thread_idle_ = false;
  std::condition_variable changed_;  // a host function or an awaited task ended
  std::condition_variable arrived_;  // tasks_ is no longer empty
};

}  // namespace simcuda
