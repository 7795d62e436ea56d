"""Ranks that hand their communicator over: they are tuned together, or none of them is, and whatever
becomes of one of them, the others get on with the program."""

import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from random import Random

import job

PROGRAM = job.BUILD / "apps" / "joined_ranks"
LIBRARIES = f"{job.BUILD / 'lib'}:{job.BUILD / 'simnccl'}:{job.BUILD / 'simcuda'}"
NOBODY = 65534


class Rank:
    """One process, whose lines are read as they come."""

    def __init__(self, folder, rank, num_ranks, words, variables, before):
        environment = job.plain_environment() | {
            "LD_LIBRARY_PATH": LIBRARIES, "SIMCUDA_DEVICES": "8", "CONTEXTUNE_LOG_DIR": str(folder / "logs"),
            "RANK": str(rank), "WORLD_SIZE": str(num_ranks), "LOCAL_RANK": str(rank), **variables}
        argv = [*before, PROGRAM, "--meet", folder / "meet", *words]
        with open(folder / f"err-{rank}", "wb") as errors:
            self.process = subprocess.Popen(list(map(str, argv)), env=environment, cwd=folder, text=True, umask=0,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self.lines = []

    def line(self, beginning, limit=job.LIMIT):
        """Reads until a line begins so; None: it ended, or the time was over."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            line = os.read(self.process.stdout.fileno(), 65536).decode()
            if not line:
                return None
            self.lines += line.splitlines()
            for one in self.lines:
                if one.startswith(beginning):
                    return one
        return None

    def rest(self):
        """All lines of a rank that ends by itself."""
        while self.line("\0") is not None:
            pass
        return self.lines

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()


def end(ranks):
    """Nothing is left of them."""
    for rank in ranks:
        if rank.process.poll() is None:
            rank.process.kill()
        rank.process.wait()
        rank.process.stdin.close()
        rank.process.stdout.close()


class Joining(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-joining-"))
        (self.folder / "logs").mkdir()
        self.ranks = []

    def tearDown(self):
        self.end_all()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end_all(self):
        end(self.ranks)

    def start(self, num_ranks, *words, of=None, variables=None, before=None):
        """`of`, `variables` and `before` are what single ranks have in addition."""
        for rank in range(num_ranks):
            self.ranks.append(Rank(self.folder, rank, num_ranks, [*words, *(of or {}).get(rank, [])],
                                   (variables or {}).get(rank, {}), (before or {}).get(rank, [])))
        return self.ranks

    def log(self, rank):
        file = self.folder / "logs" / f"rank-{rank}.log"
        return file.read_text() if file.is_file() else ""

    def assert_tuned_together(self, ranks, joined=("joined",)):
        for number, rank in enumerate(ranks):
            lines = rank.rest()
            total = f"sum {len(ranks) * (len(ranks) + 1) // 2}"
            self.assertEqual(lines, [total, "ready", *joined, "filled", total, "end"])
            self.assertEqual(rank.process.wait(job.LIMIT), 0)
            self.assertEqual((self.folder / f"err-{number}").read_text(), "")
        winners = [job.winners(self.log(rank)) for rank in range(len(ranks))]
        self.assertEqual(len(winners[0]), 1, self.log(0))
        self.assertEqual(winners, [winners[0]] * len(ranks))
        self.assertIn(" block=512 ", winners[0][0])
        for rank in range(len(ranks)):
            self.assertTrue(job.lines(self.log(rank), "sync"), self.log(rank))
            self.assertEqual(job.told(self.log(rank)), [])

    def assert_untuned(self, ranks, reason):
        """They did not join for that reason, and all else is as it would be without contextune."""
        for rank in ranks:
            lines = self.ranks[rank].rest()
            refused = [line for line in lines if line.startswith("not joined: ")]
            self.assertEqual(len(refused), 1, lines)
            self.assertRegex(refused[0], reason)
            self.assertIn("filled", lines)
            self.assertEqual(lines[-1], "end", lines)
            self.assertEqual(self.ranks[rank].process.wait(job.LIMIT), 0)
            self.assertEqual(job.winners(self.log(rank)), [])

    def test_ranks_of_a_communicator_get_the_same_winners(self):
        self.assert_tuned_together(self.start(4))

    def test_so_do_those_of_one_that_does_not_block(self):
        self.assert_tuned_together(self.start(3, "non-blocking"))

    def test_a_function_that_is_given_a_communicator_joins_its_ranks(self):
        self.assert_tuned_together(self.start(2, "function"), joined=())

    def test_a_rank_that_has_lost_the_others_asks_them_for_nothing_more(self):
        """They would not answer: to them it has not come, and they are at something else."""
        declared = {"CONTEXTUNE_WORLD_SIZE": "2", "CONTEXTUNE_ADDRESS": f"unix:{self.folder}/declared"}
        for rank in self.start(2, "absent", "given", variables={
                rank: declared | {"CONTEXTUNE_RANK": str(rank), "CONTEXTUNE_SECRET": f"{rank}" * 32,
                                  "CONTEXTUNE_PRESYNC_TIMEOUT": f"{patience}s"}
                for rank, patience in enumerate((0.7, 60))}):
            self.assertEqual(rank.rest(), ["sum 3", "ready", "filled", "filled", "sum 3", "end"])
        self.assertIn("the secret is not the same", self.log(1))
        self.assertNotIn("joined in time", self.log(1))

    def test_a_choice_that_was_made_before_is_no_obstacle(self):
        self.assert_tuned_together(self.start(2, "choice-first"))

    def test_who_has_joined_may_join_again(self):
        for rank in self.start(2, "twice"):
            self.assertEqual(rank.rest(), ["sum 3", "ready", "joined", "filled", "joined again", "sum 3", "end"])

    def test_a_part_of_those_who_have_joined_is_told_that_it_is_one(self):
        for rank in self.start(4, "part"):
            self.assertEqual(rank.rest(), [
                "sum 10", "ready", "joined", "filled",
                "the communicator has 2 of the 4 ranks that are tuned together already", "sum 10", "end"])

    def found(self):
        """What makes ranks find one another by the program's first communicator."""
        return {rank: {"CONTEXTUNE_REGION": "nvtx:elsewhere", "XDG_RUNTIME_DIR": str(self.folder)}
                for rank in range(4)}

    def test_ranks_that_have_found_one_another_by_themselves_are_joined_for_all_regions(self):
        self.assert_tuned_together(self.start(4, variables=self.found()))

    def test_some_of_the_ranks_that_have_found_one_another_are_not_joined(self):
        for rank in self.start(4, "absent", "part", variables=self.found()):
            self.assertIn("the communicator has 2 of the 4 ranks that are tuned together already", rank.rest())

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root")
    def test_ranks_that_share_no_user_meet_over_tcp(self):
        """As ranks of several hosts do: no Unix socket of one user lets another in."""
        os.chmod(self.folder, 0o1777)
        os.chmod(self.folder / "logs", 0o1777)
        before = {1: ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]}
        self.assert_tuned_together(self.start(2, before=before))

    def test_a_rank_that_is_late_is_waited_for(self):
        ranks = self.start(3, of={1: ["hold"]})
        for rank in (0, 2):
            self.assertEqual(ranks[rank].line("ready"), "ready")
        time.sleep(1)
        ranks[1].go()
        self.assert_tuned_together(ranks)

    def test_a_rank_that_never_joins_costs_the_others_the_time_that_they_gave(self):
        self.start(3, "--seconds", "0.5", of={1: ["absent"]})
        self.assert_untuned((0, 2), "joined in time")
        self.assertEqual(self.ranks[1].rest()[-1], "end")

    def test_nor_does_it_hurt_a_communicator_that_does_not_block(self):
        self.start(2, "alone", "non-blocking", "--seconds", "0.5", of={1: ["absent"]})
        self.assert_untuned((0,), "joined in time")

    def test_a_rank_that_is_killed_while_others_join(self):
        self.start(3, "alone", "--seconds", "1", of={1: ["hold"]})
        self.assertEqual(self.ranks[0].line("ready"), "ready")
        self.ranks[1].process.kill()
        self.assert_untuned((0, 2), "joined in time")

    def test_a_rank_that_is_killed_at_any_time(self):
        """Before, while and after they join: the others come to their end, with what they are to print."""
        for seed in range(8):
            with self.subTest(seed=seed):
                random = Random(seed)
                victim = random.randrange(3)
                self.ranks = []
                soon = {rank: {"CONTEXTUNE_PRESYNC_TIMEOUT": "500ms"} for rank in range(3)}
                ranks = self.start(3, "alone", "--seconds", "1", variables=soon)
                self.assertEqual(ranks[victim].line("ready"), "ready")
                time.sleep(random.random() * 0.15)
                ranks[victim].process.kill()
                for rank in set(range(3)) - {victim}:
                    lines = ranks[rank].rest()
                    self.assertEqual(lines[-2:], ["filled", "end"], lines)
                    self.assertEqual(ranks[rank].process.wait(job.LIMIT), 0)
                self.end_all()

    def test_a_rank_that_is_stopped_while_it_joins_goes_on_untuned_as_well(self):
        self.start(3, "alone", "--seconds", "1", of={2: ["hold"]})
        for rank in (0, 1):
            self.assertEqual(self.ranks[rank].line("ready"), "ready")
        self.ranks[1].process.send_signal(signal.SIGSTOP)
        self.ranks[2].go()
        # What the stopped one had come to is not known: all, or in time for none.
        self.assert_untuned((0, 2), "in time|ncclAllGather|gathering")
        self.ranks[1].process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ranks[1].rest()[-1], "end")

    def test_where_contextune_is_off_the_others_are_told_at_once(self):
        self.start(3, "--seconds", "1000", variables={2: {"CONTEXTUNE_DISABLE": "1"}})
        self.assert_untuned((0, 1, 2), "rank 2 does not take part: contextune is switched off")

    def test_a_region_that_was_entered_before_forbids_it_on_all_ranks(self):
        self.start(2, "--seconds", "1000", of={0: ["region-first"]})
        for rank in self.ranks:
            self.assertIn("not joined: rank 0 does not take part: it has joined other ranks before", rank.rest())
            self.assertEqual(rank.process.wait(job.LIMIT), 0)

    def test_a_connection_that_fails_is_ended_on_all_ranks(self):
        """The split is whole then; one rank cannot gather, and to the others it does not come."""
        faults = {"SIMNCCL_FAULTS": "connect_fail:*:rank=1"}
        self.start(3, "alone", "--seconds", "1", variables={rank: faults for rank in range(3)})
        self.assert_untuned((0, 1, 2), "ncclAllGather|gathering|in time")

    def test_what_shares_with_the_programs_communicator_is_not_aborted(self):
        """An abort would end the program's as well, whose sum is asked for behind it."""
        faults = {"SIMNCCL_FAULTS": "connect_fail:RING:rank=1;illegal:RING:bytes=4;illegal:NVLS"}
        self.start(3, "sharing", "--seconds", "1", variables={rank: faults for rank in range(3)})
        self.assert_untuned((0, 1, 2), "ncclAllGather|gathering|in time")
        for rank in self.ranks:
            self.assertEqual(rank.lines.count("sum 6"), 2, rank.lines)


if __name__ == "__main__":
    unittest.main()
