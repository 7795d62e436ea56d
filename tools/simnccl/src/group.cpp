#include "group.hpp"

#include <algorithm>
#include <thread>

#include "group_launch.hpp"

namespace simnccl {

namespace {

struct Creation {
  ncclComm* handle;
  std::function<void()> run;
};

struct Group {
  int depth = 0;
  std::vector<LaunchPlan> launches;  // one for each communicator
  std::vector<Creation> creations;
};

thread_local Group current;

LaunchPlan& plan_for(ncclComm& handle) {
  const auto found = std::find_if(current.launches.begin(), current.launches.end(),
                                  [&](const LaunchPlan& plan) { return plan.handle == &handle; });
  if (found != current.launches.end()) return *found;
  current.launches.push_back({&handle, handle.communicator, {}, {}});
  return current.launches.back();
}

// Runs all at the same time, as each may wait for another. The first failure counts.
void run_together(const std::vector<std::function<void()>>& jobs) {
  if (jobs.size() == 1) return jobs.front()();
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        jobs[i]();
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure != nullptr) std::rethrow_exception(failure);
}

std::vector<DecidedPlan> create_and_prepare(const Group& group) {
  std::vector<std::function<void()>> jobs;
  for (const Creation& creation : group.creations) jobs.push_back(creation.run);
  if (!jobs.empty()) run_together(jobs);
  return prepare(group.launches, run_together);
}

void perform(const Group& group) {
  for (const DecidedPlan& decided : create_and_prepare(group)) enqueue(decided);
}

std::vector<ncclComm*> handles_of(const Group& group) {
  std::vector<ncclComm*> handles;
  for (const LaunchPlan& plan : group.launches) handles.push_back(plan.handle);
  for (const Creation& creation : group.creations) handles.push_back(creation.handle);
  return handles;
}

// As long as it lives, an abort by another thread waits before it takes the handles away.
class InUse {
 public:
  explicit InUse(const std::vector<ncclComm*>& handles) : handles_(handles) {
    for (ncclComm* const handle : handles_) ++handle->threads;
  }
  ~InUse() {
    for (ncclComm* const handle : handles_) --handle->threads;
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  std::vector<ncclComm*> handles_;
};

// On a thread: the program asks ncclCommGetAsyncError for the result.
ncclResult_t perform_later(const Group& group) {
  const std::vector<ncclComm*> handles = handles_of(group);
  for (ncclComm* const handle : handles) {
    ++handle->threads;
    handle->state.store(ncclInProgress, std::memory_order_release);
  }
  std::thread([group, handles] {
    const ncclResult_t result = api([&] {
      perform(group);
      return ncclSuccess;
    });
    for (ncclComm* const handle : handles) {
      handle->state.store(result, std::memory_order_release);
      --handle->threads;
    }
  }).detach();
  return ncclInProgress;
}

ncclResult_t added() {
  return current.depth > 0 ? ncclSuccess : (++current.depth, end_group());
}

}  // namespace

void start_group() {
  ++current.depth;
}

ncclResult_t end_group() {
  require(current.depth > 0, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--current.depth > 0) return ncclSuccess;
  const Group group = std::exchange(current, {});
  const auto handles = handles_of(group);
  const bool blocking = std::all_of(handles.begin(), handles.end(),
                                    [](const ncclComm* one) { return one->plan.blocking; });
  if (!blocking) return perform_later(group);
  const InUse in_use(handles);
  perform(group);
  return ncclSuccess;
}

float end_group_simulated() {
  require(current.depth == 1, ncclInvalidUsage, "only an outermost group can be simulated");
  const Group group = std::exchange(current, {});
  const InUse in_use(handles_of(group));
  float microseconds = 0;
  for (const DecidedPlan& decided : create_and_prepare(group))
    for (const DecidedPlan::Bin& bin : decided.bins) microseconds += bin.decision.microseconds;
  return microseconds;
}

void cancel_group() {
  current = {};
}

ncclResult_t add(ncclComm& handle, const Collective& one) {
  plan_for(handle).collectives.push_back(one);
  return added();
}

ncclResult_t add(ncclComm& handle, const Message& one) {
  plan_for(handle).messages.push_back(one);
  return added();
}

ncclResult_t add(ncclComm& handle, std::function<void()> creation) {
  current.creations.push_back({&handle, std::move(creation)});
  return added();
}

}  // namespace simnccl
