#include "gpu/memory/block_store.hpp"

#include <algorithm>

#include "catch.hpp"
#include "simulated_memory.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

constexpr std::size_t plenty = std::size_t{1} << 40U;
using Numbers = std::vector<std::uint32_t>;

/// A store on a driver of which a test may replace functions.
struct Stored {
  Driver driver = SimulatedDevice::get().driver;
  BlockKernels kernels{driver};
  BlockStore store;

  explicit Stored(BlockStore::Limits limits = {plenty, 0})
      : store(driver, SimulatedDevice::get().context, kernels, limits) {}
};

Deadline soon() {
  return Deadline::in(10);
}

void spoil(const SimulatedMemory& memory) {
  for (std::size_t i = 0; i < memory.range().bytes; ++i) memory.data()[i] ^= 0x5a;
}

CUresult fail(CUdeviceptr, CUdeviceptr, std::size_t, CUstream) {
  return CUDA_ERROR_LAUNCH_FAILED;
}
CUresult never(CUstream) {
  return CUDA_ERROR_NOT_READY;
}
CUresult out_of_memory(CUdeviceptr*, std::size_t) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

int calls_before_failure = 0;
CUresult fail_later(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (calls_before_failure-- == 0) return CUDA_ERROR_LAUNCH_FAILED;
  return SimulatedDevice::get().driver.cuMemcpyAsync(to, from, bytes, stream);
}

}  // namespace

TEST_CASE("What was saved is put back, to the last byte and not one further", "[store]") {
  const SimulatedMemory a(3 * block + 13, 1);
  const SimulatedMemory b(1, 2);
  const SimulatedMemory c(2 * block, 3);
  // Odd addresses, and neighbours that are not saved.
  const Footprint footprint(
      {{a.range().begin + 3, 3 * block + 7}, b.range(), {c.range().begin + block - 5, block}});
  const auto before_a = a.content();
  const auto before_b = b.content();
  const auto before_c = c.content();
  Stored stored;
  stored.store.save(footprint, soon());
  for (const auto* memory : {&a, &b, &c}) spoil(*memory);
  const auto spoiled_a = a.content();
  const auto spoiled_c = c.content();
  stored.store.restore(soon());
  const auto expected = [](std::vector<unsigned char> outside,
                           const std::vector<unsigned char>& inside, std::size_t from,
                           std::size_t bytes) {
    std::copy_n(inside.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                outside.begin() + static_cast<std::ptrdiff_t>(from));
    return outside;
  };
  CHECK(a.content() == expected(spoiled_a, before_a, 3, 3 * block + 7));
  CHECK(b.content() == before_b);
  CHECK(c.content() == expected(spoiled_c, before_c, block - 5, block));
}

TEST_CASE("Only the blocks that are named are saved, and only those put back", "[store]") {
  const SimulatedMemory memory(10 * block + 5);
  const Footprint footprint({memory.range()});
  const auto before = memory.content();
  Stored stored;
  stored.store.save(footprint, Numbers{0, 2, 3, 4, 7, 10}, soon());
  CHECK(stored.store.device_bytes() >= 5 * block + 5);
  CHECK(stored.store.device_bytes() < 6 * block);
  spoil(memory);
  auto expected = memory.content();
  const Numbers restored{2, 4, 10};
  for (const std::uint32_t number : restored) {
    const MemoryRange one = footprint.block(number);
    std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(number * block), one.bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(number * block));
  }
  stored.store.restore(restored, soon());
  CHECK(memory.content() == expected);
  CHECK_THROWS_WITH(stored.store.restore(Numbers{1}, soon()), Catch::Contains("block 1 was not"));
  CHECK_THROWS_WITH(stored.store.restore(Numbers{3, 8}, soon()),
                    Catch::Contains("block 8 was not"));
}

