#include "cli/completion/command_words.hpp"

#include <algorithm>
#include <string_view>

#include "cli/words/documentation.hpp"
#include "cli/words/help_page.hpp"
#include "core/value/take_until.hpp"

namespace contextune::cli {
namespace {

using PlaceKind = Completed::Kind;

std::vector<std::string> strings(const std::vector<std::string_view>& words) {
  return {words.begin(), words.end()};
}

bool is_upper(char c) {
  return (c >= 'A' && c <= 'Z') || c == '_';
}

Completed of_placeholder(std::string_view placeholder) {
  const auto words = words_of_argument(placeholder);
  if (!words.empty()) return {PlaceKind::Words, strings(words)};
  const bool folder = placeholder.ends_with("FOLDER") || placeholder.ends_with("DIR");
  if (folder) return {PlaceKind::Folder, {}};
  const bool file =
      placeholder.ends_with("FILE") || placeholder == "SOURCE" || placeholder == "PATH";
  return {file ? PlaceKind::File : PlaceKind::Text, {}};
}

CompletedFlag completed(const HelpPage& page, const Flag& flag) {
  CompletedFlag one{.flag = flag, .value = {}, .placeholder = flag.placeholder, .meaning = {}};
  for (const std::string& name : flag.names) {
    if (one.meaning.empty()) one.meaning = meaning_in(page, name);
    if (one.placeholder.empty()) one.placeholder = placeholder_in(page, name);
  }
  const std::string& name = flag.names.back();
  if (name == "--help") one.meaning = "Says what the command takes";
  if (name == "--version") one.meaning = "Says which contextune this is";
  if (!flag.words.empty()) {
    // Words that are more than a switch's may be several where the flag alone is enough.
    const bool list = flag.value == Flag::Value::Optional && flag.words.size() > 2;
    one.value = {list ? PlaceKind::List : PlaceKind::Words, flag.words};
  } else if (flag.value != Flag::Value::None) {
    one.value = of_placeholder(one.placeholder);
  }
  return one;
}

// Takes arguments from "contextune logs [FOLDER] [--run ID]": words of capitals that follow no
// flag.
void read_usage(std::string_view usage, CompletedCommand& command) {
  std::size_t place = 0;
  bool in_flag = false;      // "--run ID"
  bool in_brackets = false;  // "[--run ID]", "[--json | --csv FILE]"
  while (!usage.empty()) {
    std::string_view word = take_until(usage, ' ');
    if (word == "--" || word == "[--") {
      command.runs_program = usage.starts_with("PROGRAM");
      return;
    }
    in_brackets = in_brackets || word.starts_with("[-");
    const bool is_flag = word.starts_with('-');
    const bool closes = word.find(']') != word.npos;
    while (word.starts_with('[')) word.remove_prefix(1);
    const std::string_view name = word.substr(0, word.find_first_of(".]"));
    if (!is_flag && !in_flag && !in_brackets && !name.empty() &&
        std::ranges::all_of(name, is_upper)) {
      Completed argument = of_placeholder(name);
      // A rank log is as good as a folder of them, and names of an action may be files.
      if (argument.kind == PlaceKind::Folder || name == "ARGUMENTS" || name.size() == 1)
        argument.kind = PlaceKind::File;
      if (place == command.arguments.size()) {
        command.last_repeats = word.find("...") != word.npos || name == "ARGUMENTS";
        command.arguments.push_back(std::move(argument));
      }
      ++place;
    }
    in_flag = is_flag;
    if (closes) in_brackets = false;
  }
}

}  // namespace

std::vector<CompletedCommand> completed_commands() {
  const HelpPage overview = read_help(main_help());
  std::vector<CompletedCommand> all;
  for (const std::string_view name : command_names()) {
    CompletedCommand& command = all.emplace_back();
    command.name = name;
    command.meaning = meaning_in(overview, name);
    const auto help = help_of(name);
    if (!help) continue;
    const HelpPage page = read_help(help->text);
    for (const Flag& flag : help->flags) command.flags.push_back(completed(page, flag));
    for (const std::string& usage : page.usages) read_usage(usage, command);
  }
  return all;
}

}  // namespace contextune::cli
