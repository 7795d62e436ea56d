"""Colours where there is a terminal, and nowhere else unless they are asked for."""

import re
import subprocess
import unittest

from harness import CommandTest, WRITES_LOG, golden_log

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
GREEN, RED, YELLOW, FAINT = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[2m"


class Colours(CommandTest):
    def setUp(self):
        super().setUp()
        for name in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"):
            self.environment.pop(name, None)
        self.program = self.script("writes_log.py", WRITES_LOG)
        self.contextune("run", "--quiet", "--", *self.program, input=golden_log())
        self.commands = (["logs"], ["logs", "--passes"], ["compare", ".autotune_logs", ".autotune_logs"], ["doctor"])

    def shown(self, arguments, **variables):
        """On a terminal."""
        environment = {"TERM": "xterm-256color"} | self.environment | variables
        _, text = self.in_terminal(self.argv(*arguments), environment=environment)
        return text.replace("\r\n", "\n")

    def test_a_terminal_gets_colours(self):
        logs = self.shown(["logs"])
        self.assertIn(f"{GREEN}the winners are kept\x1b[0m", logs)
        self.assertIn(f"{GREEN}config-1\x1b[0m", logs)
        self.assertIn(f"{FAINT}config-2\x1b[0m", logs)
        self.assertIn(f"{YELLOW}launch_failed\x1b[0m", logs)
        self.assertIn(f"{YELLOW}UNCLEAR\x1b[0m", self.shown(self.commands[2]))
        doctor = self.shown(["doctor"])
        self.assertRegex(doctor, re.escape("\x1b[3") + "[123]m" + re.escape("[") + "(ok|no|--)")

    def test_colours_change_nothing_but_colours(self):
        for arguments in self.commands:
            plain = self.contextune(*arguments).stdout
            self.assertNotIn("\x1b", plain)
            coloured = self.contextune(*arguments, "--color", "always").stdout
            self.assertIn("\x1b[", coloured)
            self.assertEqual(ESCAPE.sub("", coloured), plain, arguments)
            self.assertEqual(ESCAPE.sub("", self.shown(arguments)), plain)

    def test_the_environment_is_heeded(self):
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}, {"CLICOLOR": "0"},
                          {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}):
            for arguments in self.commands:
                self.assertNotIn("\x1b", self.shown(arguments, **variables), variables)
                self.assertIn("\x1b[", self.shown([*arguments, "--color", "always"], **variables))
        for variables in ({"NO_COLOR": ""}, {"CLICOLOR_FORCE": "1", "TERM": "dumb"}, {"CLICOLOR": "1"}):
            self.assertIn("\x1b[", self.shown(["logs"], **variables), variables)
        self.assertNotIn("\x1b", self.shown(["logs", "--color=never"], CLICOLOR_FORCE="1"))

    def test_a_pipe_gets_none_unless_they_are_forced(self):
        for arguments in self.commands:
            self.assertNotIn("\x1b", self.contextune(*arguments).stdout)
            forced = self.environment | {"CLICOLOR_FORCE": "1"}
            self.assertIn("\x1b[", self.contextune(*arguments, env=forced).stdout)
            forced["CLICOLOR_FORCE"] = "0"
            self.assertNotIn("\x1b", self.contextune(*arguments, env=forced).stdout)

    def test_json_has_none(self):
        for arguments in (["logs", "--json"], [*self.commands[2], "--json"]):
            self.assertNotIn("\x1b", self.contextune(*arguments, "--color", "always").stdout)

    def test_help_has_none(self):
        self.assertNotIn("\x1b", self.shown(["--help"]) + self.shown(["compare", "--help"]))

    def run_shown(self, *flags, **variables):
        environment = {"TERM": "xterm"} | self.environment | variables
        (self.work / "log.txt").write_text(golden_log())
        status, text = self.in_terminal(
            ["/bin/sh", "-c", '"$@" <log.txt', "sh", *self.argv("run", *flags, "--", *self.program)],
            environment=environment)
        self.assertEqual(status, 0, text)
        return text

    def test_the_summary_of_a_run_has_them_on_a_terminal(self):
        self.assertIn(f"{GREEN}the winners are kept", self.run_shown())
        self.assertNotIn("\x1b[3", self.run_shown("--color", "never"))
        self.assertNotIn("\x1b[3", self.run_shown(NO_COLOR="1"))

    def test_the_summary_of_a_run_has_none_elsewhere(self):
        run = lambda *flags, **options: self.run_program(*self.program, flags=flags, input=golden_log(), **options)
        self.assertNotIn("\x1b", run().stderr)
        self.assertIn(GREEN, run("--color", "always").stderr)
        forced = self.environment | {"CLICOLOR_FORCE": "1"}
        for flags, is_coloured in (([], False), (["--color", "always"], True), (["--color", "auto"], False)):
            self.assertEqual(run("--report", "report.txt", *flags, env=forced).stderr, "")
            self.assertEqual("\x1b" in (self.work / "report.txt").read_text(), is_coloured)

    def test_a_report_to_a_file_has_none_on_a_terminal(self):
        self.run_shown("--report", "report.txt")
        self.assertNotIn("\x1b", (self.work / "report.txt").read_text())

    def test_what_is_read_brings_no_colours(self):
        (self.work / ".autotune_logs" / "rank-0.log").write_text(
            "2026-11-20T20:33:53.120Z run=r pid=1 rank=0 level=warn event=fault text=\"\\u001b[31mred\"\n")
        self.assertNotIn("\x1b[31m", self.contextune("logs", "--color", "always").stdout)

    def test_wrong_words_are_answered(self):
        for arguments in (["logs"], ["doctor"], ["compare", "a", "b"]):
            result = self.contextune(*arguments, "--color", "red")
            self.assertEqual(result.returncode, 2)
            self.assertIn("--color", result.stderr)


if __name__ == "__main__":
    unittest.main()
