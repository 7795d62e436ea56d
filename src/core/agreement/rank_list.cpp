#include "core/agreement/rank_list.hpp"

#include <cstddef>

namespace contextune {

std::string text_of_ranks(std::span<const std::uint32_t> ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    const std::uint32_t step = i + 1 < ranks.size() ? ranks[i + 1] - ranks[i] : 0;
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] - ranks[last] == step) ++last;
    if (step != 1 && last - i < 2) last = i;
    text += (text.empty() ? "" : "+") + std::to_string(ranks[i]);
    if (last > i) text += "-" + std::to_string(ranks[last]);
    if (last > i && step > 1) text += "/" + std::to_string(step);
    i = last + 1;
  }
  return text;
}

}  // namespace contextune
