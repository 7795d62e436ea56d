"""Programs with little stack or memory compute under the shim what they compute alone."""

import pathlib
import subprocess
import tempfile
import unittest

import awkward_programs_test as awkward

PROGRAM = awkward.BUILD / "apps" / "tight_limits"


class TightLimitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="contextune-apps-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, what, variables):
        return subprocess.run([PROGRAM, what], env=variables, cwd=self.folder, text=True,
                              capture_output=True, timeout=awkward.PATIENCE)

    def log_of_unchanged(self, what, **more):
        bare = self.run_program(what, awkward.environment())
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertNotIn("MISSING", bare.stdout)
        tuned = self.run_program(what, awkward.tuned_environment(str(self.folder)) | more)
        self.assertEqual((tuned.returncode, tuned.stdout, tuned.stderr),
                         (0, bare.stdout, bare.stderr))
        return "".join(file.read_text() for file in self.folder.glob("rank-*.log"))

    def test_a_thread_of_48_kib(self):
        self.assertIn("event=winner", self.log_of_unchanged("stack"))

    def test_a_deeply_nested_space_file_on_a_thread_of_48_kib(self):
        deep = self.folder / "deep.lua"
        for opens, closes in (("(", ")"), ("{", "}"), ("do ", "end "), ("f(function() ", "end) ")):
            deep.write_text(("local x = 1 + " if opens in "({" else "") + opens * 5000 + closes * 5000)
            with self.subTest(opens=opens):
                self.assertIn("is nested too deeply", self.log_of_unchanged(
                    "stack", CONTEXTUNE_SPACE=str(deep)))

    def test_a_deeply_nested_regular_expression_on_a_thread_of_48_kib(self):
        log = self.log_of_unchanged("stack", CONTEXTUNE_ONLY="(" * 2000 + "advance" + ")" * 2000)
        self.assertIn("nested more than 50 deep", log)

    def test_memory_of_which_a_few_megabytes_are_left(self):
        self.log_of_unchanged("data")


if __name__ == "__main__":
    unittest.main(verbosity=2)
