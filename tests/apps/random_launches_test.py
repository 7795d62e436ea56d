"""Programs drawn at random compute the same however their launches reach the driver.

With `--count N` more of them, with `--first N` others."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import awkward_programs_test as awkward

PROGRAM = awkward.BUILD / "apps" / "random_launches"
FIRST = 0
COUNT = 120


def results(*more, variables=None):
    done = subprocess.run([PROGRAM, str(FIRST), str(COUNT), *more], text=True, capture_output=True,
                          env=awkward.environment() | (variables or {}), timeout=awkward.PATIENCE + COUNT)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout[-300:], done.stderr)
    return done.stdout.splitlines()


class RandomLaunchesTest(unittest.TestCase):
    def setUp(self):
        self.as_written = results()
        self.assertEqual(len(self.as_written), COUNT)

    def forced(self, launches, **variables):
        """Results, and how many launches went which way."""
        with tempfile.TemporaryDirectory(prefix="contextune-apps-") as folder:
            found = results(variables={
                "LD_PRELOAD": str(awkward.SHIM), "CONTEXTUNE_REGION": "auto",
                "CONTEXTUNE_LOG_DIR": folder, "CONTEXTUNE_FORCE": f"launches={launches}"} | variables)
            log = (pathlib.Path(folder) / "rank-0.log").read_text()
        self.assertNotIn("event=fault", log)
        totals = re.search(r" event=submission .*", log)
        return found, dict(re.findall(r"(\w+)=(\d+)", totals[0])) if totals else {}

    def test_all_ways_have_the_results_of_the_program_as_written(self):
        for launches, gone in (("as written", []),
                               ("chained", ["chained", "kernels", "chained_graph_launches"]),
                               ("gathered=8", ["held", "in_graphs"]),
                               ("gathered=32", ["held", "in_graphs"]),
                               ("chained gathered=16", ["held", "in_graphs", "kernels"])):
            with self.subTest(launches=launches):
                found, totals = self.forced(launches)
                self.assertEqual(found, self.as_written)
                for total in gone:
                    self.assertGreater(int(totals[total]), 0, f"{total}: {totals}")

    def test_all_orders_that_the_driver_may_choose_have_them(self):
        for seed in range(1, 4):
            with self.subTest(seed=seed):
                found, _ = self.forced("chained gathered=16", SIMCUDA_ORDER=str(seed))
                self.assertEqual(found, self.as_written)

    def test_programs_whose_kernels_do_not_wait_have_others(self):
        wrong = sum(one != other for one, other in zip(results("unordered"), self.as_written))
        self.assertGreater(wrong, COUNT // 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--count", type=int, default=COUNT)
    given, rest = parser.parse_known_args()
    FIRST, COUNT = given.first, given.count
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
