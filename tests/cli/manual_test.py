"""Manual pages are made of what --help says, and man can read them."""

import re
import shutil
import subprocess
import unittest

from harness import PATIENCE, CommandTest


class Manual(CommandTest):
    def setUp(self):
        super().setUp()
        self.pages = self.folder / "man1"
        self.pages.mkdir()
        written = self.contextune("manual", "--folder", self.pages)
        self.assertEqual((written.returncode, written.stdout, written.stderr), (0, "", ""))

    def text(self, page):
        """What a reader sees, its blanks and lines made one."""
        return " ".join(subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-rLL=200n", "-rHY=0", page],
                                       capture_output=True, text=True, timeout=PATIENCE, check=True).stdout.split())

    def test_every_command_has_a_page_with_a_purpose(self):
        listed = self.contextune("--help").stdout.split("\nCommands\n")[1].split("\n\n")[0]
        commands = re.findall(r"^  ([a-z]+)", listed, re.MULTILINE)
        self.assertEqual({page.name for page in self.pages.iterdir()},
                         {"contextune.1", *(f"contextune-{command}.1" for command in commands)})
        for command in commands:
            page = (self.pages / f"contextune-{command}.1").read_text()
            self.assertRegex(page, rf"\n\.SH NAME\ncontextune\\-{command} \\- \S+ ")
            self.assertIn(f"\n\\fBcontextune {command}\\fR", page)
            self.assertEqual(self.contextune("manual", command).stdout, page)
        self.assertEqual(self.contextune("manual").stdout, (self.pages / "contextune.1").read_text())

    def test_options_arguments_and_the_exit_status_are_in_their_sections(self):
        run = (self.pages / "contextune-run.1").read_text()
        options = run.split("\n.SH OPTIONS\n")[1].split("\n.SH ")[0]
        table = self.contextune("options", "--markdown").stdout
        for flag in re.findall(r"^\| `(--[a-z0-9-]+)`", table, re.MULTILINE):
            self.assertIn("\n.B " + flag.replace("-", "\\-"), "\n" + options)
        store = (self.pages / "contextune-store.1").read_text()
        for term in ("merge FOLDER...", "\\-\\-nccl\\-csv FILE"):
            self.assertIn(f"\n.TP\n.B {term}\n", store)
        for page in (store, (self.pages / "contextune-logs.1").read_text()):
            self.assertIn("\n.SH EXIT STATUS\n0; 1 if there is no ", page)
            self.assertIn("\n.SH EXAMPLES\n.EX\ncontextune ", page)

    @unittest.skipIf(shutil.which("groff") is None, "groff is not installed")
    def test_groff_has_nothing_to_say_and_loses_no_word(self):
        for page in sorted(self.pages.iterdir()):
            checked = subprocess.run(["groff", "-ww", "-man", "-Tascii", "-z", page], capture_output=True,
                                     text=True, timeout=PATIENCE)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""), page.name)
            command = page.stem.removeprefix("contextune").removeprefix("-").split()
            shown = self.text(page)
            for line in self.contextune(*command, "--help").stdout.split("\n")[1:]:
                for word in re.findall(r"[\w$'*|^\\~/.,;:()=<>+-]+", line.replace("`", "").removeprefix("Exit status:")):
                    self.assertIn(word.rstrip(":,.").upper(), shown.upper(), f"{page.name}: {line}")

    def test_what_cannot_be_is_told(self):
        for arguments, status, said in (
                (["rnu"], 2, "there is no page of a command 'rnu'; did you mean 'run'?"),
                (["run", "logs"], 2, "it takes one command"),
                (["--folder", "/nowhere"], 1, "cannot write /nowhere/contextune.1: No such file or directory")):
            result = self.contextune("manual", *arguments)
            self.assertEqual((result.returncode, result.stdout), (status, ""))
            self.assertIn(said, result.stderr)


if __name__ == "__main__":
    unittest.main()
