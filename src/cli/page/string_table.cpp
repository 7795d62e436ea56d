#include "cli/page/string_table.hpp"

#include "cli/words/text.hpp"
#include "core/value/take_until.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {

std::string shown_text(std::string_view text) {
  // Escaping makes a byte four of them: what is far too long is cut first.
  constexpr std::size_t most_bytes = 4 * most_characters;
  if (text.size() <= most_bytes) return shortened(log::printable(text), most_characters);
  const std::string_view head = text.substr(0, most_bytes / 2);
  const std::string_view tail = text.substr(text.size() - most_bytes / 2);
  return shortened(log::printable(head) + ".." + log::printable(tail), most_characters);
}

std::string shown_lines(std::string_view text) {
  std::string shown;
  while (!text.empty() && shown.size() < 4 * most_characters) {
    const std::string_view line = take_until(text, '\n');
    if (!line.empty()) shown += (shown.empty() ? "" : "\n") + shown_text(line);
  }
  return shown;
}

std::size_t StringTable::place_of(std::string_view text) {
  return place_of_column(shown_text(text));
}

std::size_t StringTable::place_of_column(std::string column) {
  const auto [place, fresh] = places_.emplace(column, texts_.size());
  if (fresh) texts_.push_back(std::move(column));
  return place->second;
}

}  // namespace contextune::cli
