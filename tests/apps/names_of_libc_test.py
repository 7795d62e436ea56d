"""A program that gives names of POSIX functions to things of its own is tuned, stores what was
found, and computes what it computes alone."""

import unittest

import awkward_programs_test as awkward


class NamesOfLibcTest(awkward.ProgramTest):
    program = awkward.BUILD / "apps" / "names_of_libc"

    def test_it_is_tuned_and_computes_as_it_does_alone(self):
        alone = self.run_program(awkward.environment())
        self.assertEqual(alone.returncode, 0, alone.stderr)
        above = self.folder / "above"
        variables = awkward.tuned_environment(str(above / "logs")) | {
            "CONTEXTUNE_CACHE_DIR": str(above / "store")}
        del variables["CONTEXTUNE_STORE"]
        for _ in range(2):  # the second begins with what the first has stored
            tuned = self.run_program(variables)
            self.assertEqual((tuned.returncode, tuned.stdout, tuned.stderr),
                             (alone.returncode, alone.stdout, alone.stderr))
        log = self.log("above/logs")
        for told in ("event=winner region=R", "action=saved", "action=found"):
            self.assertIn(told, log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
