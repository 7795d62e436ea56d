#include "cli/page/columns.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace contextune::cli {
namespace {

constexpr std::string_view column_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr double steps_of_a_doubling = 4096;
constexpr double smallest_seconds = 1e-9;

void append(std::string& column, std::uint64_t number) {
  number = std::min(number, most_in_column);
  for (const unsigned shift : {12U, 6U, 0U}) column += column_digits[(number >> shift) & 63U];
}

}  // namespace

std::string time_column(const std::vector<double>& seconds) {
  std::string column;
  column.reserve(3 * seconds.size());
  for (const double one : seconds) {
    if (!(std::isfinite(one) && one > 0)) {
      append(column, 0);
      continue;
    }
    const double steps = std::log2(one / smallest_seconds) * steps_of_a_doubling;
    // 0 is for what is not known.
    append(column, 1 + static_cast<std::uint64_t>(std::max(0.0, std::round(steps))));
  }
  return column;
}

std::string number_column(const std::vector<std::uint64_t>& numbers) {
  std::string column;
  column.reserve(3 * numbers.size());
  for (const std::uint64_t number : numbers) append(column, number);
  return column;
}

}  // namespace contextune::cli
