#include "cli/page/string_table.hpp"

#include <utility>

#include "cli/page/columns.hpp"
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

StringTable::StringTable() : texts_{"", "(one of more texts than a page holds)"} {
  for (const std::string& text : texts_) places_.emplace(text, places_.size());
}

std::size_t StringTable::place_of(std::string_view text) {
  std::string shown = shown_text(text);
  const auto known = places_.find(shown);
  if (known != places_.end()) return known->second;
  return texts_.size() > most_in_column ? 1 : place_of_column(std::move(shown));
}

std::size_t StringTable::place_of_column(std::string column) {
  const auto [place, fresh] = places_.emplace(column, texts_.size());
  if (fresh) texts_.push_back(std::move(column));
  return place->second;
}

}  // namespace contextune::cli
