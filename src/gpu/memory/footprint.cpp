#include "gpu/memory/footprint.hpp"

#include <algorithm>
#include <limits>

#include <contextune/error.hpp>

namespace contextune::gpu {
namespace {

std::size_t num_blocks_of(std::size_t bytes) {
  return bytes / Footprint::block_bytes + (bytes % Footprint::block_bytes != 0 ? 1 : 0);
}

}  // namespace

Footprint::Footprint(std::vector<MemoryRange> ranges) {
  std::ranges::sort(ranges, {}, &MemoryRange::begin);
  for (const MemoryRange& range : ranges) {
    if (range.bytes == 0) continue;
    if (range.end() < range.begin) throw Error("a range of memory ends behind the last address");
    if (!ranges_.empty() && range.begin < ranges_.back().end()) {
      MemoryRange& last = ranges_.back();
      last.bytes = std::max(last.end(), range.end()) - last.begin;
    } else {
      ranges_.push_back(range);
    }
  }
  first_blocks_.reserve(ranges_.size());
  for (const MemoryRange& range : ranges_) {
    const std::size_t after = num_blocks_ + num_blocks_of(range.bytes);
    if (after > std::numeric_limits<std::uint32_t>::max()) {
      throw Error("memory of more than 256 TiB cannot be looked at; give the sizes of what exists");
    }
    first_blocks_.push_back(num_blocks_);
    num_blocks_ = static_cast<std::uint32_t>(after);
    bytes_ += range.bytes;
  }
}

MemoryRange Footprint::block(std::uint32_t number) const noexcept {
  const auto after = std::upper_bound(first_blocks_.begin(), first_blocks_.end(), number);
  const auto index = static_cast<std::size_t>(after - first_blocks_.begin()) - 1;
  const MemoryRange& range = ranges_[index];
  const std::size_t offset = std::size_t{number - first_blocks_[index]} * block_bytes;
  return {range.begin + offset, std::min(block_bytes, range.bytes - offset)};
}

Footprint::Blocks Footprint::range_of(std::uint32_t number) const noexcept {
  const auto after = std::upper_bound(first_blocks_.begin(), first_blocks_.end(), number);
  return {*(after - 1), after == first_blocks_.end() ? num_blocks_ : *after};
}

// The first range that ends behind `address`.
std::size_t Footprint::range_of_address(CUdeviceptr address) const noexcept {
  const auto found =
      std::partition_point(ranges_.begin(), ranges_.end(),
                           [&](const MemoryRange& range) { return range.end() <= address; });
  return static_cast<std::size_t>(found - ranges_.begin());
}

Footprint::Blocks Footprint::blocks_of(MemoryRange range) const noexcept {
  if (range.bytes == 0) return {};
  const std::size_t first = range_of_address(range.begin);
  const CUdeviceptr last_address = range.end() - 1;
  if (first == ranges_.size() || ranges_[first].begin > last_address) return {};
  std::size_t last = range_of_address(last_address);
  if (last == ranges_.size() || ranges_[last].begin > last_address) --last;

  const auto number = [&](std::size_t index, CUdeviceptr address) {
    const MemoryRange& in = ranges_[index];
    const CUdeviceptr inside = std::clamp(address, in.begin, in.end() - 1);
    return first_blocks_[index] + static_cast<std::uint32_t>((inside - in.begin) / block_bytes);
  };
  return {number(first, range.begin), number(last, last_address) + 1};
}

bool Footprint::contains(MemoryRange range) const noexcept {
  while (range.bytes != 0) {
    const std::size_t index = range_of_address(range.begin);
    if (index == ranges_.size() || ranges_[index].begin > range.begin) return false;
    const std::size_t inside =
        std::min<std::size_t>(range.bytes, ranges_[index].end() - range.begin);
    range = {range.begin + inside, range.bytes - inside};
  }
  return true;
}

}  // namespace contextune::gpu
