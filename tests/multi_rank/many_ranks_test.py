"""Sixty-four ranks of one job on one machine, relays among them: they tune together, later runs know
it, and whatever is killed, the others end as they do without contextune."""

import os
import pathlib
import random
import signal
import tempfile
import threading
import time
import unittest

import faults
import job
from shapes import Shape

NUM_RANKS = 64
RELAYS = range(8, NUM_RANKS, 8)  # of the seven ranks behind each
PATIENT = {"CONTEXTUNE_PRESYNC_TIMEOUT": "20"}  # few processors for many ranks


def num_sockets(pid):
    """Most that a thread of the process has: the control thread has a table of its own."""
    def of_thread(task):
        try:
            links = [os.readlink(link) for link in (task / "fd").iterdir()]
        except OSError:
            return 0  # it has ended
        return sum(link.startswith("socket:") for link in links)

    try:
        return max((of_thread(task) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()), default=0)
    except OSError:
        return 0


class ManyRanks(unittest.TestCase):
    maxDiff = None

    def assert_tuned_together(self, outcome):
        self.assertEqual(outcome.wrong, [])
        for rank, log in enumerate(outcome.logs):
            self.assertEqual(outcome.told[rank], [], log)
            self.assertEqual(job.winners(log), job.winners(outcome.logs[0]))
        self.assertNotEqual(job.winners(outcome.logs[0]), [])

    def test_ranks_of_nccl_tune_together_and_their_next_run_begins_with_the_winners(self):
        with tempfile.TemporaryDirectory() as store:
            variables = PATIENT | {"CONTEXTUNE_REGION": "nvtx:step", "CONTEXTUNE_STORE": "tune",
                                   "CONTEXTUNE_CACHE_DIR": store}
            for reason in ("(margin|fastest)", "stored"):
                with job.Job(NUM_RANKS, "replay", 10, variables, None, Shape("group_of_one"),
                             declared=False) as ranks:
                    outcome = faults.judge(ranks, range(NUM_RANKS), 0.0)
                self.assert_tuned_together(outcome)
                self.assertRegex(job.winners(outcome.logs[0])[0], f" reason={reason} ")

    def test_relays_pass_on_what_the_ranks_behind_them_say(self):
        most = {}

        def watch(ranks, over):
            while not over.is_set():
                for rank in RELAYS:
                    most[rank] = max(most.get(rank, 0), num_sockets(ranks.ranks[rank].pid))
                time.sleep(0.02)

        with job.Job(NUM_RANKS, "replay", 12, PATIENT) as ranks:
            over = threading.Event()
            watcher = threading.Thread(target=watch, args=(ranks, over))
            watcher.start()
            try:
                outcome = faults.judge(ranks, range(NUM_RANKS), 0.0)
            finally:
                over.set()
                watcher.join()
        self.assert_tuned_together(outcome)
        # One listens, one is rank 0's, and seven are of the ranks behind it.
        self.assertGreaterEqual(max(most.values()), 9, most)

    def test_a_rank_that_is_killed_at_any_time_costs_the_others_no_more_than_their_winners(self):
        draw = random.Random(64)
        for victim in (draw.choice(RELAYS), draw.randrange(NUM_RANKS), 0):
            moment = draw.choice(("after the first agreement", "in the middle of the table"))
            after = draw.uniform(0, 0.2)
            with self.subTest(victim=victim, moment=moment, after=after):
                outcome = faults.hit("replay", NUM_RANKS, victim, moment, signal.SIGKILL, 12, PATIENT, after)
                self.assertEqual(outcome.wrong, [])
                self.assertLess(outcome.longest_wait, 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
