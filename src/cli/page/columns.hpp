#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Columns of numbers as text, three characters a number, of A-Z, a-z, 0-9, - and _. A page holds
/// very many, and JSON would take three times as much for them.
namespace contextune::cli {

/// Times in seconds, from a nanosecond on, to within 0.01 %. What is not a number or not above zero
/// counts as not known.
[[nodiscard]] std::string time_column(const std::vector<double>& seconds);

/// Whole numbers up to most_in_column; what is larger counts as that.
[[nodiscard]] std::string number_column(const std::vector<std::uint64_t>& numbers);
inline constexpr std::uint64_t most_in_column = (1U << 18U) - 1;

}  // namespace contextune::cli
