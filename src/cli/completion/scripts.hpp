#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/completion/command_words.hpp"

/// Scripts that make a shell complete the words of the commands.
namespace contextune::cli {

[[nodiscard]] std::string bash_script(const std::vector<CompletedCommand>& commands);
[[nodiscard]] std::string zsh_script(const std::vector<CompletedCommand>& commands);
[[nodiscard]] std::string fish_script(const std::vector<CompletedCommand>& commands);

/// The words with blanks between them.
[[nodiscard]] std::string spaced(const std::vector<std::string>& words);

/// `text` with each of `characters` behind a backslash.
[[nodiscard]] std::string escaped(std::string_view text, std::string_view characters);

/// `text` as one word of a POSIX shell.
[[nodiscard]] std::string shell_quoted(std::string_view text);

}  // namespace contextune::cli
