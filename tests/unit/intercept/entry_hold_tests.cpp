#include "intercept/measuring/entry_hold.hpp"

#include <cstdint>
#include <memory>
#include <new>

#include "catch.hpp"
#include "tests/unit/gpu/fake_driver.hpp"

using namespace contextune;
using intercept::EntryHold;
using intercept::PassRecord;

namespace {

/// An entry of two launches between which the GPU stands idle.
PassRecord slowly_launched() {
  PassRecord record(PassId{0}, Measure::Activity, {});
  record.launched(0, 1, 1);
  record.launched(1, 1, 1);
  record.arrived(1, TimedWork{0, 0.0, 1.0, true, 0});
  record.arrived(2, TimedWork{0, 9.0, 10.0, true, 0});
  return record;
}

/// Entries are to be held from now on.
void want(EntryHold& hold) {
  hold.allow(true, false);
  hold.heard(slowly_launched());
  hold.begin_entry();
  hold.end_entry();
  REQUIRE(hold.is_wanted());
}

void enter(EntryHold& hold) {
  hold.begin_entry();
  hold.time_entry();
  hold.touch(StreamHandle{});
  hold.end_entry();
}

/// What becomes of an entry that is to be held.
EntryHold::Refusal refusal_of(EntryHold& hold) {
  want(hold);
  enter(hold);
  CHECK_FALSE(hold.is_wanted());
  return hold.take_refusal();
}

/// Its pinned memory is there, and no other.
gpu::Driver driver_with_a_word() {
  static std::uint32_t pinned = 0;
  gpu::Driver driver = FakeDriver::make();
  driver.cuMemHostAlloc = [](void** memory, size_t, unsigned) {
    *memory = &pinned;
    return CUDA_SUCCESS;
  };
  driver.cuMemAlloc = [](CUdeviceptr*, size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
  return driver;
}

}  // namespace

TEST_CASE("An entry that nothing can hold is held no longer, and why is told once", "[hold]") {
  EntryHold without_memory([]() -> std::unique_ptr<gpu::StreamHold> { throw std::bad_alloc(); });
  CHECK(refusal_of(without_memory) == EntryHold::Refusal::NoMemory);
  CHECK(without_memory.take_refusal() == EntryHold::Refusal::None);

  gpu::Driver driver = driver_with_a_word();
  driver.cuStreamWaitValue32 = nullptr;
  EntryHold refused([&] { return std::make_unique<gpu::StreamHold>(driver); });
  CHECK(refusal_of(refused) == EntryHold::Refusal::DriverRefuses);
  CHECK(refused.take_refusal() == EntryHold::Refusal::None);
}

TEST_CASE("An entry that meets a capture is not held, and the next one is", "[hold]") {
  static int num_waits = 0;
  gpu::Driver driver = driver_with_a_word();
  driver.cuStreamWaitValue32 = [](CUstream, CUdeviceptr, cuuint32_t, unsigned) {
    ++num_waits;
    return CUDA_SUCCESS;
  };
  EntryHold hold([&] { return std::make_unique<gpu::StreamHold>(driver); });
  want(hold);
  FakeDriver::get().capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  enter(hold);
  CHECK(num_waits == 0);
  FakeDriver::get().capture_result = CUDA_SUCCESS;
  enter(hold);
  CHECK(num_waits == 1);
  CHECK(hold.take_refusal() == EntryHold::Refusal::None);
}
