#include <iostream>

#include "cli/completion/command_words.hpp"
#include "cli/completion/scripts.hpp"
#include "cli/words/commands.hpp"

namespace contextune::cli {

std::string spaced(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string escaped(std::string_view text, std::string_view characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != characters.npos) result += '\\';
    result += c;
  }
  return result;
}

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

int answer(const CompletionRequest& request) {
  const auto commands = completed_commands();
  std::cout << (request.shell == "bash"  ? bash_script(commands)
                : request.shell == "zsh" ? zsh_script(commands)
                                         : fish_script(commands))
            << std::flush;
  return std::cout ? 0 : 1;
}

}  // namespace contextune::cli
