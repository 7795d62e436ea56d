"""Nothing of contextune is made in the jail of a program that calls chroot, which computes the same."""

import os
import unittest

import awkward_programs_test as awkward


@unittest.skipUnless(os.geteuid() == 0, "only root may call chroot")
class JailedTest(awkward.ProgramTest):
    program = awkward.BUILD / "apps" / "jailed"

    def test_no_folder_is_made_in_the_jail(self):
        jail = self.folder / "jail"
        jail.mkdir()

        def output(variables):
            done = self.run_program(variables, jail)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout

        tuned = awkward.tuned_environment(str(self.folder / "logs")) | {
            "CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": str(self.folder / "store")}
        self.assertEqual(output(tuned), output(awkward.environment()))
        self.assertEqual(list(jail.iterdir()), [])
        log = self.log("logs")
        self.assertIn("event=winner", log)
        self.assertIn("another root folder by now (chroot)", log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
