// Looks at trials that nobody waits for: what our thread asks of the driver.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>

#include "fixture.hpp"
#include "intercept/program/trial_watch.hpp"

using namespace contextune;

namespace {

/// Calls of the driver by threads that are not the test's.
struct LookCalls {
  static inline std::thread::id of_program;
  static inline std::atomic<int> pushes{0};
  static inline std::atomic<int> waits{0};
  static inline std::counting_semaphore<> popped{0};
  /// Where the program begins a capture while the context is pushed.
  static inline std::atomic<intercept::CaptureWatch*> captures{nullptr};

  static bool is_ours() { return std::this_thread::get_id() != of_program; }
  static CUresult push(CUcontext context) {
    if (is_ours()) {
      ++pushes;
      if (auto* const watch = captures.exchange(nullptr)) watch->begin(nullptr);
    }
    return Simulation::get().driver.cuCtxPushCurrent(context);
  }
  static CUresult pop(CUcontext* context) {
    const CUresult result = Simulation::get().driver.cuCtxPopCurrent(context);
    if (is_ours()) popped.release();
    return result;
  }
  static CUresult synchronise() {
    if (is_ours()) ++waits;
    return Simulation::get().driver.cuCtxSynchronize();
  }
};

/// A program that leaves a trial in flight, and makes no call after it.
struct UnwaitedTrial {
  explicit UnwaitedTrial(const char* region = "nvtx:step") {
    LookCalls::of_program = std::this_thread::get_id();
    LookCalls::pushes = LookCalls::waits = 0;
    Program::replaced["cuCtxPushCurrent_v2"] = reinterpret_cast<void*>(&LookCalls::push);
    Program::replaced["cuCtxPopCurrent_v2"] = reinterpret_cast<void*>(&LookCalls::pop);
    Program::replaced["cuCtxSynchronize"] = reinterpret_cast<void*>(&LookCalls::synchronise);
    Options options = Program::quick();
    options.region = region;
    options.trial_timeout = 0.05;
    program.emplace(options);
    Program::replaced.clear();
    program->runtime().declare(blocks({64, 256, 512}));
  }
  void run() {
    Adder adder(1000);
    program->steps(1, [&] { adder.run(*program); });
    program->push("step");
    adder.run(*program);
    program->pop();
  }

  std::optional<Program> program;
};

/// Says when the watch has come to it.
struct LaterLook final : intercept::TrialWatch::Watched {
  double look() noexcept override {
    looked.release();
    return 0;
  }
  std::binary_semaphore looked{0};
};

constexpr std::chrono::seconds look_patience{20};

}  // namespace

TEST_CASE("A look at trials does not wait for the GPU once the program has begun to capture",
          "[lookout]") {
  UnwaitedTrial trial;
  LookCalls::captures = &trial.program->process().services().captures;
  trial.run();
  REQUIRE(LookCalls::popped.try_acquire_for(look_patience));
  CHECK(LookCalls::pushes == 1);
  CHECK(LookCalls::waits == 0);
}

TEST_CASE("A look at trials asks nothing of a context that has gone", "[lookout]") {
  UnwaitedTrial trial(GENERATE("nvtx:step", "process"));
  trial.run();
  trial.program->process().handles().context_goes_away(Simulation::get().context);
  const auto later = std::make_shared<LaterLook>();
  REQUIRE(intercept::TrialWatch::get().watch(later, 0.3));
  REQUIRE(later->looked.try_acquire_for(look_patience));
  CHECK(LookCalls::pushes == 0);
}
