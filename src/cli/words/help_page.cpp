#include "cli/words/help_page.hpp"

#include <algorithm>

#include "core/value/take_until.hpp"

namespace contextune::cli {
namespace {

using PartKind = HelpPart::Kind;

constexpr std::size_t longest_heading = 40;

std::string with_blank(std::string_view a, std::string_view b) {
  std::string text(a);
  return text.append(a.empty() || b.empty() ? "" : " ").append(b);
}

bool is_command(std::string_view line) {
  return line.starts_with("contextune ") || line.starts_with("source <(contextune ");
}

bool is_flag_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

bool is_placeholder(std::string_view word) {
  return word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_.,") == word.npos;
}

// A term ends at two blanks, or, where flags are listed, at the first word that is neither flag nor
// placeholder.
std::size_t end_of_term(std::string_view line) {
  const std::size_t gap = line.find("  ");
  if (gap != line.npos || !line.starts_with('-')) return std::min(gap, line.size());
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (!word.starts_with('-') && !is_placeholder(word)) return at - 1;
    at = end + 1;
  }
  return line.size();
}

// Where `term` stands in `text` as a word of its own, from `begin` on.
std::size_t find_word(std::string_view text, std::string_view term, std::size_t begin = 0) {
  while (true) {
    const std::size_t at = text.find(term, begin);
    if (at == text.npos) return at;
    const std::size_t end = at + term.size();
    const bool begins = at == 0 || !is_flag_character(text[at - 1]);
    if (begins && (end == text.size() || !is_flag_character(text[end]))) return at;
    begin = end;
  }
}

// Reads lines one after another; a description goes on in lines that are indented further.
class Reader {
 public:
  explicit Reader(HelpPage& page) : page_(page) {}

  void read(std::string_view line) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == line.npos) {
      goes_on_ = false;
      return;
    }
    const std::string_view text = line.substr(indent);
    if (indent == 0) {
      if (goes_on_ && page_.parts.back().kind == PartKind::Paragraph) {
        page_.parts.back().text = with_blank(page_.parts.back().text, text);
      } else {
        page_.parts.push_back({PartKind::Paragraph, std::string(text), {}, false});
      }
    } else if (goes_on_ && is_listed() && indent > indent_ + 2) {
      HelpPart& term = page_.parts.back();
      term.kind = PartKind::Term;
      term.description = with_blank(term.description, text);
    } else {
      begin_term(text, indent);
    }
    goes_on_ = true;
  }

 private:
  [[nodiscard]] bool is_listed() const {
    return page_.parts.back().kind == PartKind::Term ||
           page_.parts.back().kind == PartKind::Example;
  }

  void begin_term(std::string_view text, std::size_t indent) {
    if (!page_.parts.empty() && page_.parts.back().kind == PartKind::Paragraph) {
      std::string& before = page_.parts.back().text;
      if (before.size() <= longest_heading && !before.ends_with('.'))
        page_.parts.back().kind = PartKind::Heading;
    }
    const std::size_t gap = end_of_term(text);
    const std::size_t description = std::min(text.find_first_not_of(' ', gap), text.size());
    HelpPart part{.kind = PartKind::Term,
                  .text = std::string(text.substr(0, gap)),
                  .description = std::string(text.substr(description)),
                  .nested = indent > 2};
    if (is_command(text) && part.description.empty()) part.kind = PartKind::Example;
    indent_ = indent;
    page_.parts.push_back(std::move(part));
  }

  HelpPage& page_;
  std::size_t indent_ = 0;
  bool goes_on_ = false;  ///< the line before was not empty
};

// Up to the end of the sentence or clause, and without what stands in parentheses before it.
std::string first_clause(std::string_view text) {
  if (text.starts_with('(')) {
    const std::size_t close = text.find(") ");
    text.remove_prefix(close == text.npos ? 0 : close + 2);
  }
  for (const std::string_view end : {". ", "; "}) text = text.substr(0, text.find(end));
  while (text.ends_with('.') || text.ends_with(';')) text.remove_suffix(1);
  return std::string(text);
}

// "what it replaced" of "--history: what it replaced", in any text of the page.
std::string said_in_passing(const HelpPage& page, std::string_view term) {
  for (const HelpPart& part : page.parts) {
    const std::string_view text = part.description.empty() ? part.text : part.description;
    for (std::size_t at = find_word(text, term); at != text.npos;
         at = find_word(text, term, at + 1)) {
      std::string_view rest = text.substr(at + term.size());
      rest.remove_prefix(
          std::min(rest.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ "), rest.size()));
      if (rest.starts_with(": ")) return first_clause(rest.substr(2));
    }
  }
  return {};
}

}  // namespace

HelpPage read_help(std::string_view text) {
  HelpPage page;
  const bool is_overview = text.starts_with("contextune tunes");
  while (!is_overview && text.starts_with("contextune ")) {
    std::string& usage = page.usages.emplace_back(take_until(text, '\n'));
    while (text.starts_with(' ')) {  // it goes on
      std::string_view line = take_until(text, '\n');
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      usage = with_blank(usage, line);
    }
  }
  Reader reader(page);
  while (!text.empty()) reader.read(take_until(text, '\n'));
  return page;
}

std::string meaning_in(const HelpPage& page, std::string_view term) {
  for (const HelpPart& part : page.parts) {
    const bool is_term = part.kind == PartKind::Term && !is_command(part.text);
    if (is_term && find_word(part.text, term) != std::string::npos)
      return first_clause(part.description);
  }
  return said_in_passing(page, term);
}

std::string placeholder_in(const HelpPage& page, std::string_view flag) {
  const auto behind = [&](std::string_view text) -> std::string {
    for (std::size_t at = find_word(text, flag); at != text.npos;
         at = find_word(text, flag, at + 1)) {
      std::string_view rest = text.substr(at + flag.size());
      if (!rest.starts_with(' ') && !rest.starts_with('=') && !rest.starts_with("[=")) continue;
      rest.remove_prefix(rest.starts_with('[') ? 2 : 1);
      const std::string_view word =
          rest.substr(0, rest.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"));
      if (word.size() > 1) return std::string(word);
    }
    return {};
  };
  for (const HelpPart& part : page.parts)
    if (std::string found = behind(part.text); part.kind == PartKind::Term && !found.empty())
      return found;
  for (const std::string& usage : page.usages)
    if (std::string found = behind(usage); !found.empty()) return found;
  return {};
}

}  // namespace contextune::cli
