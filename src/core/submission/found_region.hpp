#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace contextune {

/// A stretch that a program repeats, as it is told to a person.
struct FoundRegion {
  // The parts of one period.
  std::uint32_t launches = 0;
  std::uint32_t graph_launches = 0;
  std::uint32_t copies = 0;
  std::uint32_t waits = 0;
  std::string first;         ///< name of the kernel (or graph) that it begins with; may be empty
  std::uint32_t joined = 1;  ///< periods in an entry
  std::uint64_t entries = 0;
  double share = 0;           ///< of the elapsed time
  std::uint32_t threads = 1;  ///< that repeat it
};

/// A region with the parts of one period; the rest has its defaults.
[[nodiscard]] FoundRegion region_of_steps(std::span<const std::uint64_t> tokens);

/// "every 4 launches from dev_lapl_iter; 1,250 entries; 97 % of the elapsed time"
[[nodiscard]] std::string text_of(const FoundRegion& region);
/// All of them in one sentence; "nothing repeats: the process is the region" for none.
[[nodiscard]] std::string text_of(std::span<const FoundRegion> regions);

/// 1250 as "1,250".
[[nodiscard]] std::string text_with_thousands(std::uint64_t number);

}  // namespace contextune
