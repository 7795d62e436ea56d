"""Traces and tables of real runs: the demo, and jobs of four ranks, on the simulated driver."""

import csv
import json
import re
import unittest

from demo_runs import BUILD, COMMAND, DEMO, DemoRuns
from trace_events import Trace

TENSOR_PARALLEL = BUILD / "demo" / "tensor_parallel"


class TraceRuns(DemoRuns):
    prints_errors = True

    def setUp(self):
        super().setUp()
        self.environment["LD_LIBRARY_PATH"] = f"{BUILD / 'simnccl'}:{BUILD / 'simcuda'}"

    def trace_of(self, *argv, **variables):
        self.execute(COMMAND, "run", "--report", "report.txt", *argv, **variables)
        self.execute(COMMAND, "logs", "--perfetto", "trace.json", "--csv", "trials.csv")
        trace = Trace((self.work / "trace.json").read_text())
        trace.check(self)
        with open(self.work / "trials.csv", newline="") as table:
            self.rows = list(csv.DictReader(table, strict=True))
        self.contents = json.loads(self.execute(COMMAND, "logs", "--json"))
        self.assertEqual(self.contents["num_bad_lines"], 0)
        trials = [trial for process in self.contents["processes"] for region in process["regions"]
                  for site in region["sites"] for trial in site["trials"]]
        self.assertGreater(len(trials), 0)
        self.assertEqual([(row["pass"], row["status"], row["began"]) for row in self.rows],
                         [(str(trial["pass"]), trial["status"], trial["began"] or "") for trial in trials])
        shown = [one for one in trace.slices if one["cat"].startswith("trial")]
        self.assertEqual(len(shown), len(trials))
        # When each was tried is in the log, and not only when its line was written.
        self.assertEqual([one for one in shown if "placed" in one["args"]], [])
        return trace

    def demo(self, *flags):
        return self.trace_of(*flags, "--region", "nvtx:decode", "--space", BUILD / "demo" / "demo.lua", "--",
                             DEMO, "--rows", 16, "--steps", 20)

    def check_answers(self, trace, ranks):
        """How long config 3 of `attend` took, and on which rank last: the trace, the table and JSON agree."""
        trials = trace.trials("decode: attend", 3)
        self.assertEqual(sorted(trials), list(range(ranks)))
        last = max(trials, key=lambda rank: max(one["ts"] for one in trials[rank]))
        rows = [row for row in self.rows if row["site"] == "attend" and row["config"] == "3"
                and row["counts"] == "true"]
        self.assertEqual(last, int(max(rows, key=lambda row: row["began"])["rank"]))
        for rank, slices in trials.items():
            took = [float(one["args"]["microseconds"]) for one in slices]
            of_rank = [float(row["seconds"]) * 1e6 for row in rows if int(row["rank"]) == rank]
            self.assertEqual(len(took), len(of_rank))
            for shown, told in zip(took, of_rank):
                self.assertAlmostEqual(shown, told, places=6)
            for one in slices:
                self.assertAlmostEqual(float(one["dur"]),
                                       one["args"]["launches"] * float(one["args"]["microseconds"]), places=2)

    def test_the_demo(self):
        trace = self.demo()
        self.check_answers(trace, 1)
        (stages,) = trace.on("region decode").values()
        self.assertEqual([one["name"] for one in stages], ["table", "refine", "confirm"])
        (replays,) = trace.on("region decode: replayed visits").values()
        table, replay = stages[0], replays[0]
        self.assertLess(replay["ts"], table["ts"])
        for one in trace.slices:
            if one["cat"].startswith("trial"):
                self.assertLess(table["ts"], one["ts"] + 1000)  # the pass begins, and with it the stage
                self.assertLess(one["ts"], table["ts"] + table["dur"])
        times = [one["args"]["microseconds"] for one in trace.counters if one["name"] == "time of a pass of decode"]
        self.assertGreater(len(times), len({row["pass"] for row in self.rows}))
        winners = [site for process in self.contents["processes"] for region in process["regions"]
                   for site in region["sites"] if site["winner"]]
        self.assertEqual(len([one for one in trace.instants if one["cat"] == "winner"]), len(winners))
        self.assertGreater(len(winners), 0)

    def test_four_ranks_of_the_demo_each_tune_alone(self):
        trace = self.demo("-n", "4")
        self.assertEqual([name.split(",")[0] for name in trace.processes.values()],
                         [f"rank {rank} (simulated)" for rank in range(4)])
        self.check_answers(trace, 4)

    @unittest.skipUnless(TENSOR_PARALLEL.exists(), "needs the simulated NCCL")
    def test_four_ranks_that_tune_together(self):
        trace = self.trace_of("-n", "4", "--kill-on-failure", "--region", "nvtx:step", "--space",
                              BUILD / "demo" / "tensor_parallel.lua", "--", TENSOR_PARALLEL, "--meet",
                              self.work / "meet", "--steps", "10", "--tokens", "32", SIMNCCL_DEADLINE_S="50")
        self.assertEqual(trace.about["clocks"], "as the logs say")
        flows = trace.flows(self)
        asked = sum(len(process["syncs"]) for process in self.contents["processes"])
        self.assertGreater(asked, 4)
        self.assertEqual(len(flows), asked)
        for question, verdict in flows:
            self.assertEqual(question["args"]["question"], verdict["args"]["question"])
            self.assertRegex(trace.tracks[verdict["pid"], verdict["tid"]], "^verdicts of group ")
        ranks = {question["pid"] for question, _ in flows}
        self.assertEqual(len(ranks), 4)
        # All ranks try the same in a pass that they made together.
        configs = {}
        for row in self.rows:
            if row["agreed"] == "true":
                key = row["site"], row["key"], row["pass"]
                self.assertEqual(configs.setdefault(key, row["config"]), row["config"])
        self.assertGreater(len(configs), 0)
        self.assertTrue(all(re.match(r"rank \d", name) for name in trace.processes.values()))


if __name__ == "__main__":
    unittest.main()
