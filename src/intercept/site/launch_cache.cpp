#include "intercept/site/launch_cache.hpp"

#include "intercept/host/hash.hpp"

namespace contextune::intercept {

LaunchKey::LaunchKey(const Launch& launch) noexcept
    : function(launch.function),
      context(launch.context),
      grid(launch.grid),
      block(launch.block),
      shared_bytes(launch.shared_bytes),
      kind(static_cast<std::uint32_t>(launch.fn)),
      attributes_hash(launch.num_attributes == 0 ? 0 : launch.attributes_hash()) {}

std::uint64_t LaunchKey::hash() const noexcept {
  // Two chains that the processor can work on at once.
  std::uint64_t a =
      mix(reinterpret_cast<std::uintptr_t>(function), (std::uint64_t{grid[0]} << 32U) | block[0]);
  std::uint64_t b = mix(reinterpret_cast<std::uintptr_t>(context) ^ attributes_hash,
                        (std::uint64_t{grid[1]} << 32U) | block[1]);
  a = mix(a, (std::uint64_t{grid[2]} << 32U) | block[2]);
  b = mix(b, (std::uint64_t{shared_bytes} << 32U) | kind);
  return mix(a, b);
}

}  // namespace contextune::intercept
