"""Programs may call setenv on any thread while they are tuned: nothing of contextune reads the
environment once it is attached."""

import tempfile
import unittest

import awkward_programs_test as awkward


class SetenvMeanwhileTest(awkward.ProgramTest):
    program = awkward.BUILD / "apps" / "setenv_meanwhile"

    def readers(self, **more):
        """Who read the environment of a tuned run, and its log."""
        bare = self.run_program(awkward.environment())
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertNotIn("read by", bare.stderr)
        tuned = self.run_program(awkward.tuned_environment(str(self.folder)) | {
            "CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": str(self.folder / "store"),
            "CONTEXTUNE_LOG_LEVEL": "debug"} | more)
        self.assertEqual((tuned.returncode, tuned.stdout), (0, bare.stdout), tuned.stderr)
        read = [line for line in tuned.stderr.splitlines() if line.startswith("read by")]
        return read, self.log()

    def none_of_ours(self, readers):
        self.assertEqual([reader for reader in readers if "libcontextune" in reader], [])

    def test_a_replayed_region(self):
        readers, log = self.readers(CONTEXTUNE_MODE="replay")
        self.assertIn("event=winner", log)
        self.none_of_ours(readers)

    def test_a_region_that_is_tuned_live(self):
        readers, log = self.readers(CONTEXTUNE_MODE="live")
        self.assertIn("event=winner", log)
        self.none_of_ours(readers)

    def test_a_program_without_a_region(self):
        readers, _ = self.readers(CONTEXTUNE_REGION="process")
        self.none_of_ours(readers)

    def test_a_rank_that_looks_for_others(self):
        with tempfile.TemporaryDirectory() as meeting:
            readers, log = self.readers(
                CONTEXTUNE_RANK="0", CONTEXTUNE_WORLD_SIZE="2", CONTEXTUNE_DISTRIBUTED="on",
                CONTEXTUNE_ADDRESS=f"unix:{meeting}/socket", CONTEXTUNE_PRESYNC_TIMEOUT="0.2")
        self.assertIn("world_size=2", log)
        self.none_of_ours(readers)


if __name__ == "__main__":
    unittest.main(verbosity=2)
