#include "gpu/memory/block_store.hpp"

#include <algorithm>
#include <new>
#include <numeric>
#include <string>

#include "gpu/memory/host_memory.hpp"

namespace contextune::gpu {
namespace {

constexpr const char* saving = "copying memory to be restored";
constexpr const char* restoring = "restoring memory";

std::string mebibytes(std::size_t bytes) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20U;
  return std::to_string(bytes / mebibyte + (bytes % mebibyte != 0 ? 1 : 0)) + " MiB";
}

// A copy lies as its original does within this, so that both allow the widest accesses.
constexpr std::size_t alignment = 256;

std::size_t aligned_as(CUdeviceptr original, std::size_t offset) {
  return (offset + alignment - 1) / alignment * alignment + original % alignment;
}

}  // namespace

NoRoom::NoRoom(std::size_t wanted, std::size_t on_device, std::size_t on_host)
    : Error("no room to copy " + mebibytes(wanted) + " of memory: " + mebibytes(on_device) +
            " of device memory and " + mebibytes(on_host) + " of host memory could be taken"),
      wanted_bytes(wanted),
      device_bytes(on_device),
      host_bytes(on_host) {}

BlockStore::BlockStore(const Driver& driver, CUcontext context, BlockKernels& kernels,
                       Limits limits)
    : driver_(driver),
      context_(context),
      limits_(limits),
      copier_(driver, context, kernels),
      host_(driver, context) {}

CUdeviceptr BlockStore::copy_of(std::uint32_t block) const noexcept {
  const auto run = std::find_if(runs_.begin(), runs_.end(),
                                [&](const Run& one) { return block < one.blocks.end; });
  if (run == runs_.end() || block < run->blocks.first) return 0;
  return run->copy + std::size_t{block - run->blocks.first} * Footprint::block_bytes;
}

void BlockStore::release() noexcept {
  if (copier_.stuck()) {
    host_.abandon();
  } else if (device_ != 0) {
    const RelaxedCapture relaxed(driver_);
    const CurrentContext current(driver_, context_);
    (void)driver_.cuMemFree(device_);
  }
  host_.release();
  device_ = 0;
  device_bytes_ = 0;
  runs_.clear();
  restored_.clear();
}

std::size_t BlockStore::device_room() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check(driver_, driver_.cuMemGetInfo(&free, &total), "asking for free device memory");
  const std::size_t reserve = std::max(reserve_bytes, free / 20);
  return std::min(limits_.device_bytes, free - std::min(free, reserve));
}

std::size_t BlockStore::host_room() const {
  return std::min(limits_.host_bytes, available_host_memory() / 2);
}

/// Where copies lie: in device memory up to `room`, then in host memory.
struct BlockStore::Plan {
  std::vector<Run> runs;       ///< `copy` is an offset
  std::size_t num_device = 0;  ///< so many of them on the device
  std::size_t device_bytes = 0;
  std::size_t host_bytes = 0;

  Plan(const std::vector<Run>& wanted, std::size_t room) {
    for (Run run : wanted) {
      const std::size_t offset = aligned_as(run.original.begin, device_bytes);
      const bool fills_device = num_device == runs.size();
      if (fills_device && offset + run.original.bytes <= room) {
        run.copy = offset;
        add_to_device(run);
        continue;
      }
      const std::size_t whole =
          fills_device && offset < room ? (room - offset) / Footprint::block_bytes : 0;
      if (whole != 0) {
        Run front = run;
        front.blocks.end = front.blocks.first + static_cast<std::uint32_t>(whole);
        front.original.bytes = whole * Footprint::block_bytes;
        front.copy = offset;
        add_to_device(front);
        run.blocks.first = front.blocks.end;
        run.original.begin = front.original.end();
        run.original.bytes -= front.original.bytes;
      }
      run.copy = aligned_as(run.original.begin, host_bytes);
      host_bytes = run.copy + run.original.bytes;
      runs.push_back(run);
    }
  }

 private:
  void add_to_device(const Run& run) {
    device_bytes = run.copy + run.original.bytes;
    runs.push_back(run);
    ++num_device;
  }
};

void BlockStore::allocate(std::vector<Run>& runs) {
  const RelaxedCapture relaxed(driver_);
  const CurrentContext current(driver_, context_);
  std::size_t on_device = device_room();
  const std::size_t on_host = host_room();
  Plan plan(runs, on_device);
  if (plan.device_bytes != 0 && plan.host_bytes <= on_host) {
    const CUresult allocated = driver_.cuMemAlloc(&device_, plan.device_bytes);
    if (allocated == CUDA_ERROR_OUT_OF_MEMORY) {
      plan = Plan(runs, on_device = 0);
    } else {
      check(driver_, allocated, "making room for a copy of memory");
      device_bytes_ = plan.device_bytes;
    }
  }
  const auto wanted =
      std::accumulate(runs.begin(), runs.end(), std::size_t{0},
                      [](std::size_t sum, const Run& run) { return sum + run.original.bytes; });
  if (plan.host_bytes > on_host) throw NoRoom(wanted, on_device, on_host);
  if (plan.host_bytes != 0) {
    try {
      host_.reserve(plan.host_bytes);
    } catch (const Error&) {
      throw NoRoom(wanted, on_device, 0);
    }
  }
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    plan.runs[i].copy +=
        i < plan.num_device ? device_ : reinterpret_cast<CUdeviceptr>(host_.data());
  }
  runs = std::move(plan.runs);
}

