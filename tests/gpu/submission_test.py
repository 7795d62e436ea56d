"""However its launches reach the GPU, a program's results have the same bits: random programs of a seed
as written, chained and gathered, and controls that show that the comparison could see a difference.

Only on a GPU, as tests/gpu/run.sh starts it: CONTEXTUNE_TEST_GPU=1 and CONTEXTUNE_TEST_BUILD.
    submission_test.py [--count N] [--seed S] [unittest's arguments]
A program that differs is told by `submission_programs --seed S --first I --count 1 --describe 1`."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"])
ON_GPU = os.environ.get("CONTEXTUNE_TEST_GPU") == "1"
PROGRAMS = BUILD / "gpu" / "submission_programs"
CONTROLS = BUILD / "gpu" / "submission_controls"
HAZARDS = BUILD / "gpu" / "submission_hazards"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
BARE = None
WAYS = ("chained", "gathered=8", "gathered=32", "chained gathered=16")
SOME_WAYS = ("chained", "gathered=16", "chained gathered=16")
PATIENCE = 300
MOST_TOLD = 20
settings = argparse.Namespace(count=400, seed=1)


class Run:
    """A program's run with its launches pinned; BARE: without the shim."""

    def __init__(self, argv, way):
        self.way = "bare" if way is BARE else way
        logs = tempfile.mkdtemp(prefix="contextune-submission-")
        try:
            variables = {name: value for name, value in os.environ.items()
                         if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD"))}
            if way is not BARE:
                variables.update(LD_PRELOAD=str(SHIM), CONTEXTUNE_FORCE=f"launches={way}",
                                 CONTEXTUNE_STORE="off", CONTEXTUNE_LOG_DIR=logs)
            start = time.monotonic()
            done = subprocess.run(list(map(str, argv)), env=variables, text=True, timeout=PATIENCE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.seconds = time.monotonic() - start
            self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
            self.log = "".join(file.read_text(errors="replace")
                               for file in pathlib.Path(logs).glob("rank-*.log"))
        finally:
            shutil.rmtree(logs, ignore_errors=True)

    def told(self):
        return f"{self.way}: status {self.status} after {self.seconds:.1f} s\n{self.out[-600:]}{self.err[-600:]}"

    def total(self, name):
        """Of all processes, as their logs say it; None: they do not."""
        found = re.findall(rf" event=submission .*\b{name}=(\d+)", self.log)
        return sum(map(int, found)) if found else None


@unittest.skipUnless(ON_GPU, "needs a GPU")
class Submission(unittest.TestCase):
    maxDiff = None

    def run_well(self, argv, way):
        run = Run(argv, way)
        self.assertEqual(run.status, 0, run.told())
        return run

    def was_used(self, run):
        """Nothing is shown by a run in which all launches went as written."""
        needed = {"chained": ("kernels",), "gathered": ("held", "in_graphs")}
        names = [name for kind, all_names in needed.items() if kind in run.way for name in all_names]
        if run.way == "chained":
            names.append("chained")  # launches in a stream
        for name in names:
            self.assertTrue(run.total(name), f"{run.way}: {name}={run.total(name)}\n{run.log[-2000:]}")

    def test_random_programs_give_the_same_bits(self):
        argv = (PROGRAMS, "--seed", settings.seed, "--count", settings.count)
        expected = self.run_well(argv, BARE)
        print(f"as written: {expected.err.strip()}", flush=True)
        wanted = expected.out.splitlines()
        self.assertEqual(len(wanted), settings.count)
        for way in (BARE, "as written", *WAYS):
            with self.subTest(launches=way or "bare, once more"):
                run = self.run_well(argv, way)
                counted = ("chained", "chained_graph_launches", "held", "in_graphs", "late", "kernels")
                totals = {name: run.total(name) for name in counted}
                if way and "chained" in way:
                    self.assertTrue(totals["chained_graph_launches"], run.log[-2000:])
                print(f"{way or 'bare, once more'}: {run.err.strip()}, {totals}", flush=True)
                differing = [line.split()[0] for line, other in zip(wanted, run.out.splitlines(), strict=True)
                             if line != other]
                self.assertEqual(differing[:MOST_TOLD], [],
                                 f"{len(differing)} of {len(wanted)} programs of seed {settings.seed} "
                                 f"differ {way or 'in a second bare run'}")
                self.was_used(run)

    def wrong(self, run):
        """What each control says it found wrong."""
        return {name: int(wrong) for name, wrong in
                re.findall(r"^(\w+) wrong (\d+) of [1-9]\d*$", run.out, re.MULTILINE)}

    def test_stale_data_can_be_seen(self):
        run = self.run_well((CONTROLS, "--turns", "100"), BARE)
        print(run.out, flush=True)
        wrong = self.wrong(run)
        self.assertGreater(wrong["trigger_without_wait"], 0)
        self.assertEqual(wrong["trigger_and_wait"], 0)
        self.assertGreater(wrong["trigger_and_wait_constants"], 0)

    def test_ordinary_launches_read_no_stale_data_and_no_host_waits_for_ever(self):
        for way in (BARE, *SOME_WAYS):
            with self.subTest(launches=way or "bare"):
                run = self.run_well((CONTROLS,), way)
                print(f"{run.way}: {run.seconds:.1f} s\n" +
                      "".join(line + "\n" for line in run.out.splitlines() if " median " in line), flush=True)
                self.was_used(run)
                wrong = self.wrong(run)
                for name in ("trigger_and_wait", "ordinary_after_trigger", "ordinary_data",
                             "ordinary_constants", "ordinary_constants_after_trigger", "flag",
                             "across_streams"):
                    self.assertEqual(wrong[name], 0, f"{name}\n{run.out}")
                # The program's own mistake stays what it was, or becomes rarer.
                self.assertIn("trigger_without_wait", wrong)

    def test_no_kind_of_memory_or_launch_reads_stale_data(self):
        for way in (BARE, *SOME_WAYS):
            with self.subTest(launches=way or "bare"):
                mistakes = self.find_no_stale_data(way)
                # A mistake of the program's own shows by chance: once in these runs is enough.
                for _ in range(4 if way is BARE else 0):
                    if all(mistakes.values()):
                        break
                    for name, count in self.find_no_stale_data(way).items():
                        mistakes[name] += count
                if way is BARE:
                    self.assertEqual([name for name, count in mistakes.items() if count == 0], [],
                                     "the program's own mistakes are not seen")

    def find_no_stale_data(self, way):
        """Runs all checks. Returns what the program's own mistakes got wrong, by name."""
        run = self.run_well((HAZARDS,), way)
        wrong = self.wrong(run)
        print(f"{run.way}: {run.seconds:.1f} s, {len(wrong)} checks", flush=True)
        if way is BARE:
            print(run.out, flush=True)
        mistakes = {name: count for name, count in wrong.items() if name.endswith("_without_wait")}
        self.assertGreater(len(mistakes), 15, run.told())
        self.assertEqual({name: count for name, count in wrong.items()
                          if count != 0 and name not in mistakes}, {})
        self.was_used(run)
        return mistakes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--count", type=int, default=settings.count)
    parser.add_argument("--seed", type=int, default=settings.seed)
    rest = parser.parse_known_args(namespace=settings)[1]
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
