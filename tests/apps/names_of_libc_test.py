"""A program that gives names of POSIX functions to things of its own is tuned, stores what was
found, and computes what it computes alone."""

import pathlib
import subprocess
import tempfile
import unittest

import awkward_programs_test as awkward

PROGRAM = awkward.BUILD / "apps" / "names_of_libc"


def execute(variables):
    return subprocess.run([PROGRAM], env=variables, text=True, capture_output=True,
                          timeout=awkward.PATIENCE)


class NamesOfLibcTest(unittest.TestCase):
    def test_it_is_tuned_and_computes_as_it_does_alone(self):
        alone = execute(awkward.environment())
        self.assertEqual(alone.returncode, 0, alone.stderr)
        with tempfile.TemporaryDirectory(prefix="contextune-names-") as folder:
            place = pathlib.Path(folder)
            variables = awkward.tuned_environment(str(place / "above" / "logs"))
            del variables["CONTEXTUNE_STORE"]
            for _ in range(2):  # the second begins with what the first has stored
                tuned = execute(variables | {"CONTEXTUNE_CACHE_DIR": str(place / "above" / "store")})
                self.assertEqual((tuned.returncode, tuned.stdout, tuned.stderr),
                                 (alone.returncode, alone.stdout, alone.stderr))
            log = (place / "above" / "logs" / "rank-0.log").read_text()
        for told in ("event=winner region=R", "action=saved", "action=found"):
            self.assertIn(told, log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
