"""Help teaches, and wrong use is answered."""

import unittest

from harness import CommandTest


class Usage(CommandTest):
    def test_help_begins_with_examples(self):
        for arguments in (["--help"], ["run", "--help"], ["logs", "--help"], ["doctor", "--help"],
                          ["kernels", "--help"], ["compare", "--help"]):
            result = self.contextune(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            head = "\n".join(result.stdout.splitlines()[:6])
            self.assertIn("  contextune " + (arguments[0] if len(arguments) > 1 else "run"), head)

    def test_every_option_is_in_the_help_and_in_the_table(self):
        help_text = self.contextune("run", "--help").stdout
        table = self.contextune("options", "--markdown").stdout
        rows = [row.split(" | ") for row in table.splitlines()[2:]]
        self.assertGreater(len(rows), 20)
        for row in rows:
            flag, variable = row[0].strip("| `"), row[1].strip("`")
            self.assertIn(f"  {flag}", help_text)
            self.assertIn(variable, help_text)
            self.assertEqual(variable, "CONTEXTUNE_" + flag[2:].replace("-", "_").upper())

    def test_the_tables_are_markdown(self):
        for command, columns in (("options", 4), ("reasons", 4)):
            rows = self.contextune(command, "--markdown").stdout.splitlines()
            for row in rows:
                self.assertEqual(row.replace("\\|", "").count("|"), columns + 1, row)

    def test_a_reason_is_explained(self):
        one = self.contextune("reasons", "replay_memory").stdout
        self.assertTrue(one.startswith("replay_memory\n"))
        self.assertIn("What to do: Raise --replay-memory", one)
        every = self.contextune("reasons").stdout
        self.assertIn(one, every)
        rows = self.contextune("reasons", "--markdown").stdout.splitlines()[2:]
        self.assertEqual(len(rows), every.count("What to do: "))

    def test_wrong_use_is_answered(self):
        for arguments in ([], ["walk"], ["logs", "--nothing"], ["options", "extra"],
                          ["reasons", "extra"]):
            result = self.contextune(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "")
            self.assertIn("contextune", result.stderr)

    def test_the_version_is_told(self):
        for arguments in (["--version"], ["run", "--version"], ["logs", "--version"],
                          ["store", "--version"], ["doctor", "--version"],
                          ["compare", "--version"]):
            result = self.contextune(*arguments)
            self.assertEqual(result.returncode, 0, arguments)
            self.assertRegex(result.stdout, r"^contextune \d+\.\d+\.\d+\n$")

    def test_a_word_that_is_nearly_right_is_guessed(self):
        for arguments, status, guess in (
            (["rnu", "--", "true"], 2, "there is no command 'rnu'; did you mean 'run'?"),
            (["lgos"], 2, "did you mean 'logs'?"),
            (["run", "--regionn", "nvtx:a", "--", "true"], 125,
             "there is no --regionn; did you mean --region?"),
            (["run", "--no-confrim", "--", "true"], 125, "did you mean --no-confirm?"),
            (["run", "--kill-on-failur", "--", "true"], 125, "did you mean --kill-on-failure?"),
            (["logs", "--jsn"], 2, "did you mean --json?"),
            (["store", "lst"], 2, "did you mean 'list'?"),
            (["store", "list", "--cache-dri", "x"], 2, "did you mean --cache-dir?"),
        ):
            result = self.contextune(*arguments)
            self.assertEqual((result.returncode, result.stdout), (status, ""), arguments)
            self.assertIn(guess, result.stderr)
        self.assertNotIn("did you mean", self.contextune("xylophone").stderr)

    def test_the_program_s_own_flags_are_its_own(self):
        result = self.contextune("run", "--quiet", "--", "echo", "--version", "--regionn")
        self.assertEqual(result.stdout, "--version --regionn\n")


if __name__ == "__main__":
    unittest.main()
