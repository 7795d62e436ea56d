#include "cli/completion/scripts.hpp"

namespace contextune::cli {
namespace {

// What zsh does in a place: the action of an _arguments specification.
std::string action(const Completed& place) {
  // A colon would end the specification, a bracket its description.
  const std::string words = escaped(spaced(place.words), ":");
  switch (place.kind) {
    case Completed::Kind::Words:
      return "__contextune_words " + words;
    case Completed::Kind::List:
      return "_values -s , word " + words;
    case Completed::Kind::File:
      return "_files";
    case Completed::Kind::Folder:
      return "_files -/";
    case Completed::Kind::Text:
      break;
  }
  return " ";
}

std::string message(const CompletedFlag& flag) {
  return flag.placeholder.empty() ? "value" : escaped(flag.placeholder, ":");
}

// '--mode=[Who repeats the region]:value:__contextune_words auto body replay live'
std::string specification(const CompletedFlag& flag, const std::string& name) {
  std::string text;
  if (name == "--help" || name == "-h" || name == "--version")
    text += "(- *)";
  else
    text += "*";  // the last one counts, or all of them
  text += name;
  if (flag.flag.value != Flag::Value::None) {
    if (name.starts_with("--")) text += flag.flag.value == Flag::Value::Optional ? "=-" : "=";
  }
  if (!flag.meaning.empty()) text += "[" + escaped(flag.meaning, "[]:\\") + "]";
  if (flag.flag.value != Flag::Value::None)
    text += (flag.flag.value == Flag::Value::Optional ? "::" : ":") + message(flag) + ":" +
            action(flag.value);
  return shell_quoted(text);
}

std::string branch(const CompletedCommand& command) {
  std::string text = "            " + command.name + ")\n                _arguments -S";
  for (const CompletedFlag& flag : command.flags)
    for (const std::string& name : flag.flag.names)
      text += " \\\n                    " + specification(flag, name);
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const bool repeated = command.last_repeats && i + 1 == command.arguments.size();
    const std::string place = repeated ? "*" : std::to_string(i + 1);
    text += " \\\n                    " +
            shell_quoted(place + ":argument:" + action(command.arguments[i]));
  }
  if (command.runs_program) {
    text +=
        " \\\n                    '(-)1:program:_command_names -e'"
        " \\\n                    '*::argument:_normal'";
  }
  return text + "\n                ;;\n";
}

constexpr std::string_view zsh_head = R"(#compdef contextune
# zsh completion for contextune, as `contextune completion zsh` prints it.

# Words, some of which end in a colon that text has to follow.
__contextune_words() {
    compset -P '*;'
    local -a begun=(${(M)@:#*:}) whole=(${@:#*:})
    compadd -S '' -- $begun
    compadd -- $whole
}

_contextune() {
    local curcontext=$curcontext state line
    typeset -A opt_args
    _arguments -C \
        '(- *)'{-h,--help}'[Says what the command takes]' \
        '(- *)--version[Says which contextune this is]' \
        '1:command:->command' \
        '*::argument:->argument' && return
    case $state in
    command)
        local -a commands=(
)";

constexpr std::string_view zsh_commands_end = R"(        )
        _describe -t commands command commands
        ;;
    argument)
        curcontext=${curcontext%:*:*}:contextune-$words[1]:
        case $words[1] in
)";

constexpr std::string_view zsh_tail = R"(        esac
        ;;
    esac
}

if [[ $funcstack[1] == _contextune ]]; then
    _contextune "$@"
else
    compdef _contextune contextune
fi
)";

}  // namespace

std::string zsh_script(const std::vector<CompletedCommand>& commands) {
  std::string text(zsh_head);
  for (const CompletedCommand& command : commands)
    text +=
        "            " + shell_quoted(command.name + ":" + escaped(command.meaning, ":")) + "\n";
  text += zsh_commands_end;
  for (const CompletedCommand& command : commands)
    if (!command.flags.empty()) text += branch(command);
  return text + std::string(zsh_tail);
}

}  // namespace contextune::cli
