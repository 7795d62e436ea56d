#include "intercept/host/thread_census.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <semaphore>
#include <thread>

#include "catch.hpp"
#include "host/own_thread.hpp"
#include "intercept/host/roomy_stack.hpp"
#include "intercept/measuring/measurement.hpp"
#include "intercept/nccl/nccl_threads.hpp"

using namespace contextune::intercept;

namespace {

/// A thread that does something until it is let go.
class Worker {
 public:
  explicit Worker(std::function<void(std::binary_semaphore&)> work)
      : thread_([this, work = std::move(work)] {
          id_ = static_cast<pid_t>(syscall(SYS_gettid));
          work(let_go_);
        }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~Worker() {
    let_go_.release();
    thread_.join();
  }
  [[nodiscard]] pid_t id() const { return id_; }

 private:
  std::binary_semaphore let_go_{0};
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

bool comes_to_wait_outside(pid_t id) {
  for (int i = 0; i < 2000; ++i) {
    if (all_wait_outside_driver({id})) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

contextune_nccl_call call_of(contextune_nccl_fn fn, int num_made, std::uint32_t depth = 0) {
  contextune_nccl_call call{};
  call.fn = fn;
  call.num_made = num_made;
  call.group_depth = depth;
  return call;
}

}  // namespace

TEST_CASE("A thread that waits for something of its own is outside of the driver", "[threads]") {
  const Worker worker([](std::binary_semaphore& let_go) { let_go.acquire(); });
  CHECK(comes_to_wait_outside(worker.id()));
}

TEST_CASE("A thread that runs may be anywhere", "[threads]") {
  const Worker worker([](std::binary_semaphore& let_go) {
    while (!let_go.try_acquire()) {
    }
  });
  for (int i = 0; i < 50; ++i) CHECK_FALSE(all_wait_outside_driver({worker.id()}));
}

TEST_CASE("A thread that waits with an address of the driver on its stack may be inside it",
          "[threads]") {
  void* driver = dlopen(CONTEXTUNE_SIMCUDA, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(driver != nullptr);
  void* const function = dlsym(driver, "cuInit");
  const Worker worker([&](std::binary_semaphore& let_go) {
    void* volatile on_stack = function;
    let_go.acquire();
    (void)on_stack;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(all_wait_outside_driver({worker.id()}));
}

TEST_CASE("Threads that NCCL starts do not count while they wait, those of the program do",
          "[threads]") {
  const std::vector<pid_t> known = thread_ids();
  NcclThreads nccl;
  const auto waits = [](std::binary_semaphore& let_go) { let_go.acquire(); };
  nccl.before(call_of(contextune_fn_ncclCommInitRank, 1));
  const Worker service(waits);
  nccl.after(call_of(contextune_fn_ncclCommInitRank, 1));
  REQUIRE(nccl.ids() == std::vector<pid_t>{service.id()});
  CHECK(comes_to_wait_outside(service.id()));
  CHECK(other_threads_may_call_driver(known));
  std::vector<pid_t> with_service = known;
  with_service.push_back(service.id());
  CHECK_FALSE(other_threads_may_call_driver(with_service));

  nccl.before(call_of(contextune_fn_ncclAllReduce, 0));
  const Worker of_program(waits);
  nccl.after(call_of(contextune_fn_ncclAllReduce, 0));
  CHECK(nccl.ids().size() == 1);
  CHECK(comes_to_wait_outside(of_program.id()));
  CHECK(other_threads_may_call_driver(with_service));
}

TEST_CASE("Threads that NCCL starts where a group ends are its own as well", "[threads]") {
  NcclThreads nccl;
  const auto waits = [](std::binary_semaphore& let_go) { let_go.acquire(); };
  nccl.before(call_of(contextune_fn_ncclCommInitRank, 1, 1));
  nccl.after(call_of(contextune_fn_ncclCommInitRank, 1, 1));
  nccl.before(call_of(contextune_fn_ncclGroupEnd, 0, 1));
  const Worker service(waits);
  nccl.after(call_of(contextune_fn_ncclGroupEnd, 0, 1));
  CHECK(nccl.ids() == std::vector<pid_t>{service.id()});
}

TEST_CASE("Memory is compared beside threads of NCCL, and not beside those of the program",
          "[threads]") {
  char folder[] = "/tmp/contextune-threads-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  {
    contextune::intercept::EventLog log({folder, 1, "", contextune::LogLevel::Info});
    const auto waits = [](std::binary_semaphore& let_go) { let_go.acquire(); };
    std::vector<pid_t> of_nccl = thread_ids();
    Measurement::Timers timers;
    timers.presence.nccl_threads = [&] { return of_nccl; };
    Measurement measurement(contextune::TimerKind::Events, std::move(timers), log);
    const Worker service(waits);
    of_nccl.push_back(service.id());
    CHECK_FALSE(measurement.cupti().program_has_threads_beside_nccl());
    const Worker of_program(waits);
    CHECK(measurement.cupti().program_has_threads_beside_nccl());
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("A thread of contextune with a long name is not taken for the program's", "[threads]") {
  const Worker worker([](std::binary_semaphore& let_go) {
    contextune::host::name_this_thread("contextune-with-a-long-name");
    let_go.acquire();
  });
  REQUIRE(comes_to_wait_outside(worker.id()));
  std::vector<pid_t> others = thread_ids();
  std::erase(others, worker.id());
  CHECK_FALSE(other_threads_may_call_driver(others));
}

TEST_CASE("No thread of contextune is ever taken for the program's, from its start to its end",
          "[threads]") {
  const std::vector<pid_t> program = thread_ids();
  std::atomic<int> taken{0};
  const Worker looker([&](std::binary_semaphore& let_go) {
    while (!let_go.try_acquire()) taken += other_threads_may_call_driver(program) ? 1 : 0;
  });
  std::vector<pid_t> known = program;
  known.push_back(looker.id());
  const auto look = [&] { taken += other_threads_may_call_driver(known) ? 1 : 0; };
  for (int i = 0; i < 200; ++i) {
    contextune::host::start_own_thread("contextune-some", [] {});
    look();
    std::thread joined = contextune::host::own_thread("contextune-join", [] {});
    look();
    joined.join();
    look();
    call_on_roomy_stack([](void*) {}, nullptr);
    look();
  }
  CHECK(taken == 0);
}
