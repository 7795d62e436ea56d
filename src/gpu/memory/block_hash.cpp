#include "gpu/memory/block_hash.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <contextune/error.hpp>

namespace contextune::gpu {
namespace {

// The hash is the sum over the 8-byte words, the last one filled up with zeros, of
// mix(word + (its number + 1) * step), mixed once more with the number of bytes. A sum, so that
// threads may add up their words in any order. Every word is mixed for itself, so that changes do
// not cancel each other out: two flipped signs, two words swapped. The kernel in block_kernels.cpp
// does the same.
static_assert(std::endian::native == std::endian::little);
constexpr std::uint64_t step = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio

// The finaliser of MurmurHash3, but for shifts by 32, which cost a GPU nothing.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 32U)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 32U)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 32U);
}

}  // namespace

std::uint64_t block_hash(const void* bytes, std::size_t num_bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint64_t sum = 0;
  std::uint64_t key = step;
  std::uint64_t word = 0;
  std::size_t left = num_bytes;
  for (; left >= sizeof word; key += step) {
    std::memcpy(&word, at, sizeof word);
    sum += mix(word + key);
    at += sizeof word;
    left -= sizeof word;
  }
  if (left != 0) {
    word = 0;
    std::memcpy(&word, at, left);
    sum += mix(word + key);
  }
  return mix(sum + num_bytes * step);
}

BlockHasher::BlockHasher(const Driver& driver, CUcontext context, BlockKernels& kernels)
    : driver_(driver),
      kernels_(kernels),
      stream_(driver, context),
      work_(driver, context),
      hashes_(driver, context) {}

BlockHasher::~BlockHasher() {
  if (!stream_.stuck()) return;
  work_.abandon();
  hashes_.abandon();
}

void BlockHasher::write_work(const Footprint& footprint) {
  if (footprint == hashed_ && work_.data() != nullptr) return;
  hashed_ = {};
  work_.reserve(footprint.num_blocks() * sizeof(BlockKernels::HashWork));
  auto* work = static_cast<BlockKernels::HashWork*>(work_.data());
  for (const MemoryRange& range : footprint.ranges()) {
    for (std::size_t offset = 0; offset < range.bytes; offset += Footprint::block_bytes) {
      *work++ = {range.begin + offset, std::min(Footprint::block_bytes, range.bytes - offset)};
    }
  }
  hashed_ = footprint;
}

std::vector<std::uint64_t> BlockHasher::hash(const Footprint& footprint, Deadline deadline) {
  const std::uint32_t num_blocks = footprint.num_blocks();
  std::vector<std::uint64_t> hashes(num_blocks);
  if (num_blocks == 0) return hashes;
  if (stream_.stuck()) throw Error("hashing memory: an earlier time has not ended yet");
  if (driver_.simulated) {  // its device memory is host memory
    for (std::uint32_t i = 0; i < num_blocks; ++i) {
      const MemoryRange block = footprint.block(i);
      hashes[i] = block_hash(reinterpret_cast<const void*>(block.begin), block.bytes);
    }
    return hashes;
  }
  write_work(footprint);
  hashes_.reserve(num_blocks * sizeof(std::uint64_t));
  {
    const RelaxedCapture relaxed(driver_);
    const CurrentContext current(driver_, stream_.context());
    void* work = work_.data();
    void* results = hashes_.data();
    std::array<void*, 2> arguments{&work, &results};
    check(driver_,
          driver_.cuLaunchKernel(kernels_.hash(), num_blocks, 1, 1, BlockKernels::hash_threads, 1,
                                 1, 0, stream_.handle(), arguments.data(), nullptr),
          "hashing memory");
  }
  stream_.wait(deadline, "hashing memory");
  std::memcpy(hashes.data(), hashes_.data(), num_blocks * sizeof(std::uint64_t));
  return hashes;
}

}  // namespace contextune::gpu
