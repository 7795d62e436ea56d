"""Functions that several ranks tune together: each of their runs begins on all ranks, or on none."""

import secrets
import signal
import time
import unittest

import faults
import job

PROGRAM = job.BUILD / "apps" / "function_ranks"


class Functions(job.Linked):
    """The program with its words."""

    def __init__(self, *words):
        super().__init__()
        self.words = words

    def argv(self, _steps, folder):
        return [PROGRAM, folder / "runs", *self.words]


class FunctionRanks(unittest.TestCase):
    maxDiff = None

    def run_job(self, num_ranks, words=(), survivors=None, variables=None, peculiar=None):
        """Its logs, and of each rank when its runs began and ended, and their blocks."""
        survivors = range(num_ranks) if survivors is None else survivors
        start = time.monotonic()
        with job.Job(num_ranks, "body", 0, variables or {}, peculiar, Functions(*words)) as ranks:
            outcome = faults.judge(ranks, survivors, start)
            logs = [ranks.log(rank) for rank in range(num_ranks)]
            runs = [[tuple(map(int, line.split())) for line in
                     (ranks.folder / f"runs.{rank}").read_text().splitlines()] for rank in survivors]
            if "stops" in words:
                ranks.signal(words[1], signal.SIGCONT)
                self.assertEqual(ranks.unfinished(range(num_ranks)), [])
                outcome.wrong += ranks.faults_of(words[1])
        self.assertEqual(outcome.wrong, [], logs)
        self.longest_wait = outcome.longest_wait
        return logs, runs

    def assert_in_step(self, runs):
        """No rank has begun a run before all had ended theirs before it."""
        self.assertEqual(len({len(own) for own in runs}), 1)
        for one in runs:
            for other in runs:
                for i in range(1, len(one)):
                    self.assertGreaterEqual(one[i][0], other[i - 1][1], i)

    def assert_all_default(self, logs, survivors, *words):
        for rank in survivors:
            texts = [text for reason, text in job.told(logs[rank]) if reason == "no_agreement"]
            self.assertNotEqual(texts, [], logs[rank])
            for word in words:
                self.assertIn(word, " ".join(texts))
            self.assertEqual(job.winners(logs[rank]), [])

    def test_a_run_begins_when_all_ranks_have_ended_the_one_before(self):
        for align in ("pass", "sample", None):
            with self.subTest(align=align):
                variables = {} if align is None else {"CONTEXTUNE_ALIGN": align}
                logs, runs = self.run_job(3, ("slow", 1), variables=variables)
                self.assert_in_step(runs)
                for log in logs:
                    self.assertEqual(job.told(log), [])
                    self.assertEqual(job.winners(log), job.winners(logs[0]))
                    self.assertIn("block=128", job.winners(log)[0])

    def test_ranks_that_align_otherwise_are_not_tuned(self):
        other = job.Peculiar(variables={"CONTEXTUNE_ALIGN": "none"})
        logs, _ = self.run_job(2, variables=faults.TOGETHER | faults.SHORT, peculiar={1: other})
        self.assert_all_default(logs, range(2))

    def test_hints_are_measured_by_all_ranks_together(self):
        logs, runs = self.run_job(2, ("hints", -1))
        searched = (len(runs[0]) - 2) // 3  # of each size
        self.assert_in_step([own[:2 * searched] for own in runs])
        for log, own in zip(logs, runs):
            # At a size that nobody has measured all run what the nearest does, until it is measured.
            self.assertEqual([block for _, _, block in own[2 * searched:][:2]], [128, 128])
            self.assertEqual(job.told(log), [])
            winners = job.winners(log)
            self.assertEqual(winners, job.winners(logs[0]))
            self.assertEqual([job.field(line, "key") for line in winners],
                             ["size=257-512", "size=2049-4096", "size=513-1024"])
            for line in winners:
                self.assertIn(" block=128 ", line)

    def test_a_hint_that_one_rank_does_not_have_keeps_nobody_for_long(self):
        for one in (0, 1):
            with self.subTest(without=one):
                logs, _ = self.run_job(2, ("hints", one), variables=faults.TOGETHER | faults.SHORT)
                self.assertIn("no_agreement", [reason for reason, _ in job.told(logs[1 - one])])
                self.assertEqual(job.winners(logs[0])[:1], job.winners(logs[1])[:1])
                self.assertIn("size=257-512", job.winners(logs[0])[0])

    def test_ranks_that_are_set_between_the_start_and_cuinit_count(self):
        with job.Job(2, "body", 0, {}, self.later(2), Functions(), declared=False) as ranks:
            self.assertEqual(ranks.unfinished(range(2)), [])
            self.assertEqual(ranks.faults_of(0) + ranks.faults_of(1), [])
            logs = [ranks.log(rank) for rank in range(2)]
        self.assertIn("block=128", "".join(job.winners(logs[0])))
        for log in logs:
            self.assertEqual(job.winners(log), job.winners(logs[0]))
            self.assertNotEqual(job.lines(log, "sync"), [])

    @staticmethod
    def later(num_ranks):
        """Each rank's variables, which its program sets itself."""
        shared = {"CONTEXTUNE_WORLD_SIZE": str(num_ranks),
                  "CONTEXTUNE_ADDRESS": "unix:contextune-test-" + secrets.token_hex(8),
                  "CONTEXTUNE_SECRET": secrets.token_hex(16)}
        return {rank: job.Peculiar(variables={
            "LATER_" + name: value for name, value in {**shared, "CONTEXTUNE_RANK": str(rank)}.items()})
            for rank in range(num_ranks)}

    def assert_refused(self, logs, victim, own, other):
        """All have run the default, and say why: it is the victim's memory, or another rank's."""
        for rank, log in enumerate(logs):
            (text,) = job.sentences(log, "not_repeatable")
            self.assertIn(own if rank == victim else other, text)
            self.assertEqual(job.winners(log), [])

    def test_a_function_that_says_nothing_is_compared_by_each_rank_and_tuned_by_all(self):
        for align in ("sample", "none"):
            with self.subTest(align=align):
                logs, runs = self.run_job(3, ("unsaid", -1), variables={"CONTEXTUNE_ALIGN": align})
                for log in logs:
                    self.assertEqual(job.told(log), [])
                    self.assertEqual([line for line in job.lines(log, "fallback")
                                      if "not_repeatable" in line], [])
                    self.assertEqual(job.winners(log), job.winners(logs[0]))
                    self.assertIn("block=128", job.winners(log)[0])
                for own in runs:
                    self.assertEqual([block for _, _, block in own[:2]], [256, 256])

    def test_where_one_rank_changes_its_inputs_no_rank_runs_it_a_third_time(self):
        for victim in (0, 2):
            with self.subTest(victim=victim):
                logs, runs = self.run_job(3, ("adds", victim))
                self.assert_refused(logs, victim, "left other bytes in device memory than the first",
                                    "a second run of its default left something else on another rank")
                for own in runs:
                    self.assertEqual([block for _, _, block in own], [256, 256])

    def test_a_rank_that_decides_for_itself_compares_for_itself(self):
        logs, runs = self.run_job(2, ("adds", 1), variables={"CONTEXTUNE_SCOPE": "local"})
        self.assertIn("block=128", job.winners(logs[0])[0])
        self.assertEqual(job.winners(logs[1]), [])
        self.assertEqual([block for _, _, block in runs[1]], [256, 256])

    def test_where_one_rank_cannot_tell_no_rank_runs_it_again(self):
        logs, runs = self.run_job(2, ("busy", 1))
        self.assert_refused(logs, 1, "other threads of the program may use the GPU meanwhile",
                            "nobody can tell on another rank whether it may be run again")
        for own in runs:
            self.assertEqual([block for _, _, block in own], [256])

    def test_a_second_run_that_throws_on_one_rank_is_not_the_caller_s(self):
        logs, _ = self.run_job(2, ("stumbles", 0))
        self.assert_refused(logs, 0, "a second run of its default did not come to its end",
                            "a second run of its default left something else on another rank")

    def test_a_rank_alone_waits_for_nobody(self):
        logs, runs = self.run_job(1)
        self.assertGreater(len(runs[0]), 8)
        self.assertEqual(job.lines(logs[0], "sync"), [])

    def test_a_rank_that_dies_in_a_run_keeps_nobody(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                survivors = faults.others(3, victim)
                logs, _ = self.run_job(3, ("dies", victim), survivors, faults.TOGETHER)
                self.assert_all_default(logs, survivors)

    def test_a_rank_that_stands_still_in_a_run_is_given_up(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                survivors = faults.others(3, victim)
                logs, runs = self.run_job(3, ("stops", victim), survivors, faults.TOGETHER | faults.SHORT)
                self.assert_all_default(logs, survivors)
                self.assert_in_step(runs)

    def test_a_function_that_one_rank_leaves_ends_at_once_everywhere(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                logs, _ = self.run_job(3, ("leaves", victim), variables=faults.TOGETHER)
                self.assertLess(self.longest_wait, 0.9)
                self.assert_all_default(logs, faults.others(3, victim), "left early")

    def test_a_trial_that_hangs_on_one_rank_keeps_nobody_else(self):
        """The one that hangs is where it would be without contextune: in a wait of its own."""
        for victim in (0, 1):
            with self.subTest(victim=victim):
                hangs = job.Peculiar(variables={"SIMCUDA_FAULT": "hang:fill:block=128"})
                survivors = faults.others(3, victim)
                logs, _ = self.run_job(3, (), survivors, {"CONTEXTUNE_TRIAL_TIMEOUT": "1"},
                                       {victim: hangs})
                for rank in survivors:
                    texts = job.sentences(logs[rank], "trial_timeout")
                    self.assertTrue(any(f"rank {victim}" in text for text in texts), logs[rank])
                    self.assertEqual(job.winners(logs[rank]), job.winners(logs[survivors[0]]))
                    self.assertNotIn("block=128", "".join(job.winners(logs[rank])))


if __name__ == "__main__":
    unittest.main(verbosity=2)
