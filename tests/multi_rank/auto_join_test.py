"""Ranks that nobody declared: they find one another by the ncclUniqueId of their first communicator."""

import os
import shutil
import subprocess
import tempfile
import unittest

import faults
import job
from shapes import Shape


class OfNoLauncher(Shape):
    """Ranks of which only the program knows which they are."""

    def own_variables(self, rank, num_ranks):
        # Of a step of Slurm there is nothing, which contextune asks for and the program does not.
        own = {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(num_ranks), "SLURM_LOCALID": str(rank)}
        others = super().own_variables(rank, num_ranks).items()
        return own | {name: value for name, value in others if not name.endswith(("RANK", "WORLD_SIZE"))}


class AutoJoin(unittest.TestCase):
    maxDiff = None

    def run_ranks(self, program, num_ranks=2, steps=4000, variables=None, peculiar=None):
        """The ranks' logs, after each has printed what it prints without contextune."""
        with job.Job(num_ranks, "live", steps, variables, peculiar, program, declared=False) as ranks:
            outcome = faults.judge(ranks, range(num_ranks), 0.0)
        self.assertEqual(outcome.wrong, [])
        return outcome.logs

    def assert_tuned_together(self, logs):
        self.assertEqual(job.contradictions(logs), [])
        for log in logs:
            self.assertEqual(job.told(log), [], log)
            tried = [line for line in job.lines(log, "trial") if job.field(line, "config") != "0"]
            self.assertNotEqual(tried, [], log)
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertNotEqual(job.winners(log), [])

    def assert_untuned(self, log, reason, sentence):
        tried = [line for line in job.lines(log, "trial") if job.field(line, "config") != "0"]
        self.assertEqual(tried, [], log)
        told = job.told(log)
        self.assertTrue(any(why == reason and sentence in text for why, text in told), log)

    def test_ranks_of_torchrun_agree_without_a_word(self):
        self.assert_tuned_together(self.run_ranks(Shape("group_of_one")))

    def test_ranks_of_no_launcher_have_logs_of_their_own(self):
        with job.Job(2, "live", 6000, None, None, OfNoLauncher("group_of_one"), declared=False) as ranks:
            self.assertEqual(ranks.unfinished(range(2)), [])
            logs = [ranks.log(rank) for rank in range(2)]
            told = subprocess.run([str(job.COMMAND), "logs", str(ranks.logs)], capture_output=True, text=True,
                                  timeout=job.LIMIT)
        self.assert_tuned_together(logs)
        for rank, log in enumerate(logs):
            own = [line for line in log.splitlines() if job.field(line, "rank") == str(rank)]
            self.assertEqual({job.field(line, "world_size") for line in job.lines(log, "start")[-1:]}, {"2"})
            self.assertEqual({job.field(line, "group_rank") for line in job.lines("\n".join(own), "sync")},
                             {str(rank)})
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertIn("on 2 ranks", told.stdout)
        self.assertIn("all ranks agree on", told.stdout)

    def test_four_ranks_and_their_kernels(self):
        self.assert_tuned_together(self.run_ranks(job.TensorParallel(), 4, 600))

    def test_a_communicator_that_begins_after_the_region(self):
        self.assert_tuned_together(self.run_ranks(Shape("late")))

    def test_a_rank_without_the_shim(self):
        for bare in (0, 1):
            logs = self.run_ranks(Shape("group_of_one"), peculiar={bare: job.Peculiar(shim=False)})
            self.assert_untuned(logs[1 - bare], "no_agreement", "had not agreed")

    def test_ranks_of_several_hosts_meet_at_the_one_that_made_the_id(self):
        self.assert_tuned_together(self.run_ranks(Shape("group_of_one"), 2, 3000, {"SIMNCCL_HOSTS": "2"}))

    def test_ranks_of_several_hosts_whose_id_is_no_secret(self):
        given = {"SIMNCCL_HOSTS": "2", "NCCL_COMM_ID": "127.0.0.1:1"}
        for log in self.run_ranks(Shape("group_of_one"), 2, 300, given):
            self.assert_untuned(log, "no_rendezvous", "holds no random number")

    def test_ranks_that_are_to_stay_alone(self):
        for log in self.run_ranks(Shape("group_of_one"), 2, 300, {"CONTEXTUNE_DISTRIBUTED": "off"}):
            self.assert_untuned(log, "no_rendezvous", "--distributed is off")


