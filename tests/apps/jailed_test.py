"""Nothing of contextune is made in the jail of a program that calls chroot, which computes the same."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import awkward_programs_test as awkward

PROGRAM = awkward.BUILD / "apps" / "jailed"


@unittest.skipUnless(os.geteuid() == 0, "only root may call chroot")
class JailedTest(unittest.TestCase):
    def test_no_folder_is_made_in_the_jail(self):
        with tempfile.TemporaryDirectory(prefix="contextune-apps-") as folder:
            jail = pathlib.Path(folder) / "jail"
            jail.mkdir()

            def output(variables):
                done = subprocess.run([PROGRAM, jail], env=variables, cwd=folder, text=True,
                                      capture_output=True, timeout=awkward.PATIENCE)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                return done.stdout

            tuned = awkward.tuned_environment(folder + "/logs") | {
                "CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": folder + "/store"}
            self.assertEqual(output(tuned), output(awkward.environment()))
            self.assertEqual(list(jail.iterdir()), [])
            log = (pathlib.Path(folder) / "logs" / "rank-0.log").read_text()
            self.assertIn("event=winner", log)
            self.assertIn("another root folder by now (chroot)", log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
