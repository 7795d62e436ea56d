"""Bodies that several ranks repeat until they are tuned, kernels and collectives mixed: the same
winners and hashes on all ranks, and each prints what it prints without contextune."""

import re
import subprocess
import tempfile
import time
import unittest

import faults
import job

PROGRAM = job.BUILD / "apps" / "rank_bodies"
NOISIER = {"SIMCUDA_NOISE": "0.4", "CONTEXTUNE_REFINE": "true", "CONTEXTUNE_CONFIRM": "true"}
NOISY = {"SIMCUDA_NOISE": "0.2", "SIMNCCL_NOISE": "0.2"}
# Where the best config is to be known, even if the host holds up a rank once.
LITTLE_NOISE = {"SIMCUDA_NOISE": "0.02", "SIMNCCL_NOISE": "0.02", "CONTEXTUNE_N_REPEAT": "5"}


class Bodies(job.Linked):
    """The program with so many kernels and collectives, in place of the demo."""

    variables = {"CONTEXTUNE_SPACE": str(job.HERE / "collectives.lua")}

    def __init__(self, kernels, collectives, *how):
        super().__init__()
        self.what = kernels, collectives
        self.how = how

    def argv(self, _steps, folder):
        return [PROGRAM, *self.what, folder / "meet", *self.how]

    def own_variables(self, rank, num_ranks):
        return super().own_variables(rank, num_ranks) | {"SIMCUDA_SEED": str(rank + 1)}


def hashes(log):
    return [(job.field(line, "question"), job.field(line, "hash"))
            for line in job.lines(log, "sync") if job.field(line, "verdict") == "committed"]


