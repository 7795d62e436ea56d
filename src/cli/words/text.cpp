#include "cli/words/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cli/words/colour.hpp"

namespace contextune::cli {
namespace {

std::string formatted(const char* format, double number) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, number);
  return buffer.data();
}

// Three digits that mean something.
std::string three_digits(double number) {
  const double size = std::abs(number);
  return formatted(size < 9.995 ? "%.2f" : size < 99.95 ? "%.1f" : "%.0f", number);
}

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
}

// Bytes of the first `count` characters.
std::size_t bytes_of(std::string_view text, std::size_t count) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (starts_character(text[i]) && count-- == 0) break;
    ++i;
  }
  return i;
}

}  // namespace

std::string time_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const double size = std::abs(seconds);
  if (size < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (size < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

std::string percent_text(double share) {
  return std::isfinite(share) ? formatted("%.1f", share * 100) + " %" : "-";
}

std::string ratio_text(double ratio) {
  return formatted("%.3f", ratio);
}

std::string bytes_text(std::uint64_t bytes) {
  auto size = static_cast<double>(bytes);
  if (size < 1024) return count_text(bytes, "byte", "bytes");
  std::string_view unit;
  for (const std::string_view larger : {" KiB", " MiB", " GiB", " TiB"}) {
    if (size < 1023.5) break;  // it is shown with three digits
    size /= 1024;
    unit = larger;
  }
  return three_digits(size).append(unit);
}

std::string count_text(unsigned long long count, std::string_view one, std::string_view many) {
  return std::to_string(count).append(" ").append(count == 1 ? one : many);
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t escape = size_of_escape(text.substr(i));
    if (escape == 0 && starts_character(text[i])) ++width;
    i += std::max<std::size_t>(escape, 1);
  }
  return width;
}

std::string shortened(const std::string& text, std::size_t width) {
  const std::size_t whole = width_of(text);
  if (whole <= width || width < 5) return text;
  const std::size_t tail = (width - 2) / 2;
  const std::size_t head = width - 2 - tail;
  return text.substr(0, bytes_of(text, head)) + ".." + text.substr(bytes_of(text, whole - tail));
}

std::string TextTable::to_string(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      const bool to_right = std::find(right_.begin(), right_.end(), i) != right_.end();
      if (i > 0) line += "  ";
      line += to_right ? space + row[i] : row[i] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace contextune::cli
