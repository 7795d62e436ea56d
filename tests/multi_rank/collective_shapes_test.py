"""Collectives in shapes that are hard to tune: each rank prints what it prints without contextune, no
rank hangs, and the logs say what was tuned, or why it was not."""

import secrets
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


class CollectiveShapes(unittest.TestCase):
    maxDiff = None

    def check(self, name, num_ranks=2, steps=1500, regions="nvtx:step", variables=None,
              declared=True):
        """The ranks' logs."""
        variables = {"CONTEXTUNE_REGION": regions} | (variables or {})
        with job.Job(num_ranks, "live", steps, variables, None, Shape(name), declared) as ranks:
            outcome = faults.judge(ranks, range(num_ranks), 0.0)
        self.assertEqual(outcome.wrong, [])
        return outcome.logs

    def assert_leased(self, logs, key=""):
        """All ranks were told configs other than the default."""
        for log in logs:
            tried = [line for line in job.lines(log, "trial")
                     if job.field(line, "config") != "0" and key in line]
            self.assertNotEqual(tried, [], log)

    def assert_said(self, logs, reason, sentence=""):
        for log in logs:
            texts = [job.field(line, "text") for line in job.lines(log, "fallback")
                     if job.field(line, "reason") == reason]
            self.assertTrue(any(sentence in text for text in texts), log)

    def test_communicators_of_overlapping_ranks(self):
        logs = self.check("overlapping", 4)
        self.assert_leased(logs, "ranks=2")
        self.assert_leased(logs, "ranks=4")

    def test_a_communicator_of_more_ranks_than_were_declared(self):
        # Two jobs of two ranks: the second half of the program's ranks meets elsewhere.
        first = {"CONTEXTUNE_WORLD_SIZE": "2"}
        second = first | {"CONTEXTUNE_ADDRESS": "unix:contextune-test-" + secrets.token_hex(8)}
        peculiar = {rank: job.Peculiar(variables=(first if rank < 2 else second) |
                                       {"CONTEXTUNE_RANK": str(rank % 2), "CONTEXTUNE_LOG_DIR": f"logs-{rank}"})
                    for rank in range(4)}
        logs = {}
        variables = {"CONTEXTUNE_REGION": "nvtx:step"}
        with job.Job(4, "live", 1500, variables, peculiar, Shape("halves")) as ranks:
            self.assertEqual(ranks.unfinished(range(4)), [])
            for rank in range(4):
                self.assertEqual(ranks.faults_of(rank), [])
                file = ranks.folder / f"logs-{rank}" / f"rank-{rank % 2}.log"
                logs[rank] = file.read_text()
        for half in ([logs[0], logs[1]], [logs[2], logs[3]]):
            self.assertEqual(job.contradictions(half), [])
            self.assert_leased(half, "ranks=2")
            self.assert_said(half, "no_rendezvous", "its 4 ranks are more than the 2")
            for log in half:
                self.assertEqual([line for line in job.lines(log, "trial") if "ranks=4" in line], [])
                self.assertEqual(len(job.told(log)), 1, log)

    def assert_same_winners(self, logs):
        for log in logs:
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertNotEqual(job.winners(log), [], log)

    def test_a_region_that_only_some_ranks_enter(self):
        for declared in (True, False):
            logs = self.check("some_enter", 4, declared=declared)
            self.assert_leased(logs[:2])
            self.assert_same_winners(logs[:2])
            self.assert_said(logs[2:], "region_never_entered")

    def test_a_communicator_some_of_whose_ranks_stay_out_of_the_region(self):
        logs = self.check("some_stay_out", 4, 6000, variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "0.5"})
        self.assert_leased(logs[:2], "ranks=2")
        self.assert_same_winners(logs[:2])
        self.assert_said(logs[:2], "ranks_differ", "2 of the 4 ranks of their communicator")
        for log in logs[:2]:
            self.assertEqual([line for line in job.lines(log, "trial")
                              if "ranks=4" in line and job.field(line, "config") != "0"], [])

    def test_pairs_of_ranks_that_begin_at_different_times(self):
        for declared in (True, False):
            logs = self.check("stages", 4, declared=declared)
            self.assert_leased(logs)
            self.assert_same_winners(logs[:2])
            self.assert_same_winners(logs[2:])

    def test_ranks_with_different_collectives_in_one_region(self):
        logs = self.check("different_sites", 4)
        self.assert_leased(logs)
        for pair, own, others in ((logs[:2], "to:512", "to:64 "), (logs[2:], "to:64 ", "to:512")):
            self.assert_same_winners(pair)
            self.assert_leased(pair, own)
            for log in pair:
                self.assertNotIn(others, log)

    def test_steps_that_ranks_mark_differently(self):
        self.assert_said(self.check("some_mark"), "ranks_differ", "will be at number")

    def test_a_group_of_one(self):
        self.assert_leased(self.check("group_of_one"))

    def test_groups(self):
        logs = self.check("groups")
        self.assert_leased(logs, "type=u32 op=sum bytes=to:16384")
        self.assert_said(logs, "collective_fixed", "of several datatypes or operators")

    def test_a_group_after_a_collective_of_another_kind(self):
        logs = self.check("before_groups")
        self.assert_leased(logs, "grouped=3")
        for log in logs:
            self.assertEqual([line for line in job.lines(log, "fallback")
                              if job.field(line, "reason") == "collective_fixed"], [])

    def test_a_group_of_more_than_are_told_apart(self):
        self.assert_said(self.check("large_group", steps=300), "collective_fixed",
                         "of several datatypes or operators")

    def test_the_same_collective_outside_of_the_region(self):
        self.assert_said(self.check("outside"), "ranks_differ", "the same number of them in every entry")

    def test_another_size_in_every_entry(self):
        self.check("sizes")

    def test_one_collective_in_two_regions(self):
        logs = self.check("two_regions", regions="nvtx:step;nvtx:other")
        self.assert_leased(logs)
        self.assert_said(logs, "collective_fixed", "another region")

    def test_a_host_that_is_ahead_of_its_device(self):
        self.assert_leased(self.check("ahead"))

    def test_collectives_in_graphs(self):
        self.assert_said(self.check("captured"), "capture")

    def test_communicators_that_end_and_begin_anew(self):
        self.assert_leased(self.check("anew"))

    def test_two_threads_with_communicators_of_their_own(self):
        self.check("threads")

    def test_one_process_with_two_devices(self):
        logs = self.check("devices", num_ranks=1)
        self.assert_leased(logs, "ranks=2")
        self.assertEqual(job.told(logs[0]), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