void BlockStore::copy_to_store(std::vector<Run> runs, Deadline deadline) {
  release();
  if (runs.empty()) return;
  std::size_t num_blocks = 0;
  for (const Run& run : runs) num_blocks += run.blocks.end - run.blocks.first;
  copier_.start(num_blocks, saving);
  try {
    allocate(runs);
    for (const Run& run : runs) copier_.add(run.copy, run.original.begin, run.original.bytes);
    copier_.finish(deadline);
  } catch (...) {
    copier_.give_up(deadline);
    release();
    throw;
  }
  runs_ = std::move(runs);
}

void BlockStore::save(const Footprint& footprint, std::span<const std::uint32_t> blocks,
                      Deadline deadline) {
  std::vector<Run> runs;
  std::uint32_t end_of_range = 0;
  for (const std::uint32_t number : blocks) {
    if (number >= footprint.num_blocks() || (!runs.empty() && number < runs.back().blocks.end)) {
      throw Error("blocks to be saved are not ascending numbers of the footprint");
    }
    if (!runs.empty() && number == runs.back().blocks.end && number < end_of_range) {
      ++runs.back().blocks.end;
    } else {
      runs.push_back({{number, number + 1}, footprint.block(number), 0});
      end_of_range = footprint.range_of(number).end;
    }
  }
  for (Run& run : runs) {
    run.original.bytes = footprint.block(run.blocks.end - 1).end() - run.original.begin;
  }
  copy_to_store(std::move(runs), deadline);
}

void BlockStore::save(const Footprint& footprint, Deadline deadline) {
  std::vector<Run> runs;
  for (std::uint32_t number = 0; number != footprint.num_blocks();) {
    const Footprint::Blocks blocks = footprint.range_of(number);
    runs.push_back({blocks, footprint.ranges()[runs.size()], 0});
    number = blocks.end;
  }
  copy_to_store(std::move(runs), deadline);
}

void BlockStore::restore(std::span<const std::uint32_t> blocks, Deadline deadline) {
  const bool again = !restored_.empty() &&
                     std::equal(blocks.begin(), blocks.end(), restored_.begin(), restored_.end());
  try {
    if (again) {
      copier_.again();
    } else {
      start_restore(blocks);
    }
    copier_.finish(deadline);
  } catch (...) {
    restored_.clear();
    copier_.give_up(deadline);
    throw;
  }
  if (!again) remember_restored(blocks);
}

void BlockStore::remember_restored(std::span<const std::uint32_t> blocks) noexcept {
  try {
    restored_.assign(blocks.begin(), blocks.end());
  } catch (const std::bad_alloc&) {
    restored_.clear();  // they are listed anew, then
  }
}

void BlockStore::start_restore(std::span<const std::uint32_t> blocks) {
  restored_.clear();
  // The driver copies from the host twice as fast.
  copier_.start(blocks.size(), restoring,
                host_.bytes() == 0 ? BlockCopier::Large::ByKernel : BlockCopier::Large::ByDriver);
  auto run = runs_.begin();
  for (std::size_t i = 0; i < blocks.size();) {
    while (run != runs_.end() && run->blocks.end <= blocks[i]) ++run;
    if (run == runs_.end() || blocks[i] < run->blocks.first) {
      throw Error("restoring memory: block " + std::to_string(blocks[i]) + " was not saved");
    }
    const std::size_t offset = std::size_t{blocks[i] - run->blocks.first} * Footprint::block_bytes;
    std::size_t count = 1;
    while (i + count < blocks.size() && blocks[i + count] == blocks[i] + count &&
           blocks[i + count] < run->blocks.end) {
      ++count;
    }
    copier_.add(run->original.begin + offset, run->copy + offset,
                std::min(count * Footprint::block_bytes, run->original.bytes - offset));
    i += count;
  }
}

void BlockStore::restore(Deadline deadline) {
  std::vector<std::uint32_t> blocks;
  for (const Run& run : runs_) {
    for (std::uint32_t number = run.blocks.first; number != run.blocks.end; ++number) {
      blocks.push_back(number);
    }
  }
  restore(blocks, deadline);
}

}  // namespace contextune::gpu
