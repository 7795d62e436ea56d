#include "intercept/replay/replay_memory.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "intercept/host/clock.hpp"

namespace contextune::intercept {
namespace {

std::vector<std::uint32_t> blocks_that_differ(const std::vector<std::uint64_t>& a,
                                              const std::vector<std::uint64_t>& b) {
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) blocks.push_back(i);
  return blocks;
}

std::vector<std::uint32_t> joined(const std::vector<std::uint32_t>& a,
                                  const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> all;
  all.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

}  // namespace

ReplayMemory::ReplayMemory(const gpu::Driver& driver, CUcontext context, gpu::BlockKernels& kernels,
                           gpu::BlockStore::Limits limits, const ResultTolerance& tolerance,
                           double seconds)
    : driver_(driver),
      context_(context),
      kernels_(kernels),
      left_(limits),
      tolerance_(tolerance),
      seconds_(seconds),
      stream_(driver, context),
      hasher_(driver, context, kernels) {}

gpu::Deadline ReplayMemory::deadline() const {
  return gpu::Deadline::in(seconds_);
}

std::vector<std::uint64_t> ReplayMemory::hash(const gpu::Footprint& footprint) {
  return hasher_.hash(footprint, deadline());
}

std::unique_ptr<gpu::BlockStore> ReplayMemory::save(const gpu::Footprint& footprint,
                                                    std::span<const std::uint32_t> blocks) {
  const double begin = now_seconds();
  auto store = std::make_unique<gpu::BlockStore>(driver_, context_, kernels_, left_);
  store->save(footprint, blocks, deadline());
  left_.device_bytes -= std::min(left_.device_bytes, store->device_bytes());
  left_.host_bytes -= std::min(left_.host_bytes, store->host_bytes());
  costs_.device_bytes += store->device_bytes();
  costs_.host_bytes += store->host_bytes();
  costs_.save_seconds += now_seconds() - begin;
  return store;
}

ReplayMemory::Area& ReplayMemory::look_at(std::vector<gpu::MemoryRange> ranges) {
  Area area;
  area.footprint = gpu::Footprint(std::move(ranges));
  area.initial_hashes = hash(area.footprint);
  area.copied.resize(area.footprint.num_blocks());
  costs_.footprint_bytes += area.footprint.bytes();
  return areas_.emplace_back(std::move(area));
}

void ReplayMemory::add(std::vector<gpu::MemoryRange> ranges,
                       std::span<const gpu::MemoryRange> only) {
  Area& area = look_at(std::move(ranges));
  std::vector<std::uint32_t> blocks;
  if (only.empty()) {
    blocks.resize(area.footprint.num_blocks());
    std::iota(blocks.begin(), blocks.end(), 0U);
  }
  for (const gpu::MemoryRange& range : only) {
    const auto some = area.footprint.blocks_of(range);
    for (std::uint32_t block = some.first; block < some.end; ++block) blocks.push_back(block);
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  try {
    area.initial = save(area.footprint, blocks);
  } catch (...) {
    areas_.pop_back();
    throw;
  }
  for (const std::uint32_t block : blocks) area.copied[block] = true;
}

void ReplayMemory::add_uncopied(std::vector<gpu::MemoryRange> ranges) {
  (void)look_at(std::move(ranges));
}

bool ReplayMemory::has(gpu::MemoryRange range) const noexcept {
  return std::any_of(areas_.begin(), areas_.end(),
                     [range](const Area& area) { return area.footprint.contains(range); });
}

bool ReplayMemory::finish() {
  bool all_copied = true;
  for (Area& area : areas_) {
    area.final_hashes = hash(area.footprint);
    area.dirty = blocks_that_differ(area.initial_hashes, area.final_hashes);
    for (const std::uint32_t block : area.dirty) {
      all_copied = all_copied && area.copied[block];
      costs_.dirty_bytes += area.footprint.block(block).bytes;
    }
  }
  if (!all_copied) return false;
  for (Area& area : areas_) area.final = save(area.footprint, area.dirty);
  return true;
}

std::vector<gpu::MemoryRange> ReplayMemory::dirty() const {
  std::vector<gpu::MemoryRange> ranges;
  for (const Area& area : areas_)
    for (const std::uint32_t block : area.dirty) ranges.push_back(area.footprint.block(block));
  return ranges;
}

void ReplayMemory::restore_initial() {
  const double begin = now_seconds();
  for (Area& area : areas_) {
    const auto blocks = joined(area.dirty, area.strays);
    if (blocks.empty()) continue;
    try {
      area.initial->restore(blocks, deadline());
    } catch (const std::exception& error) {
      throw MixedMemory(error.what());
    }
  }
  const double seconds = now_seconds() - begin;
  ++costs_.restores;
  costs_.restore_seconds +=
      (seconds - costs_.restore_seconds) / static_cast<double>(costs_.restores);
}

void ReplayMemory::restore_final() {
  // A pass that was not looked at may have written elsewhere: the first look finds that.
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      for (Area& area : areas_) {
        if (!area.strays.empty()) area.initial->restore(area.strays, deadline());
        if (!area.dirty.empty()) area.final->restore(area.dirty, deadline());
      }
      if (compare(false)) return;
    } catch (const MixedMemory&) {
      throw;
    } catch (const std::exception& error) {
      throw MixedMemory(error.what());
    }
  }
  throw MixedMemory("memory that was put back is not what it was after the region");
}

bool ReplayMemory::compare(bool tolerant) {
  const double begin = now_seconds();
  bool same = true;
  for (Area& area : areas_) {
    const auto differing = blocks_that_differ(area.final_hashes, hash(area.footprint));
    const bool wrong = !tolerant || tolerance_.is_bitwise();
    same = same && std::all_of(differing.begin(), differing.end(),
                               [&](std::uint32_t block) { return !wrong && agrees(area, block); });
    for (const std::uint32_t block : differing) {
      if (!area.copied[block]) {
        throw MixedMemory("a pass wrote to memory of which there is no copy, at " +
                          std::to_string(area.footprint.block(block).begin));
      }
    }
    std::vector<std::uint32_t> outside;
    std::set_difference(differing.begin(), differing.end(), area.dirty.begin(), area.dirty.end(),
                        std::back_inserter(outside));
    area.strays = joined(area.strays, outside);
  }
  costs_.hash_seconds = now_seconds() - begin;
  return same;
}

bool ReplayMemory::agrees(const Area& area, std::uint32_t block) {
  if (!std::binary_search(area.dirty.begin(), area.dirty.end(), block)) return false;
  return agrees(area.footprint.block(block), area.final->copy_of(block));
}

bool ReplayMemory::agrees(gpu::MemoryRange range, CUdeviceptr copy) {
  std::vector<std::byte> is(range.bytes);
  std::vector<std::byte> was(range.bytes);
  const auto read = [&](std::vector<std::byte>& into, CUdeviceptr from) {
    gpu::check(driver_,
               driver_.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(into.data()), from, into.size(),
                                     stream_.handle()),
               "reading a result");
  };
  read(is, range.begin);
  read(was, copy);
  stream_.wait(deadline(), "reading results");
  return tolerance_.agree(is, was);
}

}  // namespace contextune::intercept
