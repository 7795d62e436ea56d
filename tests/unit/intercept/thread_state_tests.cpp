#include "catch.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/submission/program_steps.hpp"

using namespace contextune::intercept;

namespace {

LaunchRegion* region_at(std::uintptr_t number) {
  return reinterpret_cast<LaunchRegion*>(number);
}

}  // namespace

TEST_CASE("The innermost region is the last one opened that is still open", "[thread_state]") {
  ThreadState thread;
  CHECK(thread.open({10, region_at(64), true, false}));
  CHECK(thread.open({10, nullptr, false, false}));
  CHECK(thread.open({10, region_at(128), false, false}));
  CHECK(thread.region == region_at(128));
  CHECK_FALSE(thread.counts);
  CHECK(thread.close(10).region == region_at(128));
  CHECK(thread.region == region_at(64));
  CHECK(thread.counts);
  CHECK(thread.close(10).region == nullptr);
  CHECK(thread.close(10).region == region_at(64));
  CHECK(thread.region == nullptr);
}

TEST_CASE("Ranges of two domains may close crosswise", "[thread_state]") {
  ThreadState thread;
  thread.open({10, region_at(64), true, false});
  thread.open({20, region_at(128), true, false});
  CHECK(thread.close(10).region == region_at(64));
  CHECK(thread.region == region_at(128));
  CHECK(thread.close(10).region == nullptr);
  CHECK(thread.close(20).region == region_at(128));
}

TEST_CASE("A region inside itself keeps what its outer entry counts", "[thread_state]") {
  ThreadState thread;
  thread.open({10, region_at(64), true, false});
  thread.open({10, region_at(64), false, true});
  CHECK(thread.counts);
  CHECK(thread.close(10).inner);
  CHECK(thread.counts);
}

TEST_CASE("Ranges deeper than there is room for close in step", "[thread_state]") {
  ThreadState thread;
  for (std::size_t i = 0; i < ThreadState::most_frames; ++i) {
    CHECK(thread.open({10, region_at(64 * (i + 1)), true, false}));
  }
  CHECK_FALSE(thread.open({10, region_at(7), true, false}));
  CHECK_FALSE(thread.open({10, region_at(8), true, false}));
  CHECK(thread.close(10).region == nullptr);
  CHECK(thread.close(10).region == nullptr);
  CHECK(thread.close(10).region == region_at(64 * ThreadState::most_frames));
}

TEST_CASE("Closing what was never opened does nothing", "[thread_state]") {
  ThreadState thread;
  CHECK(thread.close(10).region == nullptr);
  thread.open({10, region_at(64), true, false});
  CHECK(thread.close(20).region == nullptr);
  CHECK(thread.region == region_at(64));
}

TEST_CASE("A thread is the same by the frontend's word as without", "[thread_state]") {
  hot_words.thread_word.store([] {
    static thread_local void* word = nullptr;
    return &word;
  });
  CHECK(&this_thread() == &find_this_thread());
  CHECK(&this_thread() == &find_this_thread());
  hot_words.thread_word.store(nullptr);
  CHECK(&this_thread() == &find_this_thread());
}

TEST_CASE("Copies and waits are steps, and questions whether something is done are none",
          "[steps]") {
  CHECK(step_kind_of(contextune_fn_cuMemcpyDtoHAsync_v2) == contextune::StepKind::Copy);
  CHECK(step_kind_of(contextune_fn_cuMemsetD32Async_ptsz) == contextune::StepKind::Copy);
  CHECK(step_kind_of(contextune_fn_cuCtxSynchronize) == contextune::StepKind::Wait);
  CHECK(step_kind_of(contextune_fn_cuEventSynchronize) == contextune::StepKind::Wait);
  CHECK_FALSE(step_kind_of(contextune_fn_cuEventQuery));
  CHECK_FALSE(step_kind_of(contextune_fn_cuEventRecord));
  CHECK_FALSE(step_kind_of(contextune_fn_count));
}

TEST_CASE("A thread that makes no steps any more leaves its place to another", "[steps]") {
  WatchedThreads threads;
  const std::uint64_t leader = 1;
  for (std::uint64_t number = 1; number <= WatchedThreads::most_threads; ++number)
    REQUIRE(threads.find(number, true, leader) != nullptr);
  const std::uint64_t other = 100;
  CHECK(threads.find(other, true, leader) == nullptr);
  for (std::uint64_t i = 0; i <= WatchedThreads::absent_after; ++i) {
    CHECK_FALSE(threads.is_absent(2));
    REQUIRE(threads.find(2, true, leader) != nullptr);
  }
  CHECK(threads.is_absent(leader));
  CHECK(threads.find(other, false, leader) == nullptr);
  REQUIRE(threads.find(other, true, leader) != nullptr);
  CHECK(threads.find(leader, false, leader) != nullptr);
  CHECK_FALSE(threads.is_absent(leader));
}
