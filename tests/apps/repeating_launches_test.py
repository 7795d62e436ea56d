"""A program in which launches repeat is found out about while it runs, and later runs know it."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import awkward_programs_test as awkward

PROGRAM = awkward.BUILD / "apps" / "repeating_launches"
LAUNCHES_OF_STEP = 8


def output(arguments, **variables):
    done = subprocess.run([PROGRAM, *map(str, arguments)], text=True, capture_output=True,
                          env=awkward.environment() | variables, timeout=awkward.PATIENCE)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout, done.stderr)
    return done.stdout


class RepeatingLaunchesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="contextune-apps-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.runs = 0

    def run_of(self, *arguments, **variables):
        """The log of a run that printed what the bare one does, and its last line about launches."""
        self.runs += 1
        logs = self.folder / f"logs-{self.runs}"
        settings = dict(LD_PRELOAD=str(awkward.SHIM), CONTEXTUNE_REGION="auto", CONTEXTUNE_STORE="tune",
                        CONTEXTUNE_CACHE_DIR=str(self.folder / "store"), CONTEXTUNE_LOG_DIR=str(logs))
        tuned = output(arguments, **settings | variables)
        self.assertEqual(tuned, output(arguments))
        log = (logs / "rank-0.log").read_text()
        self.assertNotIn("event=fault", log)
        (line,) = re.findall(r" event=submission .*", log)
        launches = re.search(r'launches=("[^"]*"|\S+)', line)[1].strip('"')
        return log, dict(re.findall(r"(\w+)=(\w+)", line)) | {"launches": launches}

    def settle(self, *arguments):
        """The log of the run that settles it. Short and noisy runs may take several."""
        for _ in range(6):
            log, totals = self.run_of(*arguments)
            if totals["state"] == "settled":
                return log, totals
        self.fail(log)

    def test_what_pays_is_found_stored_and_used_from_the_first_launch(self):
        for steps in (4000, 4100, 4200):
            log, totals = self.settle(steps, "short")
            if totals["launches"] != "as written":
                break  # else the machine was too busy to tell
        self.assertNotEqual(totals["launches"], "as written", log)
        self.assertRegex(log, r'event=region region=auto text="(every 8 launches from advect; '
                              r'[\d,]+ entries; \d+ % of the elapsed time|as found in an earlier run)"')
        self.assertIn("verdict=kept", log)
        log, totals = self.run_of(steps, "short")
        self.assertIn('event=region region=auto text="as found in an earlier run"', log)
        self.assertEqual(totals["state"], "settled")
        gone = int(totals["held"]) + int(totals["chained"])
        self.assertGreater(gone, steps * LAUNCHES_OF_STEP // 2)
        # With other arguments it may do other things.
        log, _ = self.run_of(20, "short")
        self.assertNotIn("as found in an earlier run", log)

    def test_a_program_that_gains_nothing_stays_as_written_and_is_left_alone(self):
        _, totals = self.settle(2000, "long")
        self.assertEqual(totals["launches"], "as written")
        log, totals = self.run_of(2000, "long")
        self.assertIn('text="as found in an earlier run"', log)
        for none in ("chained", "held", "images", "images_left"):
            self.assertEqual(totals[none], "0", none)

    def test_a_program_that_does_not_repeat_or_ends_at_once_stays_as_written(self):
        for arguments in ((2000, "never"), (1, "short"), (0, "short")):
            with self.subTest(arguments=arguments):
                for _ in range(2):
                    log, totals = self.run_of(*arguments)
                    self.assertIn("reason=nothing_repeats region=auto", log)
                    self.assertEqual((totals["launches"], totals["chained"], totals["held"]),
                                     ("as written", "0", "0"))

    def test_children_and_contexts_come_and_go_while_launches_are_held(self):
        for kind in ("forks", "resets"):
            for launches in ("chained gathered=16", "gathered=8", "chained"):
                with self.subTest(kind=kind, launches=launches):
                    _, totals = self.run_of(300, kind, CONTEXTUNE_FORCE=f"launches={launches}")
                    self.assertGreater(int(totals["held"]) + int(totals["chained"]), 300)
            self.run_of(300, kind)

    def test_what_a_stream_gets_later_is_not_lost_on_its_launches(self):
        steps_before = 2
        for kind in ("window", "copied"):
            with self.subTest(kind=kind):
                _, totals = self.run_of(300, kind, CONTEXTUNE_FORCE="launches=gathered=8")
                self.assertLessEqual(int(totals["held"]), steps_before * LAUNCHES_OF_STEP)

    def test_a_pin_of_launches_says_that_it_does_not_count_in_a_region(self):
        log, _ = self.run_of(20, "short", CONTEXTUNE_FORCE="launches=gathered=8",
                             CONTEXTUNE_REGION="kernel:advect")
        self.assertIn("reason=force_unmatched region=kernel:advect site=launches", log)
        log, _ = self.run_of(20, "short", CONTEXTUNE_FORCE="launches=gathered=8")
        self.assertNotIn("reason=force_unmatched", log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
