"""Ranks that nobody declared: they find one another by the ncclUniqueId of their first communicator."""

import os
import subprocess
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

    def run_ranks(self, program, num_ranks=2, steps=1500, variables=None, peculiar=None):
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
        with job.Job(2, "live", 1500, None, None, OfNoLauncher("group_of_one"), declared=False) as ranks:
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
