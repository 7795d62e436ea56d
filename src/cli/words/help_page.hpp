#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Texts of --help, taken apart by how they are laid out.
namespace contextune::cli {

struct HelpPart {
  enum class Kind {
    Paragraph,  ///< lines that are not indented
    Heading,    ///< a short line, of a list behind it
    Example,    ///< an indented line that begins with a command
    Term        ///< an indented word, flag or example, and what is said of it
  };
  Kind kind = Kind::Paragraph;
  std::string text;
  std::string description;  ///< of a Term
  bool nested = false;      ///< a Term of the one before
};

struct HelpPage {
  std::vector<std::string> usages;  ///< the first lines: "contextune logs [FOLDER] [--json]"
  std::vector<HelpPart> parts;
};

[[nodiscard]] HelpPage read_help(std::string_view text);

/// The first clause of what a page says of a term or flag: "--json"; empty: it says nothing.
[[nodiscard]] std::string meaning_in(const HelpPage& page, std::string_view term);

/// What stands behind a flag in a page: "FILE" of "--report FILE"; empty: nothing does.
[[nodiscard]] std::string placeholder_in(const HelpPage& page, std::string_view flag);

}  // namespace contextune::cli