TEST_CASE("What does not fit on the device is kept in host memory", "[store]") {
  auto& device = SimulatedDevice::get();
  const SimulatedMemory a(3 * block + 1, 1);
  const SimulatedMemory b(4 * block + 1, 2);
  const Footprint footprint({a.range(), b.range()});
  const std::size_t device_blocks = GENERATE(0U, 1U, 3U, 5U, 8U);
  const auto before_a = a.content();
  const auto before_b = b.content();
  const std::size_t free = device.free_bytes();
  {
    Stored stored({device_blocks * block, plenty});
    stored.store.save(footprint, soon());
    CHECK(stored.store.device_bytes() <= device_blocks * block);
    CHECK(stored.store.device_bytes() + stored.store.host_bytes() >= 7 * block + 2);
    CHECK((device_blocks == 8) == (stored.store.host_bytes() == 0));
    spoil(a);
    spoil(b);
    stored.store.restore(soon());
    CHECK(a.content() == before_a);
    CHECK(b.content() == before_b);
    stored.store.release();
    CHECK(stored.store.device_bytes() == 0);
    CHECK(stored.store.host_bytes() == 0);
    CHECK(device.free_bytes() == free);
  }
}

TEST_CASE("Beyond the limits nothing is allocated, and the error has the figures", "[store]") {
  auto& device = SimulatedDevice::get();
  const SimulatedMemory memory(8 * block);
  const std::size_t free = device.free_bytes();
  Stored stored({4 * block, 3 * block});
  bool thrown = false;
  try {
    stored.store.save(Footprint({memory.range()}), soon());
  } catch (const NoRoom& error) {
    thrown = true;
    CHECK(error.wanted_bytes == 8 * block);
    CHECK(error.device_bytes == 4 * block);
    CHECK(error.host_bytes == 3 * block);
  }
  CHECK(thrown);
  CHECK(stored.store.device_bytes() == 0);
  CHECK(stored.store.host_bytes() == 0);
  CHECK(device.free_bytes() == free);
  // The store can still be used.
  stored.store.save(Footprint({{memory.range().begin, 7 * block}}), soon());
  CHECK(stored.store.host_bytes() == 3 * block);
}

TEST_CASE("The program keeps some free device memory", "[store]") {
  const SimulatedMemory memory(4 * block);
  Stored stored({plenty, plenty});
  stored.driver.cuMemGetInfo = [](std::size_t* free, std::size_t* total) {
    *free = BlockStore::reserve_bytes + 2 * block;
    *total = plenty;
    return CUDA_SUCCESS;
  };
  stored.store.save(Footprint({memory.range()}), soon());
  CHECK(stored.store.device_bytes() == 2 * block);
  CHECK(stored.store.host_bytes() == 2 * block);
}

TEST_CASE("When another process takes the device's memory first, copies go to the host",
          "[store]") {
  const SimulatedMemory memory(2 * block);
  const auto before = memory.content();
  Stored stored({plenty, plenty});
  stored.driver.cuMemAlloc = &out_of_memory;
  stored.store.save(Footprint({memory.range()}), soon());
  CHECK(stored.store.device_bytes() == 0);
  CHECK(stored.store.host_bytes() == 2 * block);
  spoil(memory);
  stored.store.restore(soon());
  CHECK(memory.content() == before);
}

TEST_CASE("A copy that fails is reported, and leaves nothing allocated", "[store]") {
  auto& device = SimulatedDevice::get();
  const SimulatedMemory a(block, 1);
  const SimulatedMemory b(block, 2);
  const Footprint footprint({a.range(), b.range()});
  const std::size_t free = device.free_bytes();
  Stored stored;
  stored.driver.cuMemcpyAsync = &fail_later;
  calls_before_failure = 1;
  CHECK_THROWS_WITH(stored.store.save(footprint, soon()),
                    Catch::Contains("copying memory") && Catch::Contains("LAUNCH_FAILED"));
  CHECK(device.free_bytes() == free);

  stored.driver.cuMemcpyAsync = device.driver.cuMemcpyAsync;
  stored.store.save(footprint, soon());
  stored.driver.cuMemcpyAsync = &fail;
  CHECK_THROWS_WITH(stored.store.restore(soon()),
                    Catch::Contains("restoring memory") && Catch::Contains("LAUNCH_FAILED"));
}

