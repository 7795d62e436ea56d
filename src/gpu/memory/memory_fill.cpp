#include "gpu/memory/memory_fill.hpp"

#include <algorithm>

namespace contextune::gpu {
namespace {

// Size of the pattern, which is repeated, and of its pieces of one kind.
constexpr std::size_t pattern_bytes = 65520;
constexpr std::size_t chunk_bytes = 16;

/// A byte of numbers of one kind: above zero, below it, or small ones. In any floating-point format
/// the first two have a common size, and none is infinite or NaN.
std::byte byte_of(std::uint64_t kind, std::size_t place, std::uint64_t random) {
  constexpr std::uint64_t above = 0x38;
  constexpr std::uint64_t below = 0xb8;
  constexpr std::uint64_t of_a_kind = 12;
  if (kind == 2) return static_cast<std::byte>(place % 4 == 0 ? 2 + random % 250 : 0);
  return static_cast<std::byte>((kind == 0 ? above : below) + random % of_a_kind);
}

}  // namespace

std::vector<std::byte> fill_memory(const Driver& driver, CUstream stream, MemoryRange range,
                                   const Fill& fill) {
  std::vector<std::byte> pattern(std::min(range.bytes, pattern_bytes));
  std::uint64_t state = fill.seed;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t kind =
        fill.is_above_zero ? 0 : (i / chunk_bytes + fill.seed) % Fill::num_kinds;
    pattern[i] = byte_of(kind, i, state >> 33U);
  }
  const auto copy = [&](CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    check(driver, driver.cuMemcpyAsync(to, from, bytes, stream), "filling memory before a run");
  };
  if (pattern.empty()) return pattern;
  copy(range.begin, reinterpret_cast<CUdeviceptr>(pattern.data()), pattern.size());
  for (std::size_t done = pattern.size(); done < range.bytes;) {
    const std::size_t more = std::min(done, range.bytes - done);
    copy(range.begin + done, range.begin, more);
    done += more;
  }
  return pattern;
}

}  // namespace contextune::gpu
