#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace contextune::cli {

/// A text is shortened in its middle to so many characters: names of templates grow without bound.
inline constexpr std::size_t most_characters = 2000;

/// The texts of a page, each of them once. They come from a log, so any bytes may come: what a
/// reader could not see is escaped as in the log.
class StringTable {
 public:
  /// The first text is the empty one; the second stands for those beyond what a column can name.
  StringTable();

  [[nodiscard]] std::size_t place_of(std::string_view text);
  /// Of a column of numbers, which is plain and of any length.
  [[nodiscard]] std::size_t place_of_column(std::string column);
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// The same of one text.
[[nodiscard]] std::string shown_text(std::string_view text);
/// Of a text that may have lines of its own.
[[nodiscard]] std::string shown_lines(std::string_view text);

}  // namespace contextune::cli
