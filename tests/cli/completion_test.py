"""Shells complete the words of the command, with the scripts that it prints. bash is asked as it asks for
completions itself, and once through a terminal; zsh and fish where they are installed."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from harness import PATIENCE, CommandTest

BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"

# Completes the words of $@ as bash does, the last of which is at the cursor; $LINE is how they were typed.
ASK_BASH = """
source "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$LINE COMP_POINT=${#LINE}
specification=($(complete -p contextune))
function=${specification[2]}
$function contextune "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""

# Types $LINE and a tab into a zsh, in which contextune prints its arguments.
ASK_ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=; fpath=($FOLDER \$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-prompt ''; setopt no_beep"
zpty -w shell "contextune() { print -r -- 'typed='\$*; }; print ready"
zpty -r -m shell line $'*\nready*'
zpty -w -n shell "$LINE"$'\t\n'
zpty -r -m shell line '*typed=*
*'
print -r -- $line
"""


class Completion(CommandTest):
    def setUp(self):
        super().setUp()
        self.scripts = self.folder / "scripts"
        self.scripts.mkdir()
        for name in ("engine.lua", "engine two.lua"):
            (self.work / name).touch()
        (self.work / "logs-of-a-job").mkdir()

    def printed_script(self, shell, name):
        printed = self.contextune("completion", shell)
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        path = self.scripts / name
        path.write_text(printed.stdout)
        return path

    def installed(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")


class Bash(Completion):
    def setUp(self):
        super().setUp()
        self.path = self.printed_script("bash", "contextune")

    def ask(self, line, before=""):
        words = re.findall(r"[=:]+|[^\s=:]+", line) + ([""] if line.endswith(" ") else [])
        asked = subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", before + ASK_BASH, "bash", *words], cwd=self.work,
            env=self.environment | {"LINE": line, "SCRIPT": str(self.path)}, capture_output=True,
            text=True, timeout=PATIENCE)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return asked.stdout.splitlines()

    def test_commands_are_those_of_the_help(self):
        listed = self.contextune("--help").stdout.split("\nCommands\n")[1].split("\n\n")[0]
        commands = re.findall(r"^  ([a-z]+)", listed, re.MULTILINE)
        self.assertLess({"run", "logs", "store", "doctor", "completion", "manual"}, set(commands))
        self.assertEqual(set(self.ask("contextune ")), {*commands, "help", "--help", "--version"})
        self.assertEqual(self.ask("contextune do"), ["doctor"])

    def test_flags_are_all_that_each_command_takes(self):
        for command in self.ask("contextune "):
            if command.startswith("-") or command == "help":
                continue
            flags = self.ask(f"contextune {command} -")
            self.assertIn("--help", flags, command)
            for flag in re.findall(r"--[a-z][a-z0-9-]*", "\n".join(
                    self.contextune(command, "--help").stdout.split("\n\n")[0].splitlines())):
                self.assertIn(flag, flags, command)
        table = self.contextune("options", "--markdown").stdout
        options = set(re.findall(r"^\| `(--[a-z0-9-]+)`", table, re.MULTILINE))
        self.assertGreater(len(options), 40)
        self.assertLess(options, set(self.ask("contextune run -")))
        self.assertEqual(self.ask("contextune run --no-conf"), ["--no-confirm"])

    def test_values_of_enumerations_are_their_words(self):
        for line, words in (("run --mode ", "auto body replay live"), ("run --mode=li", "live"),
                            ("run --quiet --schedule r", "racing"), ("run --splice=", "off own all"),
                            ("run --store st", "stored"), ("run --quiet=", "on off"),
                            ("run --region ", "auto graph process profiler nvtx: kernel:"),
                            ("run --region nv", "nvtx:"), ("run --region=ker", "kernel:"),
                            ("run --region nvtx:de", ""), ("run --auto chained,ga", "chained,gathered"),
                            ("run --auto=coll", "collectives"), ("run --tolerance f3", "f32:"),
                            ("reasons replay_me", "replay_memory"), ("store exp", "export"),
                            ("completion ", "bash zsh fish"), ("run --n-warmup ", "")):
            self.assertEqual(self.ask("contextune " + line), words.split(), line)

    def test_files_are_completed_where_files_are_wanted(self):
        files = ["engine two.lua", "engine.lua"]
        for line in ("run --space eng", "doctor --space=eng", "kernels eng", "kernels engine.lua eng",
                     "run --quiet --report eng", "store diff eng", "logs eng"):
            self.assertEqual(sorted(self.ask("contextune " + line)), files, line)
        for line in ("run --log-dir lo", "store --cache-dir=lo", "logs lo"):
            self.assertEqual(self.ask("contextune " + line), ["logs-of-a-job"], line)
        self.assertEqual(self.ask("contextune store --cache-dir eng"), [])

    def test_the_program_s_words_are_left_to_its_own_completion(self):
        engine = "_engine() { COMPREPLY=(\"engine saw ${#COMP_WORDS[@]} ${COMP_WORDS[*]}\"); }\n"
        loaded = [("", False)]
        if os.path.exists(BASH_COMPLETION):
            loaded.append((f"source {BASH_COMPLETION}\n{engine}complete -F _engine engine\n", True))
        for before, knows_programs in loaded:
            for line in ("run -- engi", "run --mode live -- engi", "run --quiet engi"):
                bare = self.ask(f"contextune {line}", f"PATH=$PATH:{self.work}; touch {self.work}/engine-x;"
                                f"chmod +x {self.work}/engine-x\n{before}")
                self.assertIn("engine-x", bare, line)
            if knows_programs:
                for line in ("run -- engine --m", "run --region nvtx:a --mode=live engine --m",
                             "run --auto chained engine --m", "run --auto -- engine --m"):
                    self.assertEqual(self.ask(f"contextune {line}", before), ["engine saw 2 engine --m"],
                                     line)
            else:
                self.assertEqual(len(self.ask("contextune run -- engine eng")), 3)
        self.assertEqual(self.ask("contextune build gemm.cu gemm 90 -- -D"), [])

    def test_a_terminal_completes_words_that_bash_takes_apart(self):
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            environment = self.environment | {"PS1": "", "TERM": "dumb", "INPUTRC": "/dev/null"}
            os.execvpe("bash", ["bash", "--noprofile", "--norc", "-i"], environment)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, master)
        os.write(master, f"source {self.path}; contextune() {{ printf '<%s>' \"$@\"; echo; }}; echo sou''rced\n".encode())
        self.assertIn("sourced", self.read_until(master, "sourced"))
        for typed, printed in (("run --mo\tli\t x", "<run><--mode><live><x>"),
                               ("run --mode=li\tx", "<run><--mode=live><x>"),
                               ("run --region nv\tdecode x", "<run><--region><nvtx:decode><x>"),
                               ("run --region=nv\tdecode", "<run><--region=nvtx:decode>"),
                               ("run --auto=chained,ga\tx", "<run><--auto=chained,gathered><x>"),
                               ("kernels engine\\ \tx", "<kernels><engine two.lua><x>")):
            os.write(master, f"contextune {typed}\n".encode())
            self.assertIn(printed, self.read_until(master, printed), typed)
        os.write(master, b"exit\n")

    def read_until(self, master, text):
        seen, end = "", time.monotonic() + PATIENCE
        while text not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65536).decode(errors="replace")
        return seen

    def test_a_shell_that_is_not_known_is_named(self):
        for arguments, said in ((["tcsh"], "there is no 'tcsh'"), (["bahs"], "did you mean 'bash'?"),
                                ([], "it takes the name of one shell")):
            result = self.contextune("completion", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(said, result.stderr)
            self.assertIn("bash, zsh and fish are", result.stderr)


class Zsh(Completion):
    def setUp(self):
        super().setUp()
        self.installed("zsh")
        self.path = self.printed_script("zsh", "_contextune")

    def ask(self, line):
        asked = subprocess.run(["zsh", "-f", "-c", ASK_ZSH], cwd=self.work, capture_output=True, text=True,
                               env=self.environment | {"LINE": line, "FOLDER": str(self.scripts), "TERM": "dumb"},
                               timeout=PATIENCE)
        found = re.search(r"typed=(.*?)\s*$", asked.stdout, re.MULTILINE)
        self.assertIsNotNone(found, asked.stdout + asked.stderr)
        return found.group(1)

    def test_the_script_is_one(self):
        checked = subprocess.run(["zsh", "-n", self.path], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_words_are_completed(self):
        for typed, completed in (("contextune doc", "doctor"), ("contextune run --spli", "run --splice"),
                                 ("contextune run --mode li", "run --mode live"),
                                 ("contextune run --mode=li", "run --mode=live"),
                                 ("contextune run --region nv", "run --region nvtx:"),
                                 ("contextune store exp", "store export"),
                                 ("contextune run --space engine.", "run --space engine.lua"),
                                 ("contextune run --log-dir lo", "run --log-dir logs-of-a-job"),
                                 ("contextune run --auto=chained,gat", "run --auto=chained,gathered"),
                                 ("contextune run --mode live -- contextune run --spli",
                                  "run --mode live -- contextune run --splice"),
                                 ("contextune run -- unam", "run -- uname")):
            self.assertEqual(self.ask(typed), completed)


class Fish(Completion):
    def setUp(self):
        super().setUp()
        self.installed("fish")
        self.path = self.printed_script("fish", "contextune.fish")

    def ask(self, line):
        asked = subprocess.run(["fish", "--no-config", "-c", f"source {self.path}; complete -C \"$LINE\""],
                               cwd=self.work, env=self.environment | {"LINE": line, "HOME": str(self.folder)},
                               capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((asked.returncode, asked.stderr), (0, ""))
        return [row.split("\t")[0] for row in asked.stdout.splitlines()]

    def test_words_are_completed(self):
        for line, words in (("contextune doc", ["doctor"]), ("contextune run --spli", ["--splice"]),
                            ("contextune run --mode l", ["live"]), ("contextune run --mode=l", ["--mode=live"]),
                            ("contextune run --region nv", ["nvtx:"]),
                            ("contextune store exp", ["export"]),
                            ("contextune run --space engine.", ["engine.lua"]),
                            ("contextune run --log-dir log", ["logs-of-a-job/"]),
                            ("contextune run --auto=chained,gat", ["--auto=chained,gathered"]),
                            ("contextune logs --mod", []), ("contextune run -- engine --mod", []),
                            ("contextune run --mode live -- contextune run --spli", ["--splice"]),
                            ("contextune run contextune doc", ["doctor"])):
            self.assertEqual(self.ask(line), words, line)
        self.assertEqual(len(self.ask("contextune run --mode ")), 4)
        self.assertIn("engine two.lua", self.ask("contextune kernels engine"))
        self.assertIn("uname", self.ask("contextune run -- unam"))


del Completion  # it is no test itself


if __name__ == "__main__":
    unittest.main()
