#include "gpu/memory/block_hash.hpp"

#include <cstring>
#include <set>

#include "catch.hpp"
#include "simulated_memory.hpp"

using namespace contextune::gpu;

namespace {

std::vector<std::uint64_t> hash(const std::vector<MemoryRange>& ranges) {
  const auto& device = SimulatedDevice::get();
  BlockKernels kernels(device.driver);
  BlockHasher hasher(device.driver, device.context, kernels);
  return hasher.hash(Footprint(ranges), Deadline::in(10));
}

std::uint64_t hash_of(const std::vector<double>& values) {
  return block_hash(values.data(), values.size() * sizeof(double));
}

}  // namespace

TEST_CASE("Every flipped bit changes the hash of its block, and no other", "[hash]") {
  const SimulatedMemory memory(2 * block + 13);
  const auto before = hash({memory.range()});
  REQUIRE(before.size() == 3);
  for (const std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{4097}, block - 1, block,
                               2 * block - 8, 2 * block, 2 * block + 7, 2 * block + 12}) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      memory.data()[at] ^= static_cast<unsigned char>(1U << bit);
      const auto after = hash({memory.range()});
      for (std::size_t i = 0; i < 3; ++i) CHECK((after[i] != before[i]) == (i == at / block));
      memory.data()[at] ^= static_cast<unsigned char>(1U << bit);
    }
  }
  CHECK(hash({memory.range()}) == before);
}

TEST_CASE("Every byte of a short block counts", "[hash]") {
  for (std::size_t bytes = 1; bytes <= 40; ++bytes) {
    std::vector<unsigned char> content(bytes, 7);
    std::set<std::uint64_t> seen{block_hash(content.data(), bytes)};
    for (unsigned char& byte : content) {
      byte = 8;
      seen.insert(block_hash(content.data(), bytes));
      byte = 7;
    }
    CHECK(seen.size() == bytes + 1);
  }
}

TEST_CASE("Equal blocks have equal hashes wherever they lie", "[hash]") {
  const SimulatedMemory a(block + 100);
  const SimulatedMemory b(block + 200);
  std::memcpy(b.data() + 3, a.data(), 1000);
  const auto hashes = hash({{a.range().begin, 1000}, {b.range().begin + 3, 1000}});
  REQUIRE(hashes.size() == 2);
  CHECK(hashes[0] == hashes[1]);
}

TEST_CASE("The number of zeros counts", "[hash]") {
  const std::vector<unsigned char> zeros(100);
  std::set<std::uint64_t> seen;
  for (std::size_t bytes = 0; bytes <= zeros.size(); ++bytes) {
    seen.insert(block_hash(zeros.data(), bytes));
  }
  CHECK(seen.size() == zeros.size() + 1);
}

TEST_CASE("Changes that resemble each other do not cancel out", "[hash]") {
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8};
  const std::uint64_t original = hash_of(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      auto changed = values;
      std::swap(changed[i], changed[j]);
      CHECK(hash_of(changed) != original);
      changed = values;
      changed[i] = -changed[i];
      changed[j] = -changed[j];
      CHECK(hash_of(changed) != original);
      changed = values;
      changed[i] += 1;
      changed[j] -= 1;
      CHECK(hash_of(changed) != original);
    }
  }
}

TEST_CASE("A footprint without memory has no hashes", "[hash]") {
  CHECK(hash({}).empty());
}
