"""Ranks that tune a region together end with the same winners, and each prints what it prints alone."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import job

# Times that differ from rank to rank, by more than the configs do.
NOISY = {"SIMCUDA_NOISE": "0.2"}


class InStep(job.TensorParallel):
    """Ranks of which none is a step ahead of the others, however they are scheduled."""

    variables = {"CONTEXTUNE_SPACE": str(job.HERE / "in_step.lua")}

    def own_variables(self, rank, num_ranks):
        return super().own_variables(rank, num_ranks) | {"SIMCUDA_SEED": str(rank + 1)}


class SameWinners(unittest.TestCase):
    maxDiff = None

    def check(self, num_ranks, mode, steps, variables=None, program=None):
        with job.Job(num_ranks, mode, steps, {**NOISY, **(variables or {})}, program=program) as ranks:
            self.assertEqual(ranks.unfinished(range(num_ranks)), [])
            logs = [ranks.log(rank) for rank in range(num_ranks)]
            for rank in range(num_ranks):
                self.assertEqual(ranks.faults_of(rank), [])
            self.assertEqual(len(list(ranks.logs.glob("rank-*.log"))), num_ranks)
        return logs

    def assert_same(self, logs, num_winners=3):
        for log in logs:
            self.assertEqual(job.told(log), [])
            self.assertEqual(len(job.winners(log)), num_winners, log)
            self.assertEqual(job.winners(log), job.winners(logs[0]))
        self.assertEqual(job.contradictions(logs), [])

    def test_four_ranks_that_replay_get_the_same_winners(self):
        self.assert_same(self.check(4, "replay", 12))

    @unittest.skipUnless(job.TENSOR_PARALLEL.exists(), "there is no simulated NCCL")
    def test_ranks_in_live_mode_get_the_same_winners(self):
        # Nobody is kept waiting in live mode: ranks that do not wait for one another by themselves
        # may never meet on a busy machine, where one is through before the next one begins.
        self.assert_same(self.check(2, "live", 300, program=InStep()), num_winners=6)

    def test_ranks_that_refine_and_confirm_get_the_same_winners(self):
        logs = self.check(2, "replay", 12, {"CONTEXTUNE_REFINE": "true", "CONTEXTUNE_CONFIRM": "true"})
        self.assert_same(logs)
        verdicts = {job.field(job.lines(log, "confirm")[-1], "verdict") for log in logs}
        self.assertEqual(len(verdicts), 1)
        self.assertNotEqual(verdicts, {"skipped"})

    def test_the_figures_are_each_ranks_own(self):
        logs = self.check(2, "replay", 12)
        times = [[job.field(line, "default_us") for line in job.lines(log, "winner")] for log in logs]
        self.assertNotEqual(times[0], times[1])

    def test_tuned_apart_they_get_others(self):
        """What the tests above show is not because all ranks measure the same."""
        logs = self.check(4, "replay", 12, {"CONTEXTUNE_DISTRIBUTED": "off"})
        self.assertGreater(len({tuple(job.winners(log)) for log in logs}), 1)

    def test_contextune_run_starts_them_all(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-ranks-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        flags = ("-n", 4, "--region", "nvtx:decode", "--space", job.SPACE, "--log-dir", folder / "logs",
                 "--n-warmup", 0, "--n-repeat", 1, "--no-refine", "--no-confirm", "--report",
                 folder / "report")
        argv = [job.COMMAND, "run", *flags, "--", *job.DEMO, "--steps", 12]
        result = subprocess.run(list(map(str, argv)), env=job.plain_environment() | NOISY, cwd=folder,
                                capture_output=True, text=True, timeout=job.LIMIT)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        bare = "".join(job.PROGRAMS["live"].bare_outputs(12, 4))
        self.assertEqual(sorted(result.stdout.splitlines()), sorted(bare.splitlines()))
        logs = [(folder / "logs" / f"rank-{rank}.log").read_text() for rank in range(4)]
        self.assert_same(logs)
        contents = json.loads(subprocess.run(
            [str(job.COMMAND), "logs", "--json", str(folder / "logs")], capture_output=True, check=True,
            timeout=job.LIMIT).stdout)
        self.assertEqual(contents["num_bad_lines"], 0)
        self.assertEqual(sorted(process["rank"] for process in contents["processes"]), [0, 1, 2, 3])


if __name__ == "__main__":
    unittest.main(verbosity=2)