class Found(Shape):
    """Ranks that mark nothing."""

    region = "auto"
    variables = {"SIMCUDA_DEVICES": "4",
                 "CONTEXTUNE_REFINE": "true", "CONTEXTUNE_CONFIRM": "true", "SIMNCCL_TRACE": "trace"}


class FoundStretch(unittest.TestCase):
    """Collectives in a stretch that each rank finds by itself, at the same call."""

    def run_found(self, name, steps=1500, **more):
        with job.Job(2, "live", steps, Found.variables, program=Found(name), declared=False, **more) as ranks:
            outcome = faults.judge(ranks, range(2), 0.0)
            self.assertEqual(outcome.wrong, [])
            done = [file.read_text().splitlines() for file in sorted(ranks.folder.glob("trace.*"))]
        return outcome.logs, done

    def test_ranks_try_other_ways_at_the_same_calls_and_agree_on_winners(self):
        for name in ("different_sites", "several_in_a_group"):
            with self.subTest(name=name):
                logs, done = self.run_found(name)
                self.assertEqual(done[0], done[1])
                self.assertGreater(len(set(done[0])), 2, "nothing else was tried")
                self.assertEqual(job.contradictions(logs), [])
                for log in logs:
                    self.assertNotEqual(job.winners(log), [])
                    tuned = {job.field(line, "region") for line in job.lines(log, "stage")}
                    self.assertEqual(tuned - {"auto"}, {"auto:collectives"})  # the other's are of launches
                    self.assertNotIn("event=timer", log)

    def test_a_stretch_that_comes_a_few_times_keeps_its_default(self):
        logs, done = self.run_found("different_sites", steps=120)  # of two collectives
        self.assertEqual(len(set(done[0])), 2)
        for log in logs:
            self.assertNotIn("event=region region=auto:collectives", log)
            (told,) = job.sentences(log, "nothing_repeats")
            self.assertRegex(log, "event=submission .* state=nccl")
            self.assertRegex(told, r"came to 2[234]\d of them. They are compared from 256 on")

    def test_runs_too_short_for_an_answer_are_left_alone_in_the_end(self):
        folder = tempfile.mkdtemp(prefix="contextune-store-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        variables = Found.variables | {"CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": folder}
        left_alone = "runs are too short to compare its collectives"
        with job.Job(2, "live", 300, variables, program=Found("different_sites"), declared=False) as ranks:
            for run in range(1, 8):
                self.assertEqual(ranks.unfinished(range(2)), [])
                logs = [ranks.log(rank) for rank in range(2)]
                if left_alone in logs[0]:
                    break
                self.assertIn("region=auto:collectives", logs[0])
                for rank in range(2):
                    (ranks.logs / f"rank-{rank}.log").unlink()
                ranks.ranks = [ranks.start(rank) for rank in range(2)]
        self.assertGreater(run, 4)
        for log in logs:
            self.assertIn(left_alone, log)
            self.assertNotIn("no_agreement", log)

    def test_a_rank_that_does_not_look_leaves_all_as_it_was(self):
        others = {"CONTEXTUNE_AUTO": "chained,gathered"}
        for peculiar in (job.Peculiar(shim=False), job.Peculiar(variables=others)):
            logs, done = self.run_found("group_of_one", peculiar={1: peculiar})
            self.assertEqual(len(set(done[0])), 1)
            self.assertTrue(any(why == "no_agreement" and "had not agreed" in text
                                for why, text in job.told(logs[0])), logs[0])

    def test_communicators_that_come_and_go_and_captured_collectives_keep_their_default(self):
        for name in ("captured", "anew"):
            with self.subTest(name=name):
                self.run_found(name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
