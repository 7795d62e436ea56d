"""Runs that are ended in the middle of the tuning: `contextune run` says what was in flight and what the
next run makes of it, and what was measured is kept."""

import os
import signal
import time
import unittest

from stored_runs import BUILD, PATIENCE, Log, StoredRuns, log_text, rules

PROGRAM = (BUILD / "apps" / "fault_sites", "loop", "100000")
SHORT = (BUILD / "apps" / "fault_sites", "loop", "1500")
FLAGS = ("--mode", "live", "--no-confirm", "--max-slowdown", "0", "--trial-timeout", "0.5")
SITES = ("first", "second", "third")


class InterruptedRunsTest(StoredRuns):
    def setUp(self):
        super().setUp()
        self.space = self.work / "space.lua"
        self.space.write_text(rules(SITES, (64, 128, 512)))

    def begin(self, *flags, fault="", program=PROGRAM, region="nvtx:step"):
        return self.start(*FLAGS, *flags, program=program, region=region, space=self.space,
                          variables={"SIMCUDA_FAULT": fault} if fault else {})

    def report(self):
        return (self.work / "report").read_text()

    def wait_for(self, what, process):
        deadline = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.01)

    def interrupt(self, process):
        os.killpg(process.pid, signal.SIGINT)
        status, _, _ = self.end(process)
        self.assertEqual(status, -signal.SIGINT)

    def test_a_crash_is_told_with_its_signal_its_configs_and_what_comes_next(self):
        status, _, _ = self.end(self.begin(fault="abort:second:block=128"))
        self.assertEqual(status, -signal.SIGABRT)
        self.assertRegex(self.report(), r"was killed by signal 6 \(Aborted\)\. The next run tries each config "
                                        r"alone that was in flight: .*site second\{.*\}: block=128")
        status, _, _ = self.end(self.begin(fault="abort:second:block=128"))
        self.assertEqual(status, -signal.SIGABRT)
        self.assertRegex(self.report(), r"\(Aborted\)\. Later runs leave out the config that was alone in flight: "
                                        r"region step, site second\{.*\}: block=128\.")

    def test_an_end_that_somebody_wanted_blames_nobody_and_says_so(self):
        # Not said to hang yet.
        process = self.begin("--trial-timeout", "60", fault="hang:second:block=128")
        self.wait_for(lambda: any("block=128" in path.read_text() for path in
                                  (self.work / "store" / "journal").glob("*.trying")), process)
        self.interrupt(process)
        self.assertRegex(self.report(), r"was killed by signal 2 \(Interrupt\)\. The configs? in flight (was|were) .*block=128.*; "
                                        "none is blamed")

    def test_a_hang_in_the_region_of_the_process_is_told_while_it_hangs(self):
        process = self.begin(fault="hang:second:block=128", region="process")
        self.wait_for(lambda: "reason=trial_timeout region=process" in log_text(self.folder), process)
        self.assertRegex(log_text(self.folder), r"tries each config alone that was in flight: .*"
                                          r"region process, site second\{.*\}: block=128")
        self.interrupt(process)

    def test_what_was_measured_is_kept(self):
        process = self.begin(fault="hang:third:block=512")
        self.wait_for(lambda: "tries each" in log_text(self.folder) and
                      "action=noted" in log_text(self.folder), process)
        self.interrupt(process)
        self.assertRegex(self.report(), r"\(Interrupt\)\. The next run tries each config alone")
        status, _, _ = self.end(self.begin(program=SHORT))
        self.assertEqual(status, 0)
        log = Log(self.folder)
        for site in SITES:
            tried = {line.get("block") for line in log.of("trial", site=site)}
            # Beside the default, the best so far and what was not measured.
            self.assertLessEqual(tried, {None, "128", "512"}, site)
            self.assertIn("512", tried)
            self.assertEqual(log.of("winner", site=site)[-1]["block"], "128")


if __name__ == "__main__":
    unittest.main()
