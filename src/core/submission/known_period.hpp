#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace contextune {

/// A cycle of steps, and what is known of its entries.
struct KnownPeriod {
  static constexpr std::size_t most = 8;  ///< that are known at a time

  std::uint32_t id = 0;  ///< 0: free
  std::uint32_t length = 0;
  std::uint32_t at = 0;       ///< of its tokens in the pool
  std::uint32_t least = 0;    ///< where its least rotation begins
  std::uint32_t matched = 0;  ///< the longest beginning of it that the last steps end with
  std::uint32_t runs = 0;
  bool first_is_unique = false;
  bool too_long = false;
  bool watched = false;  ///< matched is kept up to date while another is followed
  std::uint64_t identity = 0;
  std::uint64_t entries = 0;                ///< seen while it was not followed
  std::uint64_t led = 0;                    ///< seen while it was followed
  std::uint64_t counted_to = 0;             ///< the step up to which entries count already
  std::array<std::uint32_t, most> holds{};  ///< entries of others that repeat in one of it
};

}  // namespace contextune
