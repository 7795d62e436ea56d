"""Ranks on two hosts agree over TCP: they find one another as their launcher says it, or by a
communicator that is handed over, and a network that fails costs winners and nothing else."""

import contextlib
import pathlib
import re
import secrets
import shutil
import sys
import tempfile
import time
import unittest

import faults
import hosts
import job
import joining_test

RANKS = 4
SKIPPED = 77


def host_of(rank):
    return rank * len(hosts.NAMES) // RANKS


def local_rank(rank):
    return rank % (RANKS // len(hosts.NAMES))


def torchrun(rank):
    return {"RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_RANK": local_rank(rank), "LOCAL_WORLD_SIZE": 2,
            "MASTER_ADDR": hosts.NAMES[0], "MASTER_PORT": 29500, "TORCHELASTIC_RUN_ID": "between-hosts"}


def slurm(rank):
    return {"SLURM_PROCID": rank, "SLURM_NTASKS": RANKS, "SLURM_LOCALID": local_rank(rank),
            "SLURM_JOB_ID": 17, "SLURM_STEP_ID": 0, "SLURM_NNODES": 2, "SLURM_STEP_NODELIST": "host-[a,b]"}


class OfLauncher:
    """A program whose ranks know of one another from what their launcher says."""

    def __init__(self, program, launcher):
        self.program = program
        self.launcher = launcher

    def __getattr__(self, name):
        return getattr(self.program, name)

    def own_variables(self, rank, num_ranks):
        own = self.program.own_variables(rank, num_ranks)
        kept = {name: value for name, value in own.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
        return kept | {name: str(value) for name, value in self.launcher(rank).items()}


class BetweenHosts(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-hosts-"))
        self.hosts = hosts.Hosts(self.folder)
        self.hosts.__enter__()

    def tearDown(self):
        self.hosts.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def job(self, mode, launcher, steps=None, variables=None, of=None):
        """`of`: what single ranks have in addition."""
        all_of = {"CONTEXTUNE_DISTRIBUTED": "on", "CONTEXTUNE_SECRET": secrets.token_hex(16),
                  "SIMNCCL_FOLDER": str(self.folder), "SIMNCCL_HOSTS": "2", **(variables or {})}
        where = {rank: job.Peculiar(before=self.hosts.prefix(host_of(rank)), variables=(of or {}).get(rank, {}))
                 for rank in range(RANKS)}
        return job.Job(RANKS, mode, steps or faults.STEPS[mode], all_of, where,
                       OfLauncher(job.PROGRAMS[mode], launcher), declared=False)

    def tuned(self, mode, launcher, steps=None, variables=None):
        start = time.monotonic()
        with self.job(mode, launcher, steps, variables) as ranks:
            return faults.judge(ranks, range(RANKS), start)

    def assert_same_winners(self, outcome):
        self.assertEqual(outcome.wrong, [], outcome.logs)
        for rank in range(RANKS):
            self.assertEqual(outcome.told[rank], [], outcome.logs[rank])
            self.assertEqual(outcome.winners[rank], outcome.winners[0])
        self.assertTrue(outcome.winners[0], outcome.logs[0])
        self.assertGreater(self.hosts.received_bytes(0), 4096)

    def test_ranks_of_torchrun_get_the_same_winners(self):
        self.assert_same_winners(self.tuned("replay", torchrun))

    def test_ranks_of_slurm_tune_their_collectives_together(self):
        outcome = self.tuned("collectives", slurm, steps=600)
        self.assert_same_winners(outcome)
        self.assertTrue(any(" site=all_" in line for line in outcome.winners[0]), outcome.winners[0])

    def test_ranks_without_a_secret_meet_by_the_id_of_their_communicator(self):
        for distributed in ("auto", "on"):
            outcome = self.tuned("collectives", torchrun, 600,
                                 {"CONTEXTUNE_DISTRIBUTED": distributed, "CONTEXTUNE_SECRET": ""})
            self.assert_same_winners(outcome)

    def test_an_address_that_is_nobodys_costs_winners_only(self):
        nowhere = {"CONTEXTUNE_DISTRIBUTED": "auto", "CONTEXTUNE_SECRET": "",
                   "CONTEXTUNE_ADDRESS": "203.0.113.9:21999"}
        self.assert_untuned(self.tuned("collectives", torchrun, 300, nowhere), "203.0.113.9", "203.0.113.9")

    def test_ranks_that_hand_their_communicator_over_meet_at_an_address_of_rank_0(self):
        (self.folder / "logs").mkdir()
        ranks = [joining_test.Rank(self.folder, rank, RANKS, [],
                                   {"SIMNCCL_FOLDER": str(self.folder), "SIMNCCL_HOSTS": "2"},
                                   self.hosts.prefix(host_of(rank))) for rank in range(RANKS)]
        try:
            for number, rank in enumerate(ranks):
                self.assertEqual(rank.rest(), ["sum 10", "ready", "joined", "filled", "sum 10", "end"])
                self.assertEqual(rank.process.wait(job.LIMIT), 0)
                self.assertEqual((self.folder / f"err-{number}").read_text(), "")
        finally:
            joining_test.end(ranks)
        logs = [(self.folder / "logs" / f"rank-{rank}.log").read_text() for rank in range(RANKS)]
        winners = [job.winners(log) for log in logs]
        self.assertEqual(len(winners[0]), 1, logs[0])
        self.assertEqual(winners, [winners[0]] * RANKS)
        self.assertGreater(self.hosts.received_bytes(0), 2048)

    def test_a_slow_network_costs_time_only(self):
        port = 21777
        own = {rank: {"CONTEXTUNE_ADDRESS": f"{hosts.ADDRESSES[host_of(rank)]}:{port}"} for rank in range(RANKS)}
        start = time.monotonic()
        with self.hosts.delayed(port, 4), self.job("replay", torchrun, of=own) as ranks:
            outcome = faults.judge(ranks, range(RANKS), start)
        self.assert_same_winners(outcome)
        self.assertGreater(outcome.longest_wait, 0.004)

    def test_a_network_that_fails_costs_winners_only(self):
        """Nothing gets through, and nobody is told: neither those that are replayed get stuck, nor those
        whose collectives take another way."""
        slow = {"CONTEXTUNE_PRESYNC_TIMEOUT": "2", "CONTEXTUNE_N_REPEAT": "1000"}
        moment = " event=trial "
        start = time.monotonic()
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(self.job("replay", torchrun, variables=slow))
            self.assertTrue(first.reaches(0, moment), first.log(0))
            second = stack.enter_context(self.job("collectives", slurm, variables=slow, steps=600))
            self.assertTrue(second.reaches(0, moment), second.log(0))
            self.hosts.disconnect()
            self.assert_untuned(faults.judge(first, range(RANKS), start), "rank [23]", "rank 0")
            # These may be through before the silence is long enough to say whose it is.
            self.assert_untuned(faults.judge(second, range(RANKS), start), ".", ".")

    def assert_untuned(self, outcome, on_first, on_second):
        """And the logs of each host say why."""
        self.assertEqual(outcome.wrong, [], outcome.logs)
        self.assertLess(outcome.longest_wait, 20)
        for rank in range(RANKS):
            why = (on_first, on_second)[host_of(rank)]
            self.assertTrue(any(reason == "no_agreement" and re.search(why, text)
                                for reason, text in outcome.told[rank]), outcome.logs[rank])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="contextune-hosts-") as scratch:
        try:
            with hosts.Hosts(scratch):
                pass
        except hosts.NotAllowed as error:
            print(f"This machine does not let the test make two hosts (as root on Linux it would): {error}")
            sys.exit(SKIPPED)
    unittest.main()
