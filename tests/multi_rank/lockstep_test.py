"""A region with collectives that is replayed: its ranks make the same runs of it, all in one visit, and
each prints what it prints without contextune. What one of them cannot repeat none repeats."""

import signal
import time
import unittest

import faults
import job
from shapes import Shape
from job import Peculiar

SPACE = {"CONTEXTUNE_SPACE": str(job.BUILD.parents[1] / "tools" / "demo_program" / "tensor_parallel.lua")}
COLLECTIVES = {"all_reduce", "reduce_scatter", "all_gather"}
SHORT = {"CONTEXTUNE_PRESYNC_TIMEOUT": "1"}


class Besides(job.TensorParallel):
    """A shape of lockstep_shapes.cpp."""

    region = ";".join(["nvtx:step", *(f"nvtx:own{number}" for number in range(8))])
    variables = {"CONTEXTUNE_SPACE": str(job.HERE / "collectives.lua")}

    def __init__(self, name):
        super().__init__()
        self.name = name

    def argv(self, steps, folder):
        return [job.BUILD / "apps" / "lockstep_shapes", self.name, steps, folder / "meet"]


class Lockstep(unittest.TestCase):
    maxDiff = None

    def run_job(self, num_ranks, variables=None, peculiar=None, steps=6):
        """The logs of ranks that all end as they do alone, and contradict each other in nothing."""
        with job.Job(num_ranks, "lockstep", steps, variables, peculiar) as ranks:
            self.assertEqual(ranks.unfinished(range(num_ranks)), [])
            for rank in range(num_ranks):
                self.assertEqual(ranks.faults_of(rank), [])
            logs = [ranks.log(rank) for rank in range(num_ranks)]
        self.assertEqual(job.contradictions(logs), [])
        return logs

    def assert_replayed(self, logs, visit=1):
        """In one visit, by all ranks with as many runs, and nothing was tried in another."""
        for log in logs:
            replays = job.lines(log, "replay")
            self.assertEqual(len(replays), 1, log)
            for name in ("visit", "replays", "ranks"):
                self.assertEqual(job.field(replays[0], name), job.field(job.lines(logs[0], "replay")[0], name))
            self.assertEqual(job.field(replays[0], "visit"), str(visit))
            self.assertEqual(job.field(replays[0], "ranks"), str(len(logs)))
            self.assertIn(' timed_after=restore why_restored="its ranks repeat it together"', replays[0])
            last_trial = max(log.rfind(" event=trial "), log.rfind(" event=winner "))
            self.assertLess(last_trial, log.find(" event=replay "))
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertLessEqual(COLLECTIVES, {job.field(line, "site") for line in job.lines(log, "winner")})

    def test_four_ranks_tune_a_region_with_collectives_in_one_visit(self):
        logs = self.run_job(4)
        self.assert_replayed(logs)
        tried = {(job.field(line, "site"), job.field(line, "config")) for line in job.lines(logs[0], "trial")}
        for site in COLLECTIVES:
            self.assertGreater(len({config for name, config in tried if name == site}), 5, tried)

    def test_it_does_so_with_communicators_and_groups_of_all_kinds(self):
        for name, num_ranks in (("group_of_one", 2), ("before_groups", 2), ("different_sites", 4),
                                ("stages", 4), ("own_choices", 4), ("two_regions", 2)):
            for declared in (True, False):
                with self.subTest(name, declared=declared):
                    with job.Job(num_ranks, "replay", 40, {"CONTEXTUNE_REGION": "nvtx:step"}, None,
                                 Shape(name), declared) as ranks:
                        outcome = faults.judge(ranks, range(num_ranks), 0.0)
                    self.assertEqual(outcome.wrong, [])
                    for log in outcome.logs:
                        replays = job.lines(log, "replay")
                        self.assertEqual([job.field(line, "ranks") for line in replays], [str(num_ranks)])

    def run_shape(self, name, steps=6, repeats=200, **variables):
        """The logs of two ranks in which something goes on beside the replay."""
        with job.Job(2, "replay", steps, {"CONTEXTUNE_REGION": Besides.region,
                                          "CONTEXTUNE_N_REPEAT": str(repeats), **variables}, None, Besides(name)) as ranks:
            outcome = faults.judge(ranks, range(2), time.monotonic())
        self.assertEqual(outcome.wrong, [])
        return outcome

    def test_another_thread_is_kept_out_of_nccl_while_its_memory_is_not_what_it_has_to_see(self):
        for name in ("sums_beside", "frees_beside"):
            for log in self.run_shape(name).logs:
                self.assertNotEqual(job.lines(log, "replay"), [])
                self.assertEqual(job.sentences(log, "wrong_result"), [])

    def test_a_thread_that_holds_the_loader_does_not_hold_the_replay(self):
        for log in self.run_shape("loads_beside").logs:
            self.assertNotEqual(job.lines(log, "replay"), [])

    def test_memory_that_nccl_gave_to_the_program_is_put_back(self):
        for log in self.run_shape("works_in_memory_of_nccl", repeats=2).logs:
            self.assertEqual(len(job.lines(log, "replay")), 1)

    def test_operators_of_the_programs_own_are_not_repeated(self):
        for log in self.run_shape("own_operator", repeats=2).logs:
            self.assertEqual(job.lines(log, "replay"), [])
            self.assertIn("operator", " ".join(job.sentences(log, "collective")))

    def test_ranks_that_do_not_meet_are_waited_for_once_and_not_in_every_region_and_visit(self):
        outcome = self.run_shape("regions_of_its_own", 3, 2, **SHORT)
        self.assertEqual(sum("within 1 s" in text for text in job.sentences(outcome.logs[0], "collective")), 1)
        outcome = self.run_shape("empty_visits", 20, 2, **SHORT)
        told = [text for log in outcome.logs for text in job.sentences(log, "collective")]
        self.assertTrue(any("too far apart" in text for text in told), told)

    def test_messages_are_not_repeated(self):
        with job.Job(3, "replay", 40, {"CONTEXTUNE_REGION": "nvtx:step"}, None, Shape("exchanges")) as ranks:
            outcome = faults.judge(ranks, range(3), 0.0)
        self.assertEqual(outcome.wrong, [])
        for log in outcome.logs:
            self.assertEqual(job.lines(log, "replay"), [])
            self.assertIn("messages", job.sentences(log, "collective")[0])

    def test_winners_are_refined_and_confirmed_in_it(self):
        logs = self.run_job(2, {"CONTEXTUNE_REFINE": "true", "CONTEXTUNE_REFINE_ROUNDS": "1",
                                "CONTEXTUNE_CONFIRM": "true"})
        self.assert_replayed(logs)
        verdicts = {job.field(job.lines(log, "confirm")[-1], "verdict") for log in logs}
        self.assertEqual(len(verdicts), 1)
        self.assertNotEqual(verdicts, {"skipped"})

    def test_a_config_that_is_wrong_on_one_rank_is_no_winner_on_any(self):
        wrong = Peculiar(variables={"SIMCUDA_FAULT": "wrong_result:expand:block=256"})
        logs = self.run_job(2, SPACE, {1: wrong})
        self.assert_replayed(logs)
        self.assertTrue(job.sentences(logs[1], "wrong_result"))
        for log in logs:
            chosen = [line for line in job.lines(log, "winner") if job.field(line, "site") == "expand"]
            self.assertEqual(len(chosen), 1)
            self.assertNotEqual(job.field(chosen[0], "block"), "256")

    def test_a_config_that_cannot_be_launched_on_one_rank_is_no_winner_on_any(self):
        failing = Peculiar(variables={"SIMCUDA_FAULT": "launch_fail:contract:block=256"})
        logs = self.run_job(2, SPACE, {0: failing})
        self.assert_replayed(logs)
        for log in logs:
            chosen = [line for line in job.lines(log, "winner") if job.field(line, "site") == "contract"]
            self.assertNotEqual(job.field(chosen[0], "block"), "256")

    def test_where_one_rank_cannot_all_are_tuned_live_and_name_it(self):
        logs = self.run_job(2, {"CONTEXTUNE_REPLAY_MEMORY": "0"}, {1: Peculiar(
            variables={"CONTEXTUNE_REPLAY_MEMORY": "1"})}, steps=1500)
        for log in logs:
            self.assertEqual(job.lines(log, "replay"), [])
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertGreater(len(job.winners(log)), len(COLLECTIVES))
        self.assertIn("rank 1", job.sentences(logs[0], "collective")[0])
        self.assertTrue(job.sentences(logs[1], "replay_memory"))

    def test_a_rank_that_does_not_replay_is_waited_for_once(self):
        logs = self.run_job(2, SHORT, {1: Peculiar(variables={"CONTEXTUNE_MODE": "live"})}, steps=300)
        told = [text for text in job.sentences(logs[0], "collective") if "could not agree" in text]
        self.assertEqual(len(told), 1, logs[0])
        self.assertIn("rank 1", told[0])

    def test_rounding_that_is_allowed_needs_a_tolerance(self):
        logs = self.run_job(2, {"CONTEXTUNE_ALLOW_ROUNDING": "true"}, steps=300)
        for log in logs:
            self.assertEqual(job.lines(log, "replay"), [])
            self.assertIn("--tolerance", job.sentences(log, "collective")[0])

    def test_a_rank_that_stands_still_in_it_ends_the_replay_and_nothing_else(self):
        outcome = faults.hit("lockstep", 2, 1, "in the middle of the table", signal.SIGSTOP, 30, SHORT,
                             pause=4)
        self.assertEqual(outcome.wrong, [])
        self.assertLess(outcome.longest_wait, 3)

    def test_a_rank_that_is_lost_in_it_leaves_the_others_where_nccl_would(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                outcome = faults.hit("lockstep", 2, victim, "in the middle of the table", signal.SIGKILL)
                self.assertEqual(outcome.wrong, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
