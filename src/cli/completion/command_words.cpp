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

// Reads "contextune logs [FOLDER] [--run ID]": arguments are words of capitals that follow no flag.
void read_synopsis(std::string_view synopsis, CompletedCommand& command) {
  bool of_flag = false;
  bool optional_flag = false;
  while (!synopsis.empty()) {
    std::string_view word = take_until(synopsis, ' ');
    if (word.starts_with("--") && word.size() > 2) of_flag = true;
    if (word.starts_with("[-")) of_flag = optional_flag = true;
    if (word == "--" || word == "[--") {
      command.runs_program = synopsis.starts_with("PROGRAM");
      return;
    }
    const bool closes = word.ends_with(']') || word.ends_with("]...");
    while (word.starts_with('[')) word.remove_prefix(1);
    const std::string_view name = word.substr(0, word.find_first_of(".]"));
    if (!of_flag && !name.empty() && std::ranges::all_of(name, is_upper)) {
      command.last_repeats = word.find("...") != word.npos;
      // A file of logs is as good as a folder of them.
      Completed argument = of_placeholder(name);
      if (argument.kind == PlaceKind::Folder) argument.kind = PlaceKind::File;
      // Where an action says what its arguments are, these may be names and files.
      if (name == "ARGUMENTS" || name == "A" || name == "B") argument.kind = PlaceKind::File;
      if (name == "ARGUMENTS") command.last_repeats = true;
      command.arguments.push_back(std::move(argument));
    }
    if (closes) optional_flag = of_flag = false;
    if (of_flag && !optional_flag && !word.starts_with("--")) of_flag = false;
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
    read_synopsis(page.synopsis, command);
  }
  return all;
}

}  // namespace contextune::cli
