#pragma once

#include <string>
#include <vector>

#include "cli/words/command_line.hpp"

/// What a shell has to know of the commands, made from what --help of each answers.
namespace contextune::cli {

/// What may stand in one place of a command line.
struct Completed {
  enum class Kind { Text, Words, List, File, Folder };
  Kind kind = Kind::Text;
  std::vector<std::string> words;  ///< of Words, and of List, which has commas between them
};

struct CompletedFlag {
  Flag flag;
  Completed value;
  std::string placeholder;  ///< "FILE"
  std::string meaning;
};

struct CompletedCommand {
  std::string name;
  std::string meaning;
  std::vector<CompletedFlag> flags;
  std::vector<Completed> arguments;  ///< in order; the last may be repeated
  bool last_repeats = false;
  bool runs_program = false;  ///< a program and its arguments follow, with or without "--"
};

[[nodiscard]] std::vector<CompletedCommand> completed_commands();

}  // namespace contextune::cli
