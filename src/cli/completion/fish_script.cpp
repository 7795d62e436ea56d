#include "cli/completion/scripts.hpp"

namespace contextune::cli {
namespace {

// As one word of fish, where a backslash in single quotes takes the next one or a quote as it is.
std::string fish_quoted(std::string_view text) {
  return "'" + escaped(text, "\\'") + "'";
}

// What may stand in a place: arguments of `complete`.
std::string values(const Completed& place) {
  switch (place.kind) {
    case Completed::Kind::Words:
      return " -f -a " + fish_quoted(spaced(place.words));
    case Completed::Kind::List:
      return " -f -a " +
             fish_quoted("(__fish_complete_list , 'printf %s\\\\n " + spaced(place.words) + "')");
    case Completed::Kind::File:
      return " -F";
    case Completed::Kind::Folder:
      return " -f -a '(__fish_complete_directories)'";
    case Completed::Kind::Text:
      break;
  }
  return " -f";
}

std::string flag_line(const CompletedCommand& command, const CompletedFlag& flag) {
  std::string text = "complete -c contextune -n '__contextune_in " + command.name + "'";
  for (const std::string& name : flag.flag.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (flag.flag.value == Flag::Value::Required) text += " -r";
  if (flag.flag.value != Flag::Value::None) text += values(flag.value);
  if (!flag.meaning.empty()) text += " -d " + fish_quoted(flag.meaning);
  return text + "\n";
}

std::string argument_lines(const CompletedCommand& command) {
  std::string text;
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const bool repeated = command.last_repeats && i + 1 == command.arguments.size();
    text += "complete -c contextune -n '__contextune_in " + command.name +
            "; and __contextune_arguments " + std::to_string(i) + (repeated ? " more" : "") + "'" +
            values(command.arguments[i]) + "\n";
  }
  return text;
}

// Flags whose value is the next word.
std::string with_value(const std::vector<CompletedCommand>& commands) {
  std::string text;
  for (const CompletedCommand& command : commands) {
    std::string flags;
    for (const CompletedFlag& flag : command.flags)
      if (flag.flag.value == Flag::Value::Required) flags += " " + spaced(flag.flag.names);
    if (!flags.empty())
      text += "        case " + command.name + "\n            set with_value" + flags + "\n";
  }
  return text;
}

std::string with_program(const std::vector<CompletedCommand>& commands) {
  std::string text;
  for (const CompletedCommand& command : commands)
    if (command.runs_program) text += " " + command.name;
  return text;
}

constexpr std::string_view fish_functions = R"(
# Prints what stands before the cursor behind the command: flags with their values as "-", arguments as they
# are. A program and what follows it are printed behind "--".
function __contextune_words
    set -l tokens (commandline -opc)
    set -e tokens[1]
    set -l command $tokens[1]
    set -e tokens[1]
    set -l with_value (__contextune_with_value $command)
    while set -q tokens[1]
        set -l token $tokens[1]
        set -e tokens[1]
        if test "$token" = --
            printf '%s\n' -- $tokens
            return
        else if contains -- $token $with_value
            printf '%s\n' -
            set -e tokens[1]
        else if string match -q -- '-*' $token
            printf '%s\n' -
        else if contains -- $command $__contextune_with_program
            printf '%s\n' -- $token $tokens
            return
        else
            printf '%s\n' $token
        end
    end
end

# True where the command itself is still to come.
function __contextune_no_command
    test (count (commandline -opc)) -eq 1
end

# True behind the command $argv[1], before its program.
function __contextune_in
    set -l tokens (commandline -opc)
    test "$tokens[2]" = $argv[1]; and not contains -- -- (__contextune_words)
end

# True where $argv[1] arguments are there already, or, with a second word, at least as many.
function __contextune_arguments
    set -l count (count (string match -v -- '-' (__contextune_words)))
    test $count -eq $argv[1]; or begin
        set -q argv[2]; and test $count -ge $argv[1]
    end
end

# True where the next word may be of the program.
function __contextune_at_program
    set -l tokens (commandline -opc)
    contains -- "$tokens[2]" $__contextune_with_program; or return
    contains -- -- (__contextune_words); and return
    not string match -q -- '-*' (commandline -ct)
    and not contains -- $tokens[-1] (__contextune_with_value $tokens[2])
    and test -n (commandline -ct)
end

# Completes the program as if its words stood alone.
function __contextune_program
    set -l words (__contextune_words)
    set -l begin (contains -i -- -- $words)
    set -l program
    test -n "$begin"; and set program $words[(math $begin + 1)..-1]
    __fish_complete_subcommand --commandline $program (commandline -ct)
end

)";

}  // namespace

std::string fish_script(const std::vector<CompletedCommand>& commands) {
  std::string text =
      "# fish completion for contextune, as `contextune completion fish` prints it.\n\n"
      "set -g __contextune_with_program" +
      with_program(commands) +
      "\n\nfunction __contextune_with_value\n    set -l with_value\n    switch \"$argv[1]\"\n" +
      with_value(commands) + "    end\n    printf '%s\\n' $with_value\nend\n" +
      std::string(fish_functions) + "complete -c contextune -f\n" +
      "complete -c contextune -n __contextune_no_command -s h -l help -d 'Says what there is'\n"
      "complete -c contextune -n __contextune_no_command -l version -d 'Says which contextune this "
      "is'\n";
  for (const CompletedCommand& command : commands) {
    text += "complete -c contextune -n __contextune_no_command -a " + command.name +
            (command.meaning.empty() ? "" : " -d " + fish_quoted(command.meaning)) + "\n";
  }
  for (const CompletedCommand& command : commands) {
    for (const CompletedFlag& flag : command.flags) text += flag_line(command, flag);
    text += argument_lines(command);
  }
  return text +
         "complete -c contextune -n __contextune_at_program -f -a '(__contextune_program)'\n";
}

}  // namespace contextune::cli
