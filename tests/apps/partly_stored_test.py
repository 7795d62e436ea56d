"""Regions of which only a part is stored, in programs that visit them once a run: what one run could
only look at the next one tunes."""

import re
import unittest

from stored_runs import SITES, SPACE, StoredRuns, large_demo

ONCE = large_demo(1)


class PartlyStoredTest(StoredRuns):
    program = large_demo(20)

    def run_once(self, **how):
        return self.run_program("--mode", "replay", "--confirm-min-pairs", "2", program=ONCE, **how)

    def space_without(self, pattern, put=""):
        """Path of the demo's space file with a part of it left out."""
        text, count = re.subn(pattern, put, SPACE.read_text(), count=1, flags=re.S)
        self.assertEqual(count, 1)
        path = self.work / "less.lua"
        path.write_text(text)
        return path

    def assert_completed(self, less, site):
        """Tunes with `less` first, then runs the whole space until nothing is left to do."""
        first, out = self.run_once(space=less)
        self.assertNotEqual(first.of("trial"), [])
        # It starts with what is stored, and sees that there is more.
        looked, same = self.run_once()
        self.assertEqual((looked.of("trial"), same), ([], out))
        tuned, same = self.run_once()
        self.assertEqual(same, out)
        self.assertEqual({line["site"] for line in tuned.of("trial")}, {site})
        done, same = self.run_once()
        self.assertEqual(same, out)
        self.assert_starts_tuned(done, tuned.winners())
        self.assertEqual({name for name, _ in done.winners()}, SITES)

    def test_a_site_that_was_not_there_before(self):
        self.assert_completed(self.space_without(r'kernel "rotate" \{.*?\n\}\n'), "rotate")

    def test_a_config_that_was_not_there_before(self):
        # Only one kernel has it.
        self.assert_completed(self.space_without(r"block = \{ 256, 1024 \}", "block = { 256 }"),
                              "remember")

    def test_winners_of_other_software_are_shown_again(self):
        first, out = self.run_once()
        again, same = self.run_program("--mode", "replay", "--confirm-min-pairs", "2", program=ONCE,
                                       variables={"CUDA_SCALE_LAUNCH_QUEUES": "4x"})
        self.assertEqual((again.of("trial"), same), ([], out))
        self.assertEqual(len(again.confirmations()), 1)
        self.assertNotIn("skipped", {line["verdict"] for line in again.of("confirm")})


if __name__ == "__main__":
    unittest.main()
