#include "catch.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "gpu/memory/block_hash.hpp"
#include "gpu/memory/block_store.hpp"
#include "gpu_fixture.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

constexpr std::size_t block = Footprint::block_bytes;
constexpr std::size_t plenty = std::size_t{1} << 40U;

Deadline soon() {
  return Deadline::in(20);
}

/// 16 MiB of device memory with random content.
struct Memory {
  Driver driver = open_driver();
  CUdevice device = 0;
  CUcontext context = nullptr;
  MemoryRange range{0, std::size_t{16} << 20U};
  BlockKernels kernels{driver};

  Memory() {
    check(driver, driver.cuInit(0), "cuInit");
    check(driver, driver.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(driver, driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(driver, driver.cuMemAlloc(&range.begin, range.bytes), "cuMemAlloc");
    std::vector<unsigned char> content(range.bytes);
    std::mt19937 random(1);
    std::generate(content.begin(), content.end(),
                  [&] { return static_cast<unsigned char>(random()); });
    check(driver,
          driver.cuMemcpyAsync(range.begin, reinterpret_cast<CUdeviceptr>(content.data()),
                               range.bytes, CU_STREAM_LEGACY),
          "cuMemcpyAsync");
    check(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize");
  }
  ~Memory() { (void)driver.cuMemFree(range.begin); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] std::vector<unsigned char> content() const {
    std::vector<unsigned char> bytes(range.bytes);
    check(driver, driver.cuMemcpyDtoH(bytes.data(), range.begin, range.bytes), "cuMemcpyDtoH");
    return bytes;
  }
  void spoil() const {
    check(driver, driver.cuMemsetD8Async(range.begin, 0x5a, range.bytes, CU_STREAM_LEGACY),
          "cuMemsetD8Async");
    check(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize");
  }
};

/// Ranges of any size and address within `memory`, many of them shorter than a block.
Footprint scattered(const MemoryRange& memory, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<MemoryRange> ranges;
  for (std::size_t at = random() % 100; ranges.size() < 400;) {
    std::size_t bytes = 1 + random() % (random() % 3 == 0 ? 5 * block : 100);
    // Half of them aligned, as allocations are.
    if (random() % 2 == 0) at = (at + 255) / 256 * 256;
    if (at + bytes > memory.bytes) break;
    ranges.push_back({memory.begin + at, bytes});
    at += bytes + 1 + random() % 1000;
  }
  return Footprint(ranges);
}

}  // namespace

TEST_CASE("The GPU's hash of a block is the host's", "[gpu][memory]") {
  const Memory memory;
  const auto content = memory.content();
  BlockKernels kernels(memory.driver);
  BlockHasher hasher(memory.driver, memory.context, kernels);
  std::vector<Footprint> footprints{Footprint({memory.range})};
  for (unsigned seed = 1; seed <= 20; ++seed) footprints.push_back(scattered(memory.range, seed));
  for (const Footprint& footprint : footprints) {
    const auto hashes = hasher.hash(footprint, soon());
    REQUIRE(hashes.size() == footprint.num_blocks());
    std::size_t wrong = 0;
    for (std::uint32_t number = 0; number < footprint.num_blocks(); ++number) {
      const MemoryRange one = footprint.block(number);
      const unsigned char* bytes = content.data() + (one.begin - memory.range.begin);
      if (block_hash(bytes, one.bytes) != hashes[number]) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("The GPU's memory is restored to the byte, from the device and from the host",
          "[gpu][memory]") {
  const std::size_t on_device = GENERATE(plenty, std::size_t{5} << 20U, std::size_t{0});
  const bool all = GENERATE(true, false);
  for (unsigned seed = 0; seed <= 5; ++seed) {
    Memory memory;
    const auto before = memory.content();
    const Footprint footprint =
        seed == 0 ? Footprint({memory.range}) : scattered(memory.range, seed);
    std::mt19937 random(seed);
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t number = 0; number < footprint.num_blocks(); ++number) {
      if (all || random() % 2 == 0) blocks.push_back(number);
    }
    BlockStore store(memory.driver, memory.context, memory.kernels, {on_device, plenty});
    store.save(footprint, blocks, soon());
    CHECK(store.device_bytes() <= on_device);
    CHECK((on_device != plenty || store.host_bytes() == 0));
    memory.spoil();
    auto expected = memory.content();
    for (const std::uint32_t number : blocks) {
      const MemoryRange one = footprint.block(number);
      const auto at = static_cast<std::ptrdiff_t>(one.begin - memory.range.begin);
      std::copy_n(before.begin() + at, one.bytes, expected.begin() + at);
    }
    for (int time = 0; time < 3; ++time) {
      memory.spoil();
      store.restore(blocks, soon());
      CHECK((memory.content() == expected));
    }
  }
}
