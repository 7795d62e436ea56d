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
  std::string text = page.help.synopsis;
  if (text.empty()) return "\\fBcontextune\\fR COMMAND [ARGUMENTS]\n";
  std::string command = page.name;
  std::replace(command.begin(), command.end(), '-', ' ');
  return "\\fB" + plain(command) + "\\fR" +
         plain(text.substr(std::min(command.size(), text.size()))) + "\n";
}

// Paragraphs and lists in the order of the help; the examples come last.
class Body {
 public:
  explicit Body(const HelpPage& help) {
    for (const HelpPart& part : help.parts) add(part);
    leave_list();
  }

  [[nodiscard]] std::string text() const {
    return ".SH DESCRIPTION\n" + description_ + options_ +
           (status_.empty() ? "" : ".SH EXIT STATUS\n" + status_) +
           (examples_.empty() ? "" : ".SH EXAMPLES\n" + examples_);
  }

 private:
  void add(const HelpPart& part) {
    if (part.kind == PartKind::Paragraph) return add_paragraph(part.text);
    if (part.kind == PartKind::Heading) {
      leave_list();
      options_ += heading(part.text);
      headed_ = true;
      return;
    }
    const bool of_contextune = part.text.find("contextune ") != std::string::npos;
    if (part.kind == PartKind::Example || of_contextune) return add_example(part);
    if (!headed_) options_ += ".SH ARGUMENTS AND OPTIONS\n";
    headed_ = true;
    if (part.nested && !nested_) options_ += ".RS\n";
    if (!part.nested && nested_) options_ += ".RE\n";
    nested_ = part.nested;
    std::string said = part.description;
    if (said.find(". ") != std::string::npos && !said.ends_with('.')) said += '.';
    options_ += ".TP\n.B " + plain(part.text) + "\n" + (said.empty() ? "\\&\n" : paragraph(said));
  }

  void add_paragraph(std::string_view text) {
    constexpr std::string_view status = "Exit status: ";
    if (text.starts_with(status)) {
      leave_list();
      std::string said(text.substr(status.size()));
      if (!said.empty() && said.back() != '.') said += '.';
      status_ += paragraph(said);
      return;
    }
    std::string& where = headed_ ? options_ : description_;
    if (nested_) leave_list();
    if (!where.empty()) where += ".PP\n";
    where += paragraph(text);
  }

  void add_example(const HelpPart& part) {
    examples_ +=
        (examples_.empty() ? "" : ".PP\n") + std::string(".EX\n") + plain(part.text) + "\n.EE\n";
    if (!part.description.empty()) examples_ += ".RS\n" + paragraph(part.description) + ".RE\n";
  }

  void leave_list() {
    if (nested_) options_ += ".RE\n";
    nested_ = false;
  }

  std::string description_;
  std::string options_;
  std::string status_;
  std::string examples_;
  bool headed_ = false;
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
