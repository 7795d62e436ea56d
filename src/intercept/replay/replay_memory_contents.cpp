// Contents of a region's memory beside what a visit left there, to tell results from what was there
// before.
#include <algorithm>

#include "core/value/stable_hash.hpp"
#include "gpu/memory/memory_fill.hpp"
#include "intercept/replay/replay_memory.hpp"

namespace contextune::intercept {

bool ReplayMemory::is_copied(gpu::MemoryRange range) const {
  return std::ranges::any_of(areas_, [range](const Area& area) {
    if (!area.footprint.contains(range)) return false;
    const auto blocks = area.footprint.blocks_of(range);
    for (std::uint32_t block = blocks.first; block < blocks.end; ++block)
      if (!area.copied[block]) return false;
    return true;
  });
}

void ReplayMemory::fill(std::span<const gpu::MemoryRange> ranges, std::uint64_t seed) {
  std::vector<std::vector<std::byte>> patterns;
  for (const gpu::MemoryRange& range : ranges) {
    const gpu::Fill fill{seed + gpu::Fill::num_kinds * patterns.size(), !tolerance_.is_bitwise()};
    patterns.push_back(gpu::fill_memory(driver_, stream_.handle(), range, fill));
  }
  stream_.wait(deadline(), "filling memory before a run");
}

void ReplayMemory::take_reference() {
  drop_reference();
  for (Area& area : areas_) {
    area.reference_hashes = hash(area.footprint);
    if (tolerance_.is_bitwise()) continue;
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t block = 0; block < area.footprint.num_blocks(); ++block)
      if (area.reference_hashes[block] != area.initial_hashes[block]) blocks.push_back(block);
    area.reference = save(area.footprint, blocks);
  }
}

void ReplayMemory::drop_reference() {
  for (Area& area : areas_) {
    if (area.reference != nullptr) {
      left_.device_bytes += area.reference->device_bytes();
      left_.host_bytes += area.reference->host_bytes();
      costs_.device_bytes -= area.reference->device_bytes();
      costs_.host_bytes -= area.reference->host_bytes();
    }
    area.reference.reset();
    area.reference_hashes.clear();
  }
}

bool ReplayMemory::agrees_with_reference() {
  for (Area& area : areas_) {
    const auto hashes = hash(area.footprint);
    for (std::uint32_t block = 0; block < hashes.size(); ++block) {
      if (hashes[block] == area.reference_hashes[block]) continue;
      if (tolerance_.is_bitwise()) return false;
      const CUdeviceptr was = area.reference->copy_of(block);
      if (was == 0 || !agrees(area.footprint.block(block), was)) return false;
    }
  }
  return true;
}

void ReplayMemory::put_back() {
  for (Area& area : areas_) {
    const auto hashes = hash(area.footprint);
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t block = 0; block < hashes.size(); ++block) {
      if (hashes[block] == area.initial_hashes[block]) continue;
      if (!area.copied[block]) {
        throw MixedMemory("a run wrote to memory of which there is no copy, at " +
                          std::to_string(area.footprint.block(block).begin));
      }
      blocks.push_back(block);
    }
    if (blocks.empty()) continue;
    try {
      area.initial->restore(blocks, deadline());
    } catch (const std::exception& error) {
      throw MixedMemory(error.what());
    }
  }
}

std::uint64_t ReplayMemory::change_in(std::span<const gpu::MemoryRange> ranges) const {
  StableHash hash;
  bool any = false;
  for (const Area& area : areas_) {
    for (const std::uint32_t block : area.dirty) {
      const gpu::MemoryRange at = area.footprint.block(block);
      const bool counts = ranges.empty() || std::ranges::any_of(ranges, [&](const auto& range) {
                            return at.begin < range.end() && range.begin < at.end();
                          });
      if (!counts) continue;
      any = true;
      hash.add(static_cast<std::uint64_t>(at.begin));
      hash.add(area.initial_hashes[block]);
      hash.add(area.final_hashes[block]);
    }
  }
  return any ? hash.value() | 1U : 0;
}

}  // namespace contextune::intercept
