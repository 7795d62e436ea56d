#include "gpu/memory/footprint.hpp"

#include <limits>

#include <contextune/error.hpp>

#include "catch.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

constexpr std::size_t block = Footprint::block_bytes;

std::vector<std::uint32_t> numbers(Footprint::Blocks blocks) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t number = blocks.first; number != blocks.end; ++number) all.push_back(number);
  return all;
}

using Numbers = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("Ranges are cut in blocks from their beginning, in the order of their addresses",
          "[footprint]") {
  const Footprint footprint({{0x900001, 1}, {0x100000, 2 * block + 5}, {0x500000, 0}});
  CHECK(footprint.ranges() == std::vector<MemoryRange>{{0x100000, 2 * block + 5}, {0x900001, 1}});
  CHECK(footprint.bytes() == 2 * block + 6);
  REQUIRE(footprint.num_blocks() == 4);
  CHECK(footprint.block(0) == MemoryRange{0x100000, block});
  CHECK(footprint.block(1) == MemoryRange{0x100000 + block, block});
  CHECK(footprint.block(2) == MemoryRange{0x100000 + 2 * block, 5});
  CHECK(footprint.block(3) == MemoryRange{0x900001, 1});
  CHECK(numbers(footprint.range_of(1)) == Numbers{0, 1, 2});
  CHECK(numbers(footprint.range_of(3)) == Numbers{3});
}

TEST_CASE("Overlapping ranges become one, and touching ones stay apart", "[footprint]") {
  const Footprint footprint({{0x2000, 0x1000}, {0x1000, 0x1000}, {0x1800, 0x100}, {0x2fff, 2}});
  CHECK(footprint.ranges() == std::vector<MemoryRange>{{0x1000, 0x1000}, {0x2000, 0x1001}});
  CHECK(footprint.num_blocks() == 2);
}

TEST_CASE("A range names the blocks that it touches", "[footprint]") {
  const Footprint footprint({{0x100000, 2 * block + 5}, {0x900000, 3 * block}});
  const auto touched = [&](CUdeviceptr begin, std::size_t bytes) {
    return numbers(footprint.blocks_of({begin, bytes}));
  };
  CHECK(touched(0x100000, 1) == Numbers{0});
  CHECK(touched(0x100000 + block - 1, 2) == Numbers{0, 1});
  CHECK(touched(0x100000 + block, block) == Numbers{1});
  CHECK(touched(0x100000 + 2 * block + 4, 1) == Numbers{2});
  CHECK(touched(0x900000 + block, 2 * block) == Numbers{4, 5});
  // Partly or wholly outside.
  CHECK(touched(0x0fffff, 2) == Numbers{0});
  CHECK(touched(0x0fffff, 1).empty());
  CHECK(touched(0x100000 + 2 * block + 5, 100).empty());
  CHECK(touched(0x100000 + 2 * block, 0x100000).size() == 1);
  CHECK(touched(0x100000, 0x1000000) == Numbers{0, 1, 2, 3, 4, 5});
  CHECK(touched(0x900000 + 3 * block, 1).empty());
  CHECK(touched(0x100000, 0).empty());
  CHECK(numbers(Footprint().blocks_of({0x100000, 1})).empty());
}

TEST_CASE("A range is contained if no byte of it lies outside", "[footprint]") {
  const Footprint footprint({{0x1000, 0x1000}, {0x2000, 0x1000}, {0x4000, 1}});
  CHECK(footprint.contains({0x1000, 0x1000}));
  CHECK(footprint.contains({0x1fff, 2}));
  CHECK(footprint.contains({0x1000, 0x2000}));
  CHECK_FALSE(footprint.contains({0x0fff, 2}));
  CHECK_FALSE(footprint.contains({0x2fff, 2}));
  CHECK_FALSE(footprint.contains({0x1000, 0x3001}));
  CHECK_FALSE(footprint.contains({0x4001, 1}));
  CHECK(footprint.contains({0x9000, 0}));
}

TEST_CASE("Ranges that cannot exist are refused", "[footprint]") {
  CHECK_THROWS_AS(Footprint({{0x1000, std::size_t{1} << 50U}}), Error);
  CHECK_THROWS_AS(Footprint({{0x1000, std::numeric_limits<std::size_t>::max()}}), Error);
}
