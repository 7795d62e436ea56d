"""Programs with little stack or memory compute under the shim what they compute alone."""

import unittest

import awkward_programs_test as awkward


class TightLimitsTest(awkward.ProgramTest):
    program = awkward.BUILD / "apps" / "tight_limits"

    def log_of_unchanged(self, what, **more):
        bare = self.run_program(awkward.environment(), what)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertNotIn("MISSING", bare.stdout)
        tuned = self.run_program(awkward.tuned_environment(str(self.folder)) | more, what)
        self.assertEqual((tuned.returncode, tuned.stdout, tuned.stderr),
                         (0, bare.stdout, bare.stderr))
        return self.log()

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
