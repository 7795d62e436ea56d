#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace contextune::cli {

/// "2.53 us", "12.4 ms", "1.25 s"; "-" for what is not a number.
[[nodiscard]] std::string time_text(double seconds);

/// "11.3 %" for 0.113; "-" for what is not a number.
[[nodiscard]] std::string percent_text(double share);

/// "1.043".
[[nodiscard]] std::string ratio_text(double ratio);

/// "96 bytes", "1.50 KiB", "48.0 MiB", "2.25 GiB".
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

/// "1 pass", "3 passes".
[[nodiscard]] std::string count_text(unsigned long long count, std::string_view one,
                                     std::string_view many);

/// Columns that a terminal takes for the text, counting one for each UTF-8 character and none for
/// colours.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// `text`, which has no colours yet, cut in its middle to at most `width` characters.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t width);

/// Rows of cells, printed in columns. A plain value.
class TextTable {
 public:
  /// Columns in `right` are aligned to the right; they count from 0.
  explicit TextTable(std::vector<std::size_t> right = {}) : right_(std::move(right)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Every line begins with `indent` and ends in a newline.
  [[nodiscard]] std::string to_string(std::string_view indent) const;

 private:
  std::vector<std::size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace contextune::cli