class RankBodies(unittest.TestCase):
    maxDiff = None

    def run_job(self, program, num_ranks, variables=None, peculiar=None, survivors=None, declared=True):
        start = time.monotonic()
        variables = {**NOISY, **(variables or {})}
        with job.Job(num_ranks, "body", 0, variables, peculiar, program, declared) as ranks:
            outcome = faults.judge(ranks, range(num_ranks) if survivors is None else survivors, start)
            logs = [ranks.log(rank) for rank in range(num_ranks)]
        self.assertEqual(outcome.wrong, [])
        return outcome, logs

    def check(self, kernels, collectives, num_ranks):
        outcome, logs = self.run_job(Bodies(kernels, collectives), num_ranks)
        for log in logs:
            self.assertEqual(job.told(log), [])
            self.assertEqual(len(job.winners(log)), kernels + collectives, log)
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertEqual(hashes(log), hashes(logs[0]))
        self.assertNotEqual(hashes(logs[0]), [])
        if kernels:
            best = [line for line in job.winners(logs[0]) if "fill.0" in line]
            self.assertIn("block=128", best[0])
        return logs

    def test_one_operation_on_two_ranks(self):
        self.check(1, 0, 2)

    def test_one_collective_on_two_ranks(self):
        self.check(0, 1, 2)

    def test_three_operations_on_two_ranks(self):
        self.check(2, 1, 2)

    def test_five_operations_on_four_ranks(self):
        self.check(3, 2, 4)

    def test_a_function_is_tuned_at_the_first_call_of_each_key_by_all_ranks(self):
        for collectives in (0, 1):
            with self.subTest(collectives=collectives):
                _, logs = self.run_job(Bodies(1, collectives, "function"), 2, LITTLE_NOISE)
                for log in logs:
                    for key in (1, 2):
                        # What a rank waits for the other in the collective is part of its time: then
                        # the second best may be the best.
                        best = "block=128 " if collectives == 0 else "block=(128|64) "
                        self.assertEqual(len([line for line in job.winners(log) if re.search(
                            f"site=filled .*key={key}.* {best}", line)]), 1, log)
                    self.assertEqual(job.winners(log), job.winners(logs[0]))
                    self.assertEqual(hashes(log), hashes(logs[0]))

    def test_a_function_with_a_collective_that_says_nothing_is_compared_by_all_ranks(self):
        for declared in (True, False):  # or known by the communicator alone
            with self.subTest(declared=declared):
                _, logs = self.run_job(Bodies(1, 1, "unsaid"), 2, LITTLE_NOISE, declared=declared)
                for log in logs:
                    self.assertEqual([line for line in job.lines(log, "fallback")
                                      if "not_repeatable" in line], [])
                    self.assertEqual(len(job.winners(log)), 2, log)
                    self.assertEqual(job.winners(log), job.winners(logs[0]))

    def test_what_a_function_won_is_stored_by_its_keys(self):
        with tempfile.TemporaryDirectory(prefix="contextune-store-") as folder:
            variables = LITTLE_NOISE | {"CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": folder}
            self.run_job(Bodies(1, 0, "function"), 2, variables)
            store = lambda *words: subprocess.run(
                [job.COMMAND, "store", *words, "--cache-dir", folder], text=True, check=True,
                stdout=subprocess.PIPE, timeout=job.LIMIT).stdout
            self.assertRegex(store("list"), r"(?m)^filled +function .* 2 +2 ")
            for key in (1, 2):
                self.assertRegex(store("show", "filled"), f"(?m)^ +filled +key={key} +block=128 ")
            _, logs = self.run_job(Bodies(1, 0, "function"), 2, variables)
            for log in logs:
                self.assertEqual(job.lines(log, "trial"), [])
                self.assertEqual(len([line for line in job.winners(log) if "reason=stored" in line]), 2, log)

    def test_a_config_that_takes_minutes_is_given_up_on_all_ranks(self):
        _, logs = self.run_job(Bodies(2, 0, "slow"), 2, {"CONTEXTUNE_CUTOFF": "0"})
        for log in logs:
            given_up = [line for line in job.lines(log, "fallback") if "reason=trial_timeout" in line]
            self.assertEqual(len(given_up), 2, log)
            self.assertIn("It was seen on rank", given_up[0])
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertIn("block=128", job.winners(log)[0])

    def test_a_trial_that_hangs_on_one_rank_keeps_nobody_else(self):
        """The one that hangs is where it would be without contextune: in a wait of its own."""
        for victim in (0, 1):
            with self.subTest(victim=victim):
                hangs = job.Peculiar(variables={"SIMCUDA_FAULT": "hang:fill:block=128"})
                start = time.monotonic()
                with job.Job(3, "body", 0, NOISY | {"CONTEXTUNE_TRIAL_TIMEOUT": "1"}, {victim: hangs},
                             Bodies(2, 0)) as ranks:
                    self.assertTrue(ranks.reaches(victim, "event=winner"))
                    survivors = faults.others(3, victim)
                    outcome = faults.judge(ranks, survivors, start)
                    logs = [ranks.log(rank) for rank in range(3)]
                    self.assertIsNone(ranks.ranks[victim].poll())
                self.assertEqual(outcome.wrong, [])
                for log in logs:
                    texts = job.sentences(log, "trial_timeout")
                    self.assertTrue(any("nothing of contextune waits for it" in text and
                                        f"rank {victim}" in text for text in texts), log)
                    self.assertEqual(job.winners(log), job.winners(logs[0]))
                    self.assertNotIn("block=128", "".join(job.winners(log)))

    def test_a_body_that_one_rank_leaves_early_ends_at_once_everywhere(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                outcome, logs = self.run_job(Bodies(2, 0, "leave", victim), 3)
                self.assertLess(outcome.longest_wait, 0.9)
                for rank in faults.others(3, victim):
                    texts = [text for reason, text in job.told(logs[rank]) if reason == "no_agreement"]
                    self.assertEqual(len(texts), 1, logs[rank])
                    self.assertIn(f"rank {victim}", texts[0])
                    self.assertIn("left early", texts[0])

    def test_ranks_with_collectives_that_do_not_all_tune_together_run_their_body_once(self):
        """As often as one without contextune does, or they would wait in NCCL for ever."""
        kinds = {
            "all apart": {rank: {"CONTEXTUNE_DISTRIBUTED": "off"} for rank in range(2)},
            "one apart": {1: {"CONTEXTUNE_DISTRIBUTED": "off"}},
            "one disabled": {1: {"CONTEXTUNE_DISABLE": "true"}},
            "one with other options": {1: {"CONTEXTUNE_N_REPEAT": "3"}},
            "one live": {0: {"CONTEXTUNE_MODE": "live"}},
            "one of another scope": {0: {"CONTEXTUNE_SCOPE": "local"}},
        }
        for name, of_ranks in kinds.items():
            with self.subTest(name):
                peculiar = {rank: job.Peculiar(variables=own) for rank, own in of_ranks.items()}
                _, logs = self.run_job(Bodies(3, 1), 2, faults.SHORT | NOISIER, peculiar)
                # The one that waited for the other, or both.
                waits = 0 if name in ("one apart", "one disabled") else 1
                self.assertNotEqual(job.told(logs[waits]), [], logs[waits])

    def test_a_body_is_repeated_with_all_peers_or_not_at_all(self):
        """Where some ranks cannot meet, come late, or know of other communicators than the rest."""
        short = {"CONTEXTUNE_PRESYNC_TIMEOUT": "1"}
        cases = {
            "NCCL is the user's": (Bodies(3, 1), 2, {"NCCL_ALGO": "Ring"}, False),
            "and off": (Bodies(3, 1), 2, {"NCCL_ALGO": "Ring", "CONTEXTUNE_DISTRIBUTED": "off"}, False),
            "other pairs than the first": (Bodies(3, 1, "pairs"), 4, {}, False),
            "late beside a split": (Bodies(3, 1, "late"), 2, faults.TOGETHER | short, True),
            "a part of the ranks": (Bodies(3, 1, "part"), 3, short, False),
        }
        for name, (program, num_ranks, variables, declared) in cases.items():
            with self.subTest(name):
                _, logs = self.run_job(program, num_ranks, NOISIER | variables, declared=declared)
                for log in logs:
                    reasons = {reason for reason, _ in job.told(log)}
                    self.assertTrue(reasons & {"no_rendezvous", "no_agreement"}, log)

    def test_with_scope_auto_ranks_that_do_not_agree_tune_what_is_theirs_alone(self):
        cases = {
            "other options": (Bodies(2, 0), {1: {"CONTEXTUNE_N_REPEAT": "3"}}, 2),
            "one disabled": (Bodies(2, 0), {1: {"CONTEXTUNE_DISABLE": "true"}}, 2),
            "a function": (Bodies(1, 0, "function"), {1: {"CONTEXTUNE_N_REPEAT": "3"}}, 2),
            "collectives": (Bodies(2, 1), {1: {"CONTEXTUNE_N_REPEAT": "3"}}, 0),
        }
        for name, (program, of_ranks, num_winners) in cases.items():
            with self.subTest(name):
                peculiar = {rank: job.Peculiar(variables=own) for rank, own in of_ranks.items()}
                with job.Job(2, "body", 0, faults.SHORT, peculiar, program) as ranks:
                    self.assertEqual(ranks.unfinished(range(2)), [])
                    self.assertEqual(ranks.faults_of(0) + ranks.faults_of(1), [])
                    log = ranks.log(0)
                winners = job.winners(log)
                self.assertEqual(len(winners), num_winners, log)
                for line in winners:
                    self.assertIn("block=128", line)
                texts = [text for reason, text in job.told(log) if reason == "no_agreement"]
                self.assertEqual({"With --scope auto" in text for text in texts}, {num_winners > 0}, log)

    def test_kernels_of_scope_local_beside_collectives_are_repeated_together(self):
        _, logs = self.run_job(Bodies(2, 1), 2, {"CONTEXTUNE_SCOPE": "local"})
        for log in logs:
            self.assertEqual(job.winners(log), job.winners(logs[0]))

    def test_kernels_of_scope_local_are_each_ranks_own(self):
        with job.Job(2, "body", 0, {"CONTEXTUNE_SCOPE": "local"}, program=Bodies(2, 0)) as ranks:
            self.assertEqual(ranks.unfinished(range(2)), [])
            self.assertEqual(ranks.faults_of(0) + ranks.faults_of(1), [])
            logs = [ranks.log(rank) for rank in range(2)]
        for log in logs:
            self.assertEqual(len(job.winners(log)), 2)
            self.assertEqual(job.lines(log, "sync"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
