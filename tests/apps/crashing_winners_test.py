"""Stored winners that take the process down, as with another driver: they are in flight until a run has
survived them, and found, named and left out by the runs after it."""

import os
import shutil
import signal
import subprocess
import time
import unittest

from stored_runs import BUILD, DEMO, PATIENCE, StoredRuns, demo, named, rules

ENDS = BUILD / "apps" / "ends_in_region"
BODIES = BUILD / "apps" / "rank_bodies"


class CrashingWinnersTest(StoredRuns):
    def winners(self):
        return {site["name"]: site["winner"] for site in self.entry()[1]["sites"]}

    def make_winner(self, site):
        """Has a config stored as the winner of a site whatever it is worth. Gives a fault's target."""
        with self.edited() as sites:
            stored = named(sites, site)
            stored["winner"] = {"block": 512, "per_sm": 2}
            self.assertIn(stored["winner"], [trial["config"] for trial in stored["trials"]])
        return f"{site}:block=512,grid=264"

    def test_one_that_ends_every_run_is_found_whoever_repeats_the_region(self):
        site = "attend"  # neither the first nor the last
        _, out = self.run_program("--no-confirm")
        shutil.copytree(self.work / "store", self.work / "stored")
        for mode, kind in ("replay", "abort"), ("live", "sticky"):
            with self.subTest(mode):
                shutil.rmtree(self.work / "store")
                shutil.copytree(self.work / "stored", self.work / "store")
                flags = ("--mode", mode, "--no-confirm")
                fault = {"SIMCUDA_FAULT": f"{kind}:{self.make_winner(site)}"}
                before = self.winners()
                winner = before[site]
                ends, log, same = self.run_until_survived(*flags, variables=fault)
                self.assertEqual(same, out)
                self.assertIn(ends, (1, 2))
                self.assert_blames_only(log, site, winner)
                # What the others had won holds, and only that one is tuned again.
                self.assertLessEqual({line["site"] for line in log.of("trial")}, {site})
                self.assertNotEqual(self.winners()[site], winner)
                self.assertEqual(self.run_program(*flags, variables=fault)[1], out)
                self.assertEqual(self.winners() | {site: None}, before | {site: None})

    def test_bodies_and_functions_lose_theirs_as_well(self):
        program = (BODIES, "1", "0", self.work / "meet")
        first, out = self.run_program("--no-confirm", program=program)
        self.assertNotEqual(set(first.winners().values()), {"0"})
        fault = {"SIMCUDA_FAULT": "abort:fill:block=128"}
        ends, log, same = self.run_until_survived("--no-confirm", program=program, variables=fault)
        self.assertEqual(same, out)
        self.assertGreater(ends, 0)
        self.assertTrue(log.of("fallback", reason="config_crashed"))
        _, again, same = self.run_until_survived("--no-confirm", program=program, variables=fault)
        self.assertEqual(same, out)

    def wait_for(self, what):
        """The process's own journal, once that is in it."""
        journal = self.work / "store" / "journal"
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for path in journal.glob("*.trying"):
                if what(path):
                    return path
            time.sleep(0.001)
        self.fail("the journal never came to that")

    def test_one_that_was_survived_is_not_suspected_whatever_ends_the_process_later(self):
        first, out = self.run_program()
        program = demo(100000)
        process = self.start(program=program)
        trying = self.wait_for(lambda path: path.read_text().rstrip("\0").endswith("end\n"))
        deadline = time.monotonic() + PATIENCE
        while "site" in trying.read_text():
            self.assertLess(time.monotonic(), deadline)
        os.kill(int(trying.name.split("-")[0]), signal.SIGSEGV)
        self.assertNotEqual(self.end(process)[0], 0)
        again, same = self.run_program()
        self.assertEqual(same, out)
        self.assert_starts_tuned(again, first.winners())
        self.assertNotIn("site", self.known())

    def test_one_whose_work_was_waited_for_is_not_suspected_however_the_process_ends(self):
        space = self.work / "space.lua"
        space.write_text(rules(("remember",), (64, 512)))
        def program(how):
            return (ENDS, DEMO.parent / "demo_kernels.fatbin", how, "0")
        self.run_program("--mode", "replay", "--no-confirm", region="nvtx:step", space=space,
                         program=program("end"))
        with self.edited("step") as sites:
            for site in sites:
                site["winner"] = {"block": 512}
                site["terms"]["confirmed"] = True
        for how in "_exit_once_idle", "_exit_once_read":
            with self.subTest(how):
                log = ""
                for _ in range(20):  # _exit may come before the log's thread has written
                    if "action=found" in log:
                        break
                    # Nobody is there to tell how it ended.
                    done = subprocess.run(
                        list(map(str, program(how))), capture_output=True, cwd=self.work, timeout=PATIENCE,
                        env=self.preloaded(space, self.work / how, "nvtx:step", CONTEXTUNE_MODE="live"))
                    self.assertEqual(done.returncode, 8)
                    log = (self.work / how / "rank-0.log").read_text()
                    (trying,) = (self.work / "store" / "journal").glob("*.trying")
                    self.assertNotIn("site", trying.read_text())
                    trying.unlink()
                self.assertIn("action=found", log)

    def test_suspects_that_do_nothing_are_tried_alone_and_hold_again(self):
        _, out = self.run_program("--no-confirm")
        # Something ends the first run once; it is not the winners' fault.
        fault = {"SIMCUDA_FAULT": f"abort:{self.make_winner('attend')}"}
        winners = self.winners()
        self.assertNotEqual(self.end(self.start("--no-confirm", variables=fault))[0], 0)
        again, same = self.run_program("--no-confirm")
        self.assertEqual((again.of("trial"), same), ([], out))
        self.assertEqual(self.winners(), winners)
        for site in "rotate", "attend":
            values = again.of("winner", site=site)[-1]
            self.assertEqual({name: int(values[name]) for name in winners[site]}, winners[site])
        self.assertNotIn("suspect", self.known())


if __name__ == "__main__":
    unittest.main()
