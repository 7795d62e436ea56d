// What hashing, saving and restoring device memory takes, beside copies of as many bytes by the
// driver, which take turns with it. Bandwidths count each byte once, a copy's too.
//
// Works on any driver that is found as libcuda.so.1; on a simulated one the figures say so.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/memory/block_hash.hpp"
#include "gpu/memory/block_store.hpp"

using namespace contextune::gpu;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20U;
constexpr std::size_t unlimited = std::size_t{1} << 60U;
constexpr int turns = 15;

Deadline soon() {
  return Deadline::in(30);
}

struct Device {
  Driver driver = open_driver();
  CUcontext context = nullptr;
  BlockKernels kernels{driver};

  Device() {
    check(driver, driver.cuInit(0), "cuInit");
    check(driver, driver.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(driver, driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  }
};

class Buffer {
 public:
  Buffer(const Driver& driver, std::size_t bytes) : driver_(driver) {
    range_.bytes = bytes;
    check(driver_, driver_.cuMemAlloc(&range_.begin, bytes), "device memory");
  }
  ~Buffer() { (void)driver_.cuMemFree(range_.begin); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  [[nodiscard]] const MemoryRange& range() const { return range_; }

 private:
  const Driver& driver_;
  MemoryRange range_;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Times {
  std::vector<double> seconds;
  [[nodiscard]] double quantile(double part) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[static_cast<std::size_t>(part * static_cast<double>(seconds.size() - 1))];
  }
  [[nodiscard]] double rate(std::size_t bytes, double part) {
    return static_cast<double>(bytes) / quantile(part) * 1e-9;
  }
};

/// The benchmark of footprints of one size: memory, a second one as large for the driver's copies,
/// and random content.
class Sized {
 public:
  Sized(Device& device, std::size_t bytes)
      : device_(device),
        memory_(device.driver, bytes),
        other_(device.driver, bytes),
        stream_(device.driver, device.context),
        hasher_(device.driver, device.context, device.kernels) {
    std::vector<std::uint64_t> content(mebibyte / sizeof(std::uint64_t));
    std::mt19937_64 random(bytes);
    for (std::size_t at = 0; at < bytes; at += mebibyte) {
      std::generate(content.begin(), content.begin() + 1024, random);
      if (at == 0) std::generate(content.begin(), content.end(), random);
      copy(memory_.range().begin + at, reinterpret_cast<CUdeviceptr>(content.data()),
           std::min(mebibyte, bytes - at));
    }
  }

  void run() {
    std::printf("%zu MiB\n", memory_.range().bytes / mebibyte);
    const Footprint whole({memory_.range()});
    measure_hash("hash", whole);
    measure_hash("hash of 1 MiB ranges", in_ranges(mebibyte));
    measure_hash("hash of 16 KiB ranges", in_ranges(16 << 10U));
    measure_save(whole);

    std::vector<std::uint32_t> second;
    std::vector<std::uint32_t> scattered;
    std::mt19937 random(1);
    for (std::uint32_t number = 0; number < whole.num_blocks(); number += 2)
      second.push_back(number);
    for (std::uint32_t number = 0; number < whole.num_blocks();) {
      const auto run = std::min<std::uint32_t>(1 + random() % 16, whole.num_blocks() - number);
      for (std::uint32_t i = 0; i < run; ++i) scattered.push_back(number + i);
      number += run + 1 + static_cast<std::uint32_t>(random() % 8);
    }
    std::vector<std::uint32_t> all(whole.num_blocks());
    for (std::uint32_t number = 0; number < all.size(); ++number) all[number] = number;
    measure_restore("restore all", whole, all, unlimited);
    measure_restore("restore runs of 1 to 16 blocks", whole, scattered, unlimited);
    measure_restore("restore every second block", whole, second, unlimited);
    measure_restore("restore all of 1 MiB ranges", in_ranges(mebibyte), all, unlimited);
    if (memory_.range().bytes <= 1024 * mebibyte) {
      measure_restore("restore all, from the host", whole, all, 0);
      measure_restore("restore runs, from the host", whole, scattered, 0);
    }
  }

 private:
  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    check(device_.driver, device_.driver.cuMemcpyAsync(to, from, bytes, stream_.handle()),
          "a copy");
    stream_.wait(soon(), "a copy");
  }

  // As separate allocations would be: the last byte of each is left out.
  [[nodiscard]] Footprint in_ranges(std::size_t bytes) const {
    std::vector<MemoryRange> ranges;
    for (std::size_t at = 0; at + bytes <= memory_.range().bytes; at += bytes) {
      ranges.push_back({memory_.range().begin + at, bytes - 1});
    }
    return Footprint(ranges);
  }

  /// Lets `work`, which moves so many bytes, take turns with a copy by the driver.
  void measure(const char* what, std::size_t bytes, CUdeviceptr copied_from,
               const std::function<void()>& work) {
    Times times;
    Times copies;
    work();
    copy(other_.range().begin, copied_from, bytes);
    for (int turn = 0; turn < turns; ++turn) {
      times.seconds.push_back(seconds_of(work));
      copies.seconds.push_back(seconds_of([&] { copy(other_.range().begin, copied_from, bytes); }));
    }
    std::printf(
        "  %-32s %8.1f us  %7.1f GB/s (%.1f-%.1f)  copy %7.1f GB/s (%.1f-%.1f)  ratio %.2f\n", what,
        times.quantile(0.5) * 1e6, times.rate(bytes, 0.5), times.rate(bytes, 0.9),
        times.rate(bytes, 0.1), copies.rate(bytes, 0.5), copies.rate(bytes, 0.9),
        copies.rate(bytes, 0.1), times.rate(bytes, 0.5) / copies.rate(bytes, 0.5));
    std::fflush(stdout);
  }

  void measure_hash(const char* what, const Footprint& footprint) {
    measure(what, footprint.bytes(), memory_.range().begin,
            [&] { (void)hasher_.hash(footprint, soon()); });
  }

  void measure_save(const Footprint& footprint) {
    BlockStore store(device_.driver, device_.context, device_.kernels, {unlimited, 0});
    measure("save, with its allocation", footprint.bytes(), memory_.range().begin,
            [&] { store.save(footprint, soon()); });
  }

  void measure_restore(const char* what, const Footprint& footprint,
                       const std::vector<std::uint32_t>& blocks, std::size_t device_limit) {
    std::vector<std::uint32_t> numbers;
    std::size_t bytes = 0;
    for (const std::uint32_t number : blocks) {
      if (number >= footprint.num_blocks()) continue;
      numbers.push_back(number);
      bytes += footprint.block(number).bytes;
    }
    BlockStore store(device_.driver, device_.context, device_.kernels, {device_limit, unlimited});
    store.save(footprint, numbers, soon());
    const auto before = hasher_.hash(footprint, soon());
    for (const std::uint32_t number : numbers) {
      if (number % 64 != 0 && number != numbers.back()) continue;
      const MemoryRange block = footprint.block(number);
      check(device_.driver,
            device_.driver.cuMemsetD8Async(block.begin, 0x5a, block.bytes, stream_.handle()),
            "spoiling a block");
    }
    stream_.wait(soon(), "spoiling blocks");
    if (hasher_.hash(footprint, soon()) == before) throw std::runtime_error("nothing was spoiled");
    PinnedMemory host(device_.driver, device_.context);
    if (device_limit == 0) host.reserve(bytes);
    measure(what, bytes,
            device_limit == 0 ? reinterpret_cast<CUdeviceptr>(host.data()) : memory_.range().begin,
            [&] { store.restore(numbers, soon()); });
    if (hasher_.hash(footprint, soon()) != before) throw std::runtime_error("not restored exactly");
  }

  Device& device_;
  Buffer memory_;
  Buffer other_;
  OwnStream stream_;
  BlockHasher hasher_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::size_t mebibytes = std::strtoul(argv[i], nullptr, 10);
    if (mebibytes == 0) {
      std::printf(
          "usage: %s [MiB ...]\nHashes, saves and restores device memory of these sizes "
          "(64 1024 20480; on the simulated driver 64).\n",
          argv[0]);
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    }
    sizes.push_back(mebibytes);
  }
  try {
    static Device device;
    if (device.driver.simulated) {
      std::printf("The driver is simulated: these are times of this host, not of a GPU.\n");
    }
    if (sizes.empty()) sizes = {64};
    if (argc == 1 && !device.driver.simulated) sizes = {64, 1024, 20480};
    for (const std::size_t mebibytes : sizes) Sized(device, mebibytes * mebibyte).run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
