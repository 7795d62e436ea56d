// Config spaces that depend on the device, and call the function or wait for others that do.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::autotune;
using contextune::Config;
using contextune::ConfigSpace;

namespace {

using namespace std::chrono_literals;

/// Runs it on a thread of its own. One that never ends keeps what it refers to.
template <class Work>
bool ends_in_time(Work work) {
  auto kept = std::make_shared<std::packaged_task<void()>>(std::move(work));
  std::future<void> end = kept->get_future();
  std::thread([kept] {
    Program::on();
    (*kept)();
  }).detach();
  if (end.wait_for(20s) != std::future_status::ready) return false;
  end.get();
  return true;
}

/// A function whose space does something before it lists two blocks, or three from then on.
struct Listed {
  CUdeviceptr y = Program::on().floats(8);
  std::function<void()> before_listing;
  std::atomic<int> listed{0};
  std::function<CUresult()> call;

  explicit Listed(const char* name) {
    keep(autotune(
        name,
        [this](const contextune::Device&) {
          const bool is_first = listed++ == 0;
          if (is_first) before_listing();
          return is_first ? ConfigSpace().parameter("block", {256, 128})
                          : ConfigSpace().parameter("block", {64, 256, 128});
        },
        [this](const Config& config) {
          return Program::on().launch("set", y, 8, 1.0F, 1, block_of(config));
        },
        short_runs()));
  }
  template <class Function>
  void keep(Function function) {
    const auto kept = std::make_shared<Function>(std::move(function));
    call = [kept] { return (*kept)(); };
  }
};

}  // namespace

TEST_CASE("A space that calls its own function is told so", "[autotune]") {
  const auto function = std::make_shared<Listed>("calls_itself");
  function->before_listing = [of = function.get()] { static_cast<void>(of->call()); };
  REQUIRE(ends_in_time([function] {
    CHECK_THROWS_WITH(function->call(), Catch::Contains("function 'calls_itself'") &&
                                            Catch::Contains("calls the function itself"));
    CHECK(function->call() == CUDA_SUCCESS);
  }));
  CHECK(function->listed == 2);
}

TEST_CASE("A space may wait for another thread that calls the function", "[autotune]") {
  const auto function = std::make_shared<Listed>("calls_elsewhere");
  const auto status = std::make_shared<std::atomic<CUresult>>(CUDA_ERROR_UNKNOWN);
  function->before_listing = [of = function.get(), status] {
    std::thread([&] {
      Program::on();
      *status = of->call();
    }).join();
  };
  REQUIRE(ends_in_time([function] { CHECK(function->call() == CUDA_SUCCESS); }));
  CHECK(*status == CUDA_SUCCESS);
  CHECK(function->listed == 2);
  // The list of the thread that was done first counts, for all of them.
  CHECK(log_lines({"event=winner", "site=calls_elsewhere", "config=2 block=128"}).size() == 1);
  CHECK(Program::read(function->y, 1).front() == 1.0F);
}

TEST_CASE("A space may take a lock that other threads hold when they call", "[autotune]") {
  const auto function = std::make_shared<Listed>("takes_a_lock");
  const auto lock = std::make_shared<std::mutex>();
  const auto is_held = std::make_shared<std::promise<void>>();
  const auto is_listing = std::make_shared<std::promise<void>>();
  function->before_listing = [lock, is_held, is_listing] {
    is_listing->set_value();
    is_held->get_future().wait();
    const std::lock_guard guard(*lock);
  };
  const auto status = std::make_shared<std::atomic<CUresult>>(CUDA_ERROR_UNKNOWN);
  REQUIRE(ends_in_time([function, lock, is_held, is_listing, status] {
    std::thread other([&] {
      Program::on();
      const std::lock_guard guard(*lock);
      is_held->set_value();
      is_listing->get_future().wait();
      *status = function->call();
    });
    CHECK(function->call() == CUDA_SUCCESS);
    other.join();
  }));
  CHECK(*status == CUDA_SUCCESS);
}
