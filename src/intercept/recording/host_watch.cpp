#include "intercept/recording/host_watch.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "gpu/memory/block_hash.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t block_bytes = 4096;
constexpr std::size_t most_bytes = std::size_t{2} << 30U;

using Buffer = std::array<std::byte, block_bytes>;

/// False: it cannot be read. The program may have given memory back without saying so, so it is the
/// system that reads, which answers an error where we would end the process.
bool read(std::uintptr_t begin, std::size_t bytes, Buffer& buffer) {
  iovec local{buffer.data(), bytes};
  iovec remote{reinterpret_cast<void*>(begin), bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

bool is_known(const Recording& recording, std::uintptr_t begin, std::size_t bytes) {
  return std::ranges::any_of(recording.operations, [&](const Operation& operation) {
    if (!operation.host) return false;
    const auto other = reinterpret_cast<std::uintptr_t>(operation.host->program);
    return begin < other + operation.host->size_bytes && other < begin + bytes;
  });
}

}  // namespace

bool HostWatch::begin(std::span<const Allocation> allocations) {
  const auto is_watched = [](const Allocation& one) {
    return one.kind == AllocationKind::Host && !one.of_nccl;
  };
  std::size_t total = 0;
  for (const Allocation& one : allocations)
    if (is_watched(one)) total += one.bytes;
  if (total > most_bytes) return false;
  Buffer buffer;
  for (const Allocation& one : allocations) {
    if (!is_watched(one)) continue;
    for (std::size_t at = 0; at < one.bytes; at += block_bytes) {
      Block block;
      block.begin = static_cast<std::uintptr_t>(one.begin) + at;
      block.bytes = std::min(block_bytes, one.bytes - at);
      if (!read(block.begin, block.bytes, buffer)) return false;
      block.hash = gpu::block_hash(buffer.data(), block.bytes);
      blocks_.push_back(std::move(block));
    }
  }
  return true;
}

bool HostWatch::keep_unexplained(const Recording& recording) {
  Buffer buffer;
  std::erase_if(blocks_, [&](Block& block) {
    if (!read(block.begin, block.bytes, buffer)) return true;  // gone
    if (gpu::block_hash(buffer.data(), block.bytes) == block.hash) return true;
    if (is_known(recording, block.begin, block.bytes)) return true;
    block.kept.assign(buffer.data(), buffer.data() + block.bytes);
    return false;
  });
  return !blocks_.empty();
}

bool HostWatch::put_back() {
  Buffer buffer;
  bool any = false;
  for (Block& block : blocks_) {
    if (!read(block.begin, block.bytes, buffer) ||
        std::memcmp(buffer.data(), block.kept.data(), block.bytes) == 0) {
      continue;
    }
    any = true;
    iovec local{block.kept.data(), block.bytes};
    iovec remote{reinterpret_cast<void*>(block.begin), block.bytes};
    (void)process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
  }
  return any;
}

}  // namespace contextune::intercept
