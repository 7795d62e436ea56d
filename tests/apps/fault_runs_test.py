"""Configs that hang, abort or break the CUDA context, each in the first, the middle and the last config of
one of three sites: after three runs at the most the next one is tuned, the log names the config that did
it, and no other one is lost. Usage: fault_runs_test.py replay|live|body 1|2. Prints a table.

On the simulated driver by default; with CONTEXTUNE_TEST_GPU=1 on this machine's GPU, where a trap of the
device stands for the abort."""

import itertools
import os
import shutil
import signal
import sys
import time
import unittest

from stored_runs import BUILD, PATIENCE, Log, StoredRuns, log_text, rules

ON_GPU = os.environ.get("CONTEXTUNE_TEST_GPU") == "1"
MODE, RANKS = sys.argv[1], int(sys.argv[2])
PROGRAM = BUILD / ("gpu" if ON_GPU else "apps") / (
    "fault_sites_body" if ON_GPU and MODE == "body" else "fault_sites")
KINDS = {"hang": "hang", "abort": "abort", "illegal address": "sticky"}
SITES = ("first", "second", "third")
BLOCKS = (64, 128, 512)  # the default is 256
POSITIONS = ("first", "middle", "last")
PLACES = list(zip(POSITIONS, SITES, BLOCKS))
CELLS = list(zip(KINDS, reversed(PLACES))) if MODE == "process" else list(itertools.product(KINDS, PLACES))
REGION = "process" if MODE == "process" else "nvtx:step"
MOST_RUNS = 3  # that end badly
QUICK = ("--trial-timeout", "0.5", "--no-confirm", "--max-slowdown", "0")


class FaultRunsTest(StoredRuns):
    def setUp(self):
        super().setUp()
        if ON_GPU:
            del self.environment["LD_LIBRARY_PATH"]
        self.space = self.work / "space.lua"
        self.space.write_text(rules(SITES, BLOCKS))

    def run_once(self, fault, *arguments):
        """Status of a run, which is interrupted as from a terminal where a trial is said to hang."""
        # Its winners are stored meanwhile.
        program = (PROGRAM, "body") if MODE == "body" else (PROGRAM, "loop", "1500", *arguments)
        ranks = () if RANKS == 1 else ("-n", RANKS, "--kill-on-failure")
        mode = () if MODE == "body" else ("--mode", "live" if MODE == "process" else MODE)
        variables = {"FAULT_SITES": fault.replace("block=", "")} if ON_GPU else {"SIMCUDA_FAULT": fault}
        process = self.start(*QUICK, *mode, *ranks, program=program, region=REGION, space=self.space,
                             variables=variables)
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None:
            self.assertLess(time.monotonic(), deadline, log_text(self.folder))
            if self.is_said_to_hang() and process.poll() is None:
                time.sleep(0.2)  # a replay ends itself
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGINT)
                    self.end(process)
                break
            time.sleep(0.02)
        return self.end(process)

    def is_said_to_hang(self):
        said = [line for line in log_text(self.folder).splitlines() if "reason=trial_timeout" in line and
                ("leave out" in line or "tries each" in line)]
        return len({line.split(" rank=")[1].split()[0] for line in said}) == RANKS

    def trials(self):
        """What is stored of each site: status by block."""
        return {site["name"]: {trial["config"].get("block"): trial["status"] for trial in site["trials"]}
                for site in self.entry(REGION.removeprefix("nvtx:"))[1]["sites"]}

    def run_until_tuned(self, fault):
        ends = []
        for _ in range(MOST_RUNS + 1):
            status, _, errors = self.run_once(fault)
            log = Log(self.folder)
            if status == 0 and {line["site"] for line in log.of("winner")} == set(SITES):
                return ends, log
            ends.append(status)
        self.fail(f"not tuned after {ends}: {errors}\n{log_text(self.folder)}")

    def test_each_fault_in_each_place(self):
        status, bare, _ = self.end(self.start("--disable", program=(PROGRAM, "loop", "1"),
                                              region=REGION, space=self.space))
        self.assertEqual(status, 0)
        print(f"\n{MODE}, {RANKS} rank{'s' * (RANKS > 1)}{'' if ON_GPU else ' (simulated)'}\n"
              f"{'fault':16} {'site':8} {'config':8} {'block':>6} {'ended badly':>12}  named  innocent lost")
        wrong = []
        for kind, (position, site, block) in CELLS:
            shutil.rmtree(self.work / "store", ignore_errors=True)
            ends, log = self.run_until_tuned(f"{KINDS[kind]}:{site}:block={block}")
            named = {line["text"].split(" of '")[1].split("'")[0] + " " +
                     line["text"].split("(")[1].split(")")[0]
                     for line in log.of("fallback", reason="config_crashed")}
            trials = self.trials()
            lost = [f"{one} {b}" for one in SITES for b in BLOCKS if (one, b) != (site, block) and
                    trials[one].get(b) not in ("measured", "cutoff")]
            right = named == {f"{site} block={block}"}
            print(f"{kind:16} {site:8} {position:8} {block:6} {len(ends):12}  {'yes' if right else named}"
                  f"    {', '.join(lost) or 'none'}", flush=True)
            if not right or lost or not ends:
                wrong.append((kind, site, block, ends, named, lost, log_text(self.folder)))
        self.assertEqual(wrong, [])

    @unittest.skipUnless(MODE == "process" and not ON_GPU, "elsewhere sites go through passes together")
    def test_a_suspect_that_is_launched_no_more_keeps_nobody_waiting(self):
        self.assertNotEqual(self.run_once("abort:third:block=64")[0], 0)
        self.environment["SIMCUDA_LATE_RECORDS"] = "0.02"  # nothing was survived yet when it is launched
        status, _, errors = self.run_once("abort:third:block=64", "once")
        self.assertEqual(status, 0, errors)
        self.assertEqual({line["site"] for line in Log(self.folder).of("winner")}, {"first", "second"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
