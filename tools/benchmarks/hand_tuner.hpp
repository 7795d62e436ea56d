#pragma once

#include <array>
#include <string>

/// A tuner plugin of the program's own, which NCCL finds where NCCL_TUNER_PLUGIN is STATIC_PLUGIN:
/// every collective runs as was said last. All ranks have to say the same before the same call.
/// Not thread-safe.
namespace hand_tuner {

inline constexpr int num_algorithms = 7;
inline constexpr int num_protocols = 3;

/// What a collective runs with. Numbered as NCCL's table of costs.
struct Choice {
  int algorithm = -1;  ///< below 0: as NCCL chooses
  int protocol = 0;
  int channels = 0;  ///< 0: as NCCL chooses
};

/// "Ring/LL/8", "Ring/LL" without a number of channels, or "default".
[[nodiscard]] std::string name_of(const Choice& choice);

/// Holds from the next collective on. A choice that is not legal there is the default.
void choose(const Choice& choice);

/// NCCL's table at the last collective; what is negative is not legal. All negative before one.
using Costs = std::array<float, std::size_t{num_algorithms} * num_protocols>;
[[nodiscard]] const Costs& last_costs();

}  // namespace hand_tuner
