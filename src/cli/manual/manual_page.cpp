#include "cli/manual/manual_page.hpp"

#include <algorithm>
#include <cctype>

namespace contextune::cli {
namespace {

using PartKind = HelpPart::Kind;

// Text in which roff finds no request and no escape, and whose dashes can be copied.
std::string plain(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result += "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '\'':
        result += "\\(aq";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// Words in backquotes are bold, as commands and flags are.
std::string marked(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('`');
    const std::size_t close = open == text.npos ? open : text.find('`', open + 1);
    if (close == text.npos) return result + plain(text);
    result += plain(text.substr(0, open)) + "\\fB" +
              plain(text.substr(open + 1, close - open - 1)) + "\\fR";
    text.remove_prefix(close + 1);
  }
  return result;
}

// A sentence a line, so that roff spaces them, and no line begins with a request.
std::string paragraph(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    std::size_t end = 0;
    while (end < text.size()) {
      end = std::min(text.find(". ", end), text.size());
      if (end == text.size() || std::isupper(static_cast<unsigned char>(text[end + 2])) != 0) break;
      end += 2;
    }
    const std::size_t length = std::min(end + 1, text.size());
    std::string line = marked(text.substr(0, length));
    if (line.starts_with("\\(aq") || line.starts_with('.')) line.insert(0, "\\&");
    result += line + "\n";
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return result;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string heading(std::string_view text) {
  while (text.ends_with(':')) text.remove_suffix(1);
  return ".SH " + plain(upper(text)) + "\n";
}

std::string synopsis(const ManualPage& page) {
  if (page.help.usages.empty()) return "\\fBcontextune\\fR COMMAND [ARGUMENTS]\n";
  std::string command = page.name;
  std::replace(command.begin(), command.end(), '-', ' ');
  std::string text;
  for (const std::string& usage : page.help.usages) {
    text += text.empty() ? "" : ".br\n";
    text += "\\fB" + plain(command) + "\\fR" +
            plain(usage.substr(std::min(command.size(), usage.size()))) + "\n";
  }
  return text;
}

bool is_capital(char c) {
  return c >= 'A' && c <= 'Z';
}

// A flag, or an argument: "FOLDER".
bool is_option(std::string_view term) {
  return term.starts_with('-') || (term.size() > 1 && is_capital(term[0]) && is_capital(term[1]));
}

// The parts in the order of the help, but for examples and the exit status, which come last.
class Body {
 public:
  explicit Body(const HelpPage& help) {
    for (const HelpPart& part : help.parts) add(part);
    leave_nested();
  }

  [[nodiscard]] std::string text() const {
    return ".SH DESCRIPTION\n" + text_ + (options_.empty() ? "" : ".SH OPTIONS\n" + options_) +
           headed_ + (status_.empty() ? "" : ".SH EXIT STATUS\n" + status_) +
           (examples_.empty() ? "" : ".SH EXAMPLES\n" + examples_);
  }

 private:
  void add(const HelpPart& part) {
    switch (part.kind) {
      case PartKind::Paragraph:
        return add_paragraph(part.text);
      case PartKind::Heading:
        leave_nested();
        where_ = &headed_;
        *where_ += heading(part.text);
        after_heading_ = true;
        in_list_ = false;
        return;
      case PartKind::Example:
        return add_example(part);
      case PartKind::Term:
        break;
    }
    if (part.text.find("contextune ") != std::string::npos) return add_example(part);
    add_term(part);
  }

  void add_paragraph(std::string_view text) {
    constexpr std::string_view status = "Exit status: ";
    leave_nested();
    if (text.starts_with(status)) {
      text.remove_prefix(status.size());
      status_ += paragraph(text);
      return;
    }
    // Behind a list under a heading, or of options, the text goes on.
    if (where_ == &options_) where_ = &text_;
    *where_ += where_->empty() ? "" : ".PP\n";
    *where_ += paragraph(text);
    in_list_ = after_heading_ = false;
  }

  void add_term(const HelpPart& part) {
    // A list that has the heading over it, or goes on, stays where it is.
    const bool of_heading = where_ == &headed_ && (in_list_ || after_heading_);
    if (!part.nested && !of_heading) {
      leave_nested();
      where_ = is_option(part.text) ? &options_ : &text_;
    }
    in_list_ = true;
    after_heading_ = false;
    if (part.nested && !nested_) *where_ += ".RS\n";
    if (!part.nested) leave_nested();
    nested_ = part.nested;
    std::string said = part.description;
    if (said.find(". ") != std::string::npos && !said.ends_with('.')) said += '.';
    *where_ += ".TP\n.B " + plain(part.text) + "\n" + (said.empty() ? "\\&\n" : paragraph(said));
  }

  void add_example(const HelpPart& part) {
    examples_ +=
        (examples_.empty() ? "" : ".PP\n") + std::string(".EX\n") + plain(part.text) + "\n.EE\n";
    if (!part.description.empty()) examples_ += ".RS\n" + paragraph(part.description) + ".RE\n";
  }

  void leave_nested() {
    if (nested_) *where_ += ".RE\n";
    nested_ = false;
  }

  std::string text_;
  std::string options_;
  std::string headed_;
  std::string status_;
  std::string examples_;
  std::string* where_ = &text_;
  bool in_list_ = false;
  bool after_heading_ = false;
  bool nested_ = false;
};

}  // namespace

std::string roff_of(const ManualPage& page, std::string_view version) {
  std::string text = ".\\\" As `contextune manual` prints it.\n.TH " + plain(upper(page.name)) +
                     " 1 \"\" \"contextune " + std::string(version) + "\" \"User Commands\"\n";
  text += ".SH NAME\n" + plain(page.name) + " \\- " + plain(page.purpose) + "\n";
  text += ".SH SYNOPSIS\n" + synopsis(page) + Body(page.help).text();
  text += ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < page.see_also.size(); ++i)
    text +=
        ".BR " + plain(page.see_also[i]) + " (1)" + (i + 1 < page.see_also.size() ? ",\n" : "\n");
  return text;
}

}  // namespace contextune::cli