TEST_CASE("A copy that does not end is given up at the deadline, and keeps its memory", "[store]") {
  auto& device = SimulatedDevice::get();
  const SimulatedMemory memory(block);
  const auto before = memory.content();
  const std::size_t free = device.free_bytes();
  Stored stored;
  stored.store.save(Footprint({memory.range()}), soon());
  stored.driver.cuStreamQuery = &never;
  CHECK_THROWS_WITH(stored.store.restore(Deadline::in(0.01)), Catch::Contains("not complete"));
  stored.store.release();
  CHECK(device.free_bytes() == free - block);
  CHECK_THROWS_WITH(stored.store.save(Footprint({memory.range()}), soon()),
                    Catch::Contains("has not ended"));
}

TEST_CASE("Saving again replaces what was saved", "[store]") {
  auto& device = SimulatedDevice::get();
  const SimulatedMemory memory(2 * block);
  const Footprint footprint({memory.range()});
  const std::size_t free = device.free_bytes();
  {
    Stored stored;
    stored.store.save(footprint, soon());
    spoil(memory);
    const auto second = memory.content();
    stored.store.save(footprint, soon());
    CHECK(device.free_bytes() == free - 2 * block);
    spoil(memory);
    stored.store.restore(soon());
    CHECK(memory.content() == second);
  }
  CHECK(device.free_bytes() == free);
}

TEST_CASE("Restores may follow one another in any order, saves between them", "[store]") {
  const SimulatedMemory memory(64 * block);
  const Footprint footprint({memory.range()});
  Stored stored;
  Numbers few{1, 5};
  Numbers many;
  for (std::uint32_t number = 0; number < footprint.num_blocks(); number += 2) {
    many.push_back(number);
  }
  const Numbers all_of_them{0, 1, 2, 3, 4, 5};
  for (const Numbers& saved : {few, many, all_of_them}) {
    spoil(memory);
    const auto before = memory.content();
    stored.store.save(footprint, saved, soon());
    const Numbers part(saved.begin(), saved.begin() + 2);
    for (const Numbers& restored : {saved, saved, part, part, Numbers{}, saved}) {
      spoil(memory);
      auto expected = memory.content();
      for (const std::uint32_t number : restored) {
        const auto at = static_cast<std::ptrdiff_t>(number * block);
        std::copy_n(before.begin() + at, block, expected.begin() + at);
      }
      stored.store.restore(restored, soon());
      CHECK((memory.content() == expected));
    }
  }
  stored.store.release();
  CHECK_THROWS_WITH(stored.store.restore(all_of_them, soon()), Catch::Contains("was not saved"));
}

TEST_CASE("Blocks out of order are refused", "[store]") {
  const SimulatedMemory memory(4 * block);
  const Footprint footprint({memory.range()});
  Stored stored;
  CHECK_THROWS_AS(stored.store.save(footprint, Numbers{2, 1}, soon()), Error);
  CHECK_THROWS_AS(stored.store.save(footprint, Numbers{1, 1}, soon()), Error);
  CHECK_THROWS_AS(stored.store.save(footprint, Numbers{4}, soon()), Error);
}

TEST_CASE("A store works on its own context, whatever is current", "[store]") {
  auto& device = SimulatedDevice::get();
  const SimulatedMemory memory(block);
  const auto before = memory.content();
  const std::size_t free = device.free_bytes();
  check(device.driver, device.driver.cuCtxSetCurrent(nullptr), "cuCtxSetCurrent");
  {
    Stored stored;
    stored.store.save(Footprint({memory.range()}), soon());
    spoil(memory);
    stored.store.restore(soon());
  }
  CUcontext current = nullptr;
  check(device.driver, device.driver.cuCtxGetCurrent(&current), "cuCtxGetCurrent");
  check(device.driver, device.driver.cuCtxSetCurrent(device.context), "cuCtxSetCurrent");
  CHECK(current == nullptr);
  CHECK(memory.content() == before);
  CHECK(device.free_bytes() == free);
}
