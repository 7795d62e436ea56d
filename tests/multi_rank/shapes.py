"""The program of collectives in many shapes: jobs of it, and what their logs and traces say."""

import unittest

import faults
import job

PROGRAM = job.BUILD / "apps" / "collective_shapes"
FEW = {"CONTEXTUNE_SPACE": str(job.HERE / "collectives.lua"), "CONTEXTUNE_N_REPEAT": "1",
       "SIMCUDA_DEVICES": "4"}


class Shape(job.TensorParallel):
    """The program of one shape, in place of the demo."""

    variables = FEW

    def __init__(self, name):
        super().__init__()
        self.name = name

    def argv(self, steps, folder):
        return [PROGRAM, self.name, steps, folder / "meet"]

    def own_variables(self, rank, num_ranks):
        return super().own_variables(rank, num_ranks) | {"SIMCUDA_DEVICES": "4"}


class ShapeTest(unittest.TestCase):
    """What tests of them all ask for."""

    maxDiff = None

    def check(self, name, num_ranks=2, steps=1500, regions="nvtx:step", declared=True, peculiar=None, **more):
        """The ranks' logs."""
        variables = {"CONTEXTUNE_REGION": regions, "SIMNCCL_TRACE": "trace", **more}
        with job.Job(num_ranks, "live", steps, variables, peculiar, Shape(name), declared) as ranks:
            outcome = faults.judge(ranks, range(num_ranks), 0.0)
            self.done = [file.read_text().splitlines()
                         for file in sorted(ranks.folder.glob("trace.*"))]
        self.assertEqual(outcome.wrong, [])
        return outcome.logs

    def assert_leased(self, logs, key=""):
        """All ranks were told configs other than the default."""
        for log in logs:
            tried = [line for line in job.lines(log, "trial")
                     if job.field(line, "config") != "0" and key in line]
            self.assertNotEqual(tried, [], log)

    def last_done(self, what):
        """How each process has done that last, as NCCL saw it: `what` begins the line."""
        return [[line for line in lines if line.startswith(what)][-1].removeprefix(what + " ")
                for lines in self.done]

    def assert_said(self, logs, reason, sentence=""):
        for log in logs:
            texts = job.sentences(log, reason)
            self.assertTrue(any(sentence in text for text in texts), log)
