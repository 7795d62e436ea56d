#include "space/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace contextune::space {
namespace {

constexpr std::size_t longest_word = 48;

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

/// Insertions, deletions, replacements and swaps of neighbours; capital letters do not count.
std::size_t distance(std::string_view a, std::string_view b) noexcept {
  std::array<std::array<std::size_t, longest_word + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view word,
                              std::span<const std::string_view> candidates) noexcept {
  if (word.empty() || word.size() > longest_word) return {};
  std::string_view nearest;
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > longest_word) continue;
    const std::size_t steps = distance(word, candidate);
    if (steps < best) {
      best = steps;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string enumeration(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  if (const std::string_view nearest = nearest_name(word, candidates); !nearest.empty()) {
    return "; did you mean '" + std::string(nearest) + "'?";
  }
  return "; known are " + enumeration(candidates);
}

}  // namespace contextune::space
