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

/// What becomes of an entry that is to be held.
EntryHold::Refusal refusal_of(EntryHold& hold) {
  hold.allow(true, false);
  hold.heard(slowly_launched());
  hold.begin_entry();
  hold.end_entry();
  REQUIRE(hold.is_wanted());
  hold.begin_entry();
  hold.time_entry();
  hold.touch(StreamHandle{});
  hold.end_entry();
  CHECK_FALSE(hold.is_wanted());
  return hold.take_refusal();
}

}  // namespace

TEST_CASE("An entry that nothing can hold is held no longer, and why is told once", "[hold]") {
  EntryHold without_memory([]() -> std::unique_ptr<gpu::StreamHold> { throw std::bad_alloc(); });
  CHECK(refusal_of(without_memory) == EntryHold::Refusal::NoMemory);
  CHECK(without_memory.take_refusal() == EntryHold::Refusal::None);

  static std::uint32_t pinned = 0;
  gpu::Driver driver = FakeDriver::make();
  driver.cuMemHostAlloc = [](void** memory, size_t, unsigned) {
    *memory = &pinned;
    return CUDA_SUCCESS;
  };
  driver.cuMemAlloc = [](CUdeviceptr*, size_t) { return CUDA_ERROR_OUT_OF_MEMORY; };
  driver.cuStreamWaitValue32 = nullptr;
  EntryHold refused([&] { return std::make_unique<gpu::StreamHold>(driver); });
  CHECK(refusal_of(refused) == EntryHold::Refusal::DriverRefuses);
  CHECK(refused.take_refusal() == EntryHold::Refusal::None);
}
