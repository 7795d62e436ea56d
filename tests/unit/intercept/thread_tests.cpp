#include <signal.h>

#include <barrier>
#include <functional>
#include <thread>

#include "fixture.hpp"
#include "intercept/program/idle_wait.hpp"

using namespace contextune;

namespace {

void use_context() {
  Simulation::get().driver.cuCtxSetCurrent(Simulation::get().context);
}

}  // namespace

TEST_CASE("Two threads in two regions are tuned side by side", "[thread]") {
  Program program(Program::quick(&Options::region, "nvtx:left;nvtx:right"));
  program.runtime().declare(blocks({64, 256, 512}));
  std::vector<Adder> adders;
  adders.emplace_back(1000);
  adders.emplace_back(1000);
  std::vector<std::thread> threads;
  int steps[2] = {0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      use_context();
      const char* name = i == 0 ? "left" : "right";
      while (steps[i] < 40 ||
             (steps[i] < 20000 && !program.runtime().region(name, {}).finished())) {
        ++steps[i];
        program.push(name);
        adders[i].run(program);
        program.pop();
        Simulation::get().driver.cuCtxSynchronize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(program.said("winner", {"region=left"}));
  CHECK(program.said("winner", {"region=right"}));
  adders[0].holds(static_cast<float>(steps[0]));
  adders[1].holds(static_cast<float>(steps[1]));
  CHECK(program.armed == 0);
}

TEST_CASE("A second thread in a region at the same time is not measured", "[thread]") {
  Program program;
  program.runtime().declare(blocks({64}));
  Adder first(1000);
  Adder second(1000);
  std::barrier both(2);
  std::thread other([&] {
    use_context();
    both.arrive_and_wait();  // the first one is in
    program.push("step");
    for (int i = 0; i < 3; ++i) second.run(program);
    program.pop();
    both.arrive_and_wait();
  });
  program.push("step");
  first.run(program);
  both.arrive_and_wait();
  both.arrive_and_wait();
  program.pop();
  other.join();
  program.synchronise();
  program.steps(3, [&] { first.run(program); });
  CHECK(program.said("trial", {"pass=0", "launches=1"}));
  CHECK_FALSE(program.said("trial", {"launches=4"}));
  first.holds(4);
  second.holds(3);
}

TEST_CASE("A helper thread's launches belong to the only open region", "[thread]") {
  Program program;
  program.runtime().declare(blocks({64, 256}));
  Adder adder(1000);
  program.steps(6, [&] {
    std::thread([&] {
      use_context();
      adder.run(program);
    }).join();
  });
  CHECK(program.said("winner", {"region=step", "site=add "}));
  adder.holds(6);
}

TEST_CASE("With several regions open a stranger's launch belongs to none, said once", "[thread]") {
  Program program(Program::quick(&Options::region, "nvtx:a;nvtx:b"));
  program.runtime().declare(blocks({64}));
  Adder adder(1000);
  program.push("a");
  program.push("b");
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      use_context();
      adder.run(program);
    }).join();
  }
  program.pop();
  program.pop();
  CHECK(program.lines("fallback").size() == 1);
  CHECK(program.said("fallback", {"reason=no_open_region"}));
  program.end();
  CHECK(program.said("summary", {"launches_outside=3"}));
  adder.holds(3);
}

TEST_CASE("Many threads in one region keep every launch", "[thread]") {
  const bool process = GENERATE(false, true);
  Program program(Program::quick(&Options::region, process ? "process" : "nvtx:step"));
  program.runtime().declare(blocks({32, 64, 256, 512}));
  std::vector<Adder> adders;
  for (int i = 0; i < 4; ++i) adders.emplace_back(200);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < adders.size(); ++i) {
    threads.emplace_back([&, i] {
      use_context();
      for (int step = 0; step < 60; ++step) {
        program.push("step");
        adders[i].run(program, static_cast<unsigned>(step % 5 + 1));
        program.pop();
        if (step % 7 == 0) Simulation::get().driver.cuCtxSynchronize();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  program.synchronise();
  for (const Adder& adder : adders) adder.holds(60);
}

namespace {

/// Launches until a region's search is over, or far more often than that takes.
void go_on(Program& program, const std::string& region, const std::function<void()>& entry) {
  for (int i = 0; i < 1000 && !program.said("winner", {"region=" + region}); ++i) {
    entry();
    program.synchronise();
  }
}

void on_two_threads(const std::function<void(int)>& work) {
  std::barrier both(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      use_context();
      both.arrive_and_wait();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("A kernel that two threads launch goes on to begin entries", "[thread]") {
  Program program(Program::quick(&Options::region, "kernel:^other$"));
  program.runtime().declare(blocks({64, 256}));
  const CUfunction other = Simulation::get().function(Simulation::get().module, "_Z5otherv");
  // Of a kernel without configs: there is nothing to be tuned yet.
  std::vector<Adder> adders;
  for (int i = 0; i < 2; ++i) adders.emplace_back(8, "_Z8add_twinifPf");
  on_two_threads([&](int which) {
    for (int i = 0; i < 10'000; ++i) {
      program.launch(other, 1, 32, {});
      adders[static_cast<std::size_t>(which)].run(program);
    }
  });
  Adder adder(1000);
  int steps = 0;
  go_on(program, "kernel:^other$", [&] {
    program.launch(other, 1, 32, {});
    adder.run(program);
    ++steps;
  });
  CHECK(program.said("winner", {"region=kernel:^other$"}));
  adder.holds(static_cast<float>(steps));
  for (const Adder& one : adders) one.holds(10'000);
}

TEST_CASE("Ranges that threads start and end side by side leave the region free", "[thread]") {
  Program program;
  program.runtime().declare(blocks({64, 256, 512}));
  on_two_threads([&](int which) {
    for (int i = 0; i < 50'000; ++i) {
      const auto id = static_cast<std::uint64_t>(2 * i + which + 1);
      program.process().regions().range(contextune_range_start, "", "step", id);
      program.process().regions().range(contextune_range_end, "", nullptr, id);
    }
  });
  CHECK(program.armed == 0);
  Adder adder(1000);
  int steps = 0;
  go_on(program, "step", [&] {
    program.push("step");
    adder.run(program);
    program.pop();
    ++steps;
  });
  CHECK(program.said("winner", {"region=step"}));
  adder.holds(static_cast<float>(steps));
}

TEST_CASE("The thread that waits for the GPU runs no signal handler of the program", "[thread]") {
  static gpu::Driver driver = Simulation::get().driver;
  static sigset_t blocked;
  sigemptyset(&blocked);
  driver.cuCtxSynchronize = [] {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    return CUDA_SUCCESS;
  };
  sigset_t before;
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::string why;
  REQUIRE(intercept::wait_until_idle(driver, Simulation::get().context, 10, why));
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGUSR1, SIGTERM, SIGCHLD, SIGALRM, SIGPROF}) {
    CHECK(sigismember(&blocked, signal) == 1);
    CHECK(sigismember(&after, signal) == sigismember(&before, signal));
  }
}
