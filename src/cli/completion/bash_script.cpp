#include "cli/completion/scripts.hpp"

namespace contextune::cli {
namespace {

// Sets `kind` and `words` to what may stand in a place.
std::string settings(const Completed& place) {
  switch (place.kind) {
    case Completed::Kind::Words:
      return "kind=words words=" + shell_quoted(spaced(place.words));
    case Completed::Kind::List:
      return "kind=list words=" + shell_quoted(spaced(place.words));
    case Completed::Kind::File:
      return "kind=file";
    case Completed::Kind::Folder:
      return "kind=folder";
    case Completed::Kind::Text:
      break;
  }
  return "kind=text";
}

std::string names_of_flags(const CompletedCommand& command) {
  std::string text;
  for (const CompletedFlag& flag : command.flags)
    text.append(text.empty() ? "" : " ").append(spaced(flag.flag.names));
  return text;
}

std::string tables(const std::vector<CompletedCommand>& commands) {
  std::string names;
  std::string flags;
  std::string values;
  std::string arguments;
  for (const CompletedCommand& command : commands) {
    names.append(names.empty() ? "" : " ").append(command.name);
    flags += "        " + command.name + ") flags=" + shell_quoted(names_of_flags(command)) +
             (command.runs_program ? " program=yes" : "") + " ;;\n";
    for (const CompletedFlag& flag : command.flags) {
      if (flag.flag.value == Flag::Value::None) continue;
      values += "       ";
      for (std::size_t i = 0; i < flag.flag.names.size(); ++i)
        values.append(i == 0 ? " " : " | ").append(command.name + "/" + flag.flag.names[i]);
      const bool optional = flag.flag.value == Flag::Value::Optional;
      values += ") " + settings(flag.value) + (optional ? " optional=yes" : "") + " ;;\n";
    }
    for (std::size_t i = 0; i < command.arguments.size(); ++i) {
      const bool repeated = command.last_repeats && i + 1 == command.arguments.size();
      arguments += "        " + command.name + "/" + (repeated ? "*" : std::to_string(i)) + ") " +
                   settings(command.arguments[i]) + " ;;\n";
    }
  }
  return "# Sets flags, and program where one follows, for the command $1.\n"
         "__contextune_command()\n{\n    flags= program=\n    case $1 in\n" +
         flags +
         "    esac\n}\n\n"
         "# Sets kind and words to what follows the flag $2 of the command $1.\n"
         "__contextune_value()\n{\n    kind= words= optional=\n    case $1/$2 in\n" +
         values +
         "    esac\n}\n\n"
         "# Sets kind and words for the argument at $2, counted from 0, of the command $1.\n"
         "__contextune_argument()\n{\n    kind= words=\n    case $1/$2 in\n" +
         arguments + "    esac\n}\n\n__contextune_commands='" + names + "'\n";
}

constexpr std::string_view bash_functions = R"(
# Sets COMPREPLY to the whole words that $1 can become, each behind the text $2.
__contextune_reply()
{
    local cur=$1 before=$2 list=
    case $kind in
        words) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur") ;;
        list)
            if [[ $cur == *,* ]]; then
                list=${cur%,*},
            fi
            mapfile -t COMPREPLY < <(compgen -W "$words" -- "${cur#"$list"}") ;;
        file)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        folder)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esac
    if ((${#COMPREPLY[@]} == 1)) && [[ $kind == words && ${COMPREPLY[0]} == *: ]]; then
        compopt -o nospace 2>/dev/null
    fi
    COMPREPLY=("${COMPREPLY[@]/#/"$before$list"}")
}

# The words of the program, which begin at $1 in COMP_WORDS, are completed as if it stood alone.
__contextune_program()
{
    if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$1"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    else
        compopt -o filenames 2>/dev/null
        if ((COMP_CWORD == $1)); then
            mapfile -t COMPREPLY < <(compgen -c -d -- "${COMP_WORDS[COMP_CWORD]}")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
        fi
    fi
}

_contextune()
{
    COMPREPLY=()
    # bash takes words apart at each = and :, which are put together where no blank is between them.
    local rest=${COMP_LINE-${COMP_WORDS[*]}} words_up_to=() places=() i word trimmed
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        trimmed=${rest#"${rest%%[![:blank:]]*}"}
        if ((i > 0)) && [[ $rest == "$trimmed" && -n $word ]]; then
            words_up_to[-1]+=$word
        else
            words_up_to+=("$word")
            places+=("$i")
        fi
        rest=${trimmed#"$word"}
    done
    local last=$((${#words_up_to[@]} - 1)) cur=${words_up_to[-1]} command=${words_up_to[1]-}
    local flags program kind words optional arguments=0 pending=

    if ((last == 1)); then
        kind=words words="$__contextune_commands --help --version"
        __contextune_reply "$cur" ''
        return
    fi
    __contextune_command "$command"
    for ((i = 2; i < last; i++)); do
        word=${words_up_to[i]}
        if [[ $pending ]]; then
            pending=
        elif [[ $word == -- ]]; then
            if [[ $program ]]; then
                __contextune_program "${places[i + 1]}"
            fi
            return
        elif [[ $word == -*=* ]]; then
            :
        elif [[ $word == -* ]]; then
            __contextune_value "$command" "$word"
            if [[ $kind && ! $optional ]]; then
                pending=$word
            elif [[ $kind == list ]] && ((i + 1 == last)) && [[ " $words" == *" ${cur##*,}"* ]]; then
                pending=$word
            elif [[ $kind == list && " $words " == *" ${words_up_to[i + 1]%%,*} "* ]]; then
                pending=$word
            fi
        elif [[ $program ]]; then
            __contextune_program "${places[i]}"
            return
        else
            ((arguments++))
        fi
    done

    if [[ $pending ]]; then
        __contextune_value "$command" "$pending"
        __contextune_reply "$cur" ''
    elif [[ $cur == -*=* ]]; then
        __contextune_value "$command" "${cur%%=*}"
        __contextune_reply "${cur#*=}" "${cur%%=*}="
    elif [[ $cur == -* || ($program && ! $cur) ]]; then
        kind=words words="$flags${program:+ --}"
        __contextune_reply "$cur" ''
    elif [[ $program ]]; then
        __contextune_program "${places[last]}"
        return
    else
        __contextune_argument "$command" "$arguments"
        __contextune_reply "$cur" ''
    fi
    # readline replaces what stands behind the last = or : alone.
    local typed=${COMP_WORDS[COMP_CWORD]} kept
    if [[ $typed == = || $typed == : ]]; then
        typed=
    fi
    kept=${cur%"$typed"}
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}

complete -F _contextune contextune
)";

}  // namespace

std::string bash_script(const std::vector<CompletedCommand>& commands) {
  return "# bash completion for contextune, as `contextune completion bash` prints it.\n\n" +
         tables(commands) + std::string(bash_functions);
}

}  // namespace contextune::cli
