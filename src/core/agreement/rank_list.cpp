#include "core/agreement/rank_list.hpp"

#include <algorithm>
#include <cstddef>

#include <contextune/error.hpp>

#include "core/value/parse_number.hpp"
#include "core/value/take_until.hpp"

namespace contextune {
namespace {

constexpr std::uint32_t most_of_text = 1U << 20;

/// One part of it, as "0-28/4".
void add_part(std::string_view part, std::vector<std::uint32_t>& ranks) {
  std::string_view rest = part;
  std::string_view range = take_until(rest, '/');
  std::uint32_t step = 1;
  const bool has_step = range.size() < part.size();
  const bool is_range = range.find('-') != range.npos;
  std::uint32_t first = 0;
  bool is_read = read_number(take_until(range, '-'), first);
  std::uint32_t last = first;
  if (is_range) is_read = is_read && read_number(range, last);
  if (has_step) is_read = is_read && is_range && read_number(rest, step);
  if (!is_read || last < first || step == 0 || last >= most_of_text)
    throw Error("'" + std::string(part) + "' are no ranks; write them as 0-3+6, or 0-28/4");
  for (std::uint32_t rank = first; rank <= last; rank += step) ranks.push_back(rank);
}

}  // namespace

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

std::vector<std::uint32_t> ranks_of_text(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  while (!text.empty()) add_part(take_until(text, '+'), ranks);
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace contextune
