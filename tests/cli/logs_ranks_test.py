"""`contextune logs` puts the ranks of a run side by side. The logs are written as the core does."""

import json
import os
import re
import subprocess
import sys
import unittest

from harness import CommandTest

WRITER = os.environ["CONTEXTUNE_WRITE_RANK_LOGS"]


class LogsOfRanks(CommandTest):
    def logs(self, ranks, wrong="", *flags):
        folder = str(self.folder / f"logs-{ranks}-{wrong}")
        if not os.path.exists(folder):
            subprocess.run([WRITER, folder, str(ranks), *([wrong] if wrong else [])], check=True)
        result = self.contextune("logs", folder, *flags)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def compared(self, ranks, wrong=""):
        comparisons = json.loads(self.logs(ranks, wrong, "--json"))["comparisons"]
        self.assertEqual(len(comparisons), 1)
        return comparisons[0]

    def test_winners_stand_once_with_the_time_of_each_rank(self):
        text = self.logs(4)
        table = text[:text.index("agreed on last")]
        self.assertIn("run 7f3a on 4 ranks", table)
        self.assertEqual(table.count("saxpy"), 1)
        self.assertRegex(table, r"step +saxpy n=1024 +config-1 block=256 +\w+ +10\.0 us +10\.1 us +10\.2 us "
                                r"+10\.3 us +3\.\d* % +3\n")
        self.assertIn("rank 3 is the slowest: 10.3 us", table)
        self.assertIn("(simulated)", table)

    def test_what_was_agreed_on_last_is_shown_with_its_hash(self):
        self.assertIn("group 00000000005f00ab, question 2: hash 000000000000feed on 4 ranks", self.logs(4))

    def test_waiting_is_summed_up(self):
        self.assertRegex(self.logs(4), r"\n +3 +2 +1 +6\.00 ms +3\.00 ms\n")

    def test_ranks_that_do_not_differ_are_said_not_to(self):
        self.assertIn("the ranks do not differ in anything else", self.logs(4))
        self.assertEqual(self.compared(4)["differences"], [])

    def test_what_ranks_differ_in_is_named(self):
        expected = {
            "winner": "winner of saxpy (n=1024) in region step: config-1 block=256 on ranks 0, 1; "
                      "config-0 block=64 on rank 2",
            "hash": "hash of what was decided on question 2 of group 00000000005f00ab: "
                    "000000000000feed on ranks 0, 1; 0000000000000bad on rank 2",
            "verdict": "verdict on question 2 of group 00000000005f00ab: committed on ranks 0, 1; "
                       "unknown on rank 2",
            "gpu": "GPU: Simulated GPU on ranks 0, 1; Another GPU on rank 2",
            "nothing": "no line of rank 1",
        }
        for wrong, sentence in expected.items():
            self.assertEqual(self.compared(3, wrong)["differences"], [sentence])
            text = self.logs(3, wrong)
            self.assertIn("the ranks differ\n    " + sentence + "\n", text)

    def test_ranks_that_a_launcher_started_one_by_one_belong_together(self):
        log = lambda rank, second, event: (
            f"2026-11-20T10:00:{second:02}.000Z run=7f3{rank} pid={7 + rank} rank={rank} level=info {event}\n")
        folder = self.folder / "one-by-one"
        folder.mkdir()
        for rank in range(3):
            (folder / f"rank-{rank}.log").write_text(log(rank, rank, "event=start program=./a") +
                                                     log(rank, 50, "event=summary launches_outside=0"))
        result = self.contextune("logs", str(folder), "--json")
        comparisons = json.loads(result.stdout)["comparisons"]
        self.assertEqual([(c["runs"], c["ranks"]) for c in comparisons], [(["7f30", "7f31", "7f32"], [0, 1, 2])])
        self.assertIn("runs 7f30, 7f31, 7f32 on 3 ranks", self.contextune("logs", str(folder)).stdout)

    def test_ranks_of_another_time_or_program_do_not(self):
        folder = self.folder / "apart"
        folder.mkdir()
        for rank, (hour, program) in enumerate(((10, "./a"), (10, "./b"), (11, "./a"))):
            (folder / f"rank-{rank}.log").write_text(
                f"2026-11-20T{hour}:00:00.000Z run=r{rank} pid={7 + rank} rank={rank} level=info event=start "
                f"program={program}\n")
        result = self.contextune("logs", str(folder), "--json")
        self.assertEqual(json.loads(result.stdout)["comparisons"], [])

    def test_many_ranks_keep_the_table_narrow(self):
        text = self.logs(40)
        row = re.search(r"step +saxpy.*", text)[0]
        self.assertRegex(row, r"10\.0 us +13\.9 us +39\.\d* % +39$")
        self.assertEqual(len(self.compared(40)["winners"][0]["seconds"]), 40)

    def test_json_holds_the_same(self):
        compared = self.compared(4)
        self.assertEqual((compared["runs"], compared["ranks"]), (["7f3a"], [0, 1, 2, 3]))
        winner = compared["winners"][0]
        self.assertEqual((winner["site"], winner["fastest_rank"], winner["slowest_rank"]), ("saxpy", 0, 3))
        self.assertAlmostEqual(winner["seconds"]["2"], 1.02e-5)
        self.assertAlmostEqual(winner["spread"], 0.03)
        self.assertEqual(compared["slowest_rank"], 3)
        self.assertEqual(compared["agreements"], [{"group": "00000000005f00ab", "question": 2,
                                                   "hash": "000000000000feed", "ranks": [0, 1, 2, 3]}])
        self.assertAlmostEqual(compared["waits"]["3"]["seconds"], 6e-3)
        process = json.loads(self.logs(4, "", "--json"))["processes"][1]
        self.assertEqual(process["syncs"][0], {
            "group": "00000000005f00ab", "group_rank": 1, "question": 1, "hash": None,
            "wait_seconds": 1e-3, "verdict": "aborted", "reason": "rank 1 did not come within 5 s"})

    def test_one_rank_is_compared_with_nobody(self):
        self.assertEqual(json.loads(self.logs(1, "", "--json"))["comparisons"], [])
        self.assertNotIn("on 1 ranks", self.logs(1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
