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

    def test_winners_stand_once_with_the_times_of_each_rank(self):
        text = self.logs(4, "", "--passes")
        self.assertIn("./engine, run 7f3a on 4 ranks\n", text)
        table = text[:text.index("configs of region")]
        self.assertEqual(table.count("saxpy"), 1)
        self.assertRegex(table, r"saxpy +block=64 +20\.0 us +20\.2 us +20\.4 us +20\.6 us +3\.0 % +rank 3\n"
                                r" +block=256 +10\.0 us +10\.1 us +10\.2 us +10\.3 us +3\.0 % +rank 3\n")
        self.assertIn("rank 3 is the slowest: its winners take 10.3 us", table)
        self.assertIn("region step (simulated)", table)

    def test_on_how_many_batches_all_agree_is_told(self):
        self.assertIn("all ranks agree on 1 batch, same hashes\n", self.logs(4))
        self.assertIn("all ranks agree on 0 of 1 batch only\n", self.logs(4, "hash"))

    def test_waiting_is_summed_up(self):
        self.assertRegex(self.logs(4), r"\n +3 +1 +1 +6\.00 ms +3\.00 ms\n")

    def test_so_is_what_replays_in_step_have_waited(self):
        folder = self.folder / "replays"
        subprocess.run([WRITER, str(folder), "4"], check=True)
        with open(folder / "rank-3.log", "r+") as log:
            head = log.readlines()[-1].partition("event=")[0]
            for visit in (1, 2):  # each says what all have waited
                log.write(f"{head}event=replay region=step visit={visit} operations=3 replays={50 * visit} "
                          f"ranks=4 wait_us={10000 * visit} longest_wait_us=4500\n")
        result = self.contextune("logs", str(folder))
        self.assertRegex(result.stdout, r"\n +3 +1 +1 +26\.0 ms +4\.50 ms\n")

    def test_ranks_that_do_not_differ_are_said_not_to(self):
        self.assertIn("the ranks differ in nothing but times", self.logs(4))
        self.assertEqual(self.compared(4)["differences"], [])
        self.assertEqual(self.compared(4, "found")["differences"], [])  # by itself

    def test_what_collectives_run_is_written_for_nccls_example_plugin(self):
        file = self.folder / "nccl_tuner.conf"
        said = self.logs(2, "collectives", "--nccl-csv", str(file))
        self.assertEqual(said, f"3 rows for NCCL_TUNER_CONFIG_FILE={file}\n")
        # The plugin does not know datatypes: what a float keeps, an integer keeps as well.
        self.assertEqual(file.read_text().splitlines()[1:], [
            "allreduce,4097,8192,tree,ll,8,1,4,1,-1",
            "allreduce,8193,16384,ring,ll128,0,1,4,1,-1",
            "# allreduce,8193,16384,tree,ll,8,1,4,1,-1",
            "allreduce,1048577,18446744073709551615,nvls,simple,0,1,4,3,-1",
        ])

    def test_without_collectives_nothing_is_written_for_nccl(self):
        folder = str(self.folder / "logs-2-")
        self.logs(2)
        result = self.contextune("logs", folder, "--nccl-csv", str(self.folder / "none.conf"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("no collective was tuned", result.stderr)
        self.assertFalse((self.folder / "none.conf").exists())

    def test_what_ranks_differ_in_is_named(self):
        expected = {
            "winner": "winner of saxpy (n=1024) in region step: config-1 block=256 on ranks 0, 1; "
                      "config-0 block=64 on rank 2",
            "config": "winner of saxpy (n=1024) in region step: config-1 block=256 on ranks 0, 1; "
                      "config-1 block=128 on rank 2",
            "site": "site extra (n=1024) in region step: on rank 2, not on ranks 0, 1",
            "fallback": "fallback no_knobs, step, saxpy: on rank 2, not on ranks 0, 1: One config.",
            "hash": "hash of what was agreed on in question 2 of region step: "
                    "000000000000feed on ranks 0, 1; 0000000000000bad on rank 2",
            "verdict": "verdict on question 2 of region step: committed on ranks 0, 1; "
                       "unknown (rank 0 is lost) on rank 2",
            "question": "question 2 of region step: on ranks 0, 1, not on rank 2",
            "gpu": "GPU: Simulated GPU on ranks 0, 1; Another GPU on rank 2",
            "killed": "the last line of a process that ends: on ranks 0, 1, not on rank 2",
            "nothing": "no line of rank 1",
        }
        for wrong, sentence in expected.items():
            with self.subTest(wrong):
                self.assertEqual(self.compared(3, wrong)["differences"], [sentence])
                text = self.logs(3, wrong)
                self.assertIn("the ranks differ\n    " + sentence + "\n", text)

    def test_a_site_is_the_same_on_the_device_of_each_rank(self):
        folder = self.folder / "devices"
        subprocess.run([WRITER, str(folder), "3"], check=True)
        for rank, grid in enumerate((8, 8, 16)):
            with open(folder / f"rank-{rank}.log", "r+") as log:
                head = log.readlines()[-1].partition("event=")[0]
                log.write(f'{head}event=fallback reason=launch_failed region=step '
                          f'site="saxpy{{code=1f device={rank} grid={grid}}}" text="No room."\n')
        result = self.contextune("logs", str(folder), "--json")
        differences = json.loads(result.stdout)["comparisons"][0]["differences"]
        self.assertEqual(differences, [
            "fallback launch_failed, step, saxpy{code=1f grid=16}: on rank 2, not on ranks 0, 1: No room.",
            "fallback launch_failed, step, saxpy{code=1f grid=8}: on ranks 0, 1, not on rank 2: No room.",
        ])

    def test_broken_logs_are_compared_as_far_as_they_go(self):
        folder = self.folder / "broken"
        subprocess.run([WRITER, str(folder), "4"], check=True)
        (folder / "rank-1.log").unlink()
        changed = folder / "rank-2.log"
        changed.write_text(re.sub(r"(event=winner .*)config=1 block=256", r"\1config=7 block=512",
                                  changed.read_text()))
        cut = folder / "rank-3.log"
        text = cut.read_text()
        cut.write_text(text[:text.rindex("event=sync") + 20])
        result = self.contextune("logs", str(folder))
        self.assertEqual(result.returncode, 0)
        self.assertIn("rank-3.log:6: was cut off", result.stderr)
        for sentence in (
            "no line of rank 1",
            "winner of saxpy (n=1024) in region step: config-1 block=256 on ranks 0, 3; config-7 block=512 on rank 2",
            "question 2 of region step: on ranks 0, 2, not on rank 3",
            "the last line of a process that ends: on ranks 0, 2, not on rank 3",
        ):
            self.assertIn("    " + sentence + "\n", result.stdout)
        self.assertRegex(result.stdout, r"block=256 +10\.0 us +other +10\.3 us +3\.0 % +rank 3\n")
        self.assertIn("all ranks agree on 0 of 1 batch only", result.stdout)

    def test_the_passes_are_shown_once_of_the_rank_that_was_asked_for(self):
        for flags, rank in (((), 0), (("--rank", "2"), 2)):
            text = self.logs(4, "", "--passes", *flags)
            self.assertEqual(text.count("ran in every pass"), 1)
            self.assertIn(f"\n  rank {rank} (--rank R shows another)\n", text)
        missing = self.contextune("logs", str(self.folder / "logs-4-"), "--rank", "4")
        self.assertEqual((missing.returncode, missing.stderr), (1, "contextune logs: there is no rank 4\n"))

    def test_ranks_that_tuned_alone_are_compared_and_told_of_each(self):
        text = self.logs(3, "alone", "--passes")
        self.assertIn("run 7f3a on 3 ranks, each tuned for itself\n", text)
        self.assertEqual(text.count("ran in every pass"), 3)
        self.assertIn("./engine, run 7f3a, rank 2, pid", text)
        self.assertFalse(self.compared(3, "alone")["together"])

    def test_a_run_of_which_a_rank_has_run_again_is_an_old_one(self):
        folder = self.folder / "old"
        subprocess.run([WRITER, str(folder), "3"], check=True)
        with open(folder / "rank-0.log", "a") as log:
            log.write("2999-11-20T10:00:00.000Z run=8888 pid=7 rank=0 level=info event=start program=./b\n")
        result = self.contextune("logs", str(folder))
        self.assertIn("run 8888, rank 0, pid 7", result.stdout)
        self.assertNotIn("saxpy", result.stdout)
        self.assertIn("--run all): 7f3a\n", result.stdout)
        self.assertIn("run 7f3a on 3 ranks\n", self.contextune("logs", str(folder), "--run", "7f3a").stdout)

    def test_the_summary_of_a_run_tells_of_all_ranks_once(self):
        result = self.run_program(WRITER, self.work / ".autotune_logs", "4", flags=("--report", "report.txt"))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        report = (self.work / "report.txt").read_text()
        report = report[report.index("./engine"):]
        self.assertEqual(report.count("./engine"), 1)
        self.assertEqual(report.count("saxpy"), 1)
        self.assertIn("all ranks agree on 1 batch, same hashes\n", report)

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
        self.assertIn("runs 7f30, 7f31, 7f32 on 3 ranks, each tuned for itself\n", self.contextune("logs", str(folder)).stdout)

    def test_ranks_of_which_there_is_no_log_are_named(self):
        head = "2026-11-20T10:00:00.000Z run=7f30 pid={0} rank={0} level=info event="
        folder = self.folder / "too-few"
        folder.mkdir()
        for rank, said in ((0, ["one of 4 ranks, no line of ranks 1 to 3"]),
                           (1, ["no line of ranks 2, 3", "the ranks differ"])):
            (folder / f"rank-{rank}.log").write_text(
                head.format(rank) + "start program=./a world_size=4\n" +
                head.format(rank) + "summary launches_outside=0\n")
            text = self.contextune("logs", str(folder)).stdout
            for sentence in said:
                self.assertIn(sentence, text)

    def test_jobs_side_by_side_are_told_apart_by_what_they_agreed_on(self):
        folder = self.folder / "side-by-side"
        folder.mkdir()
        for rank in range(2):
            lines = []
            for job in ("aa", "bb") if rank == 0 else ("bb", "aa"):
                head = f"2026-11-20T10:00:00.000Z run={job}0{rank} pid={7 + rank} rank={rank} level=info event="
                lines.append(head + "start program=./a\n")
                for question, decided in enumerate(("feed", job)):  # the first is the same in both jobs
                    lines.append(head + f"sync region=r group=5f group_rank={rank} question={question} "
                                 f"hash={decided} wait_us=0 verdict=committed\n")
            (folder / f"rank-{rank}.log").write_text("".join(lines))
        result = self.contextune("logs", str(folder), "--run", "all", "--json")
        comparisons = json.loads(result.stdout)["comparisons"]
        self.assertEqual([sorted(c["runs"]) for c in comparisons], [["aa00", "aa01"], ["bb00", "bb01"]])
        self.assertEqual([c["differences"] for c in comparisons], [[], []])

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
        self.assertRegex(text, r"block=256 +10\.0 us +13\.9 us +39\.0 % +rank 39\n")
        self.assertEqual(len(self.compared(40)["regions"][0]["sites"][0]["winners"]["seconds"]), 40)

    def test_json_holds_the_same(self):
        compared = self.compared(4)
        self.assertEqual((compared["runs"], compared["ranks"], compared["together"]),
                         (["7f3a"], [0, 1, 2, 3], True))
        (region,) = compared["regions"]
        self.assertEqual((region["name"], region["batches"], region["same_batches"]), ("step", 1, 1))
        self.assertEqual(region["winners"]["slowest_rank"], 3)
        (site,) = region["sites"]
        self.assertEqual((site["name"], site["config"], site["winner_config"], site["other_ranks"]),
                         ("saxpy", 1, "block=256", []))
        self.assertEqual((site["winners"]["fastest_rank"], site["winners"]["slowest_rank"]), (0, 3))
        self.assertAlmostEqual(site["winners"]["seconds"]["2"], 1.02e-5)
        self.assertAlmostEqual(site["defaults"]["seconds"]["2"], 2.04e-5)
        self.assertAlmostEqual(site["winners"]["spread"], 0.03)
        self.assertEqual((compared["waits"]["3"]["committed"], compared["waits"]["3"]["aborted"]), (1, 1))
        self.assertAlmostEqual(compared["waits"]["3"]["seconds"], 6e-3)
        self.assertAlmostEqual(compared["waits"]["3"]["longest_seconds"], 3e-3)
        process = json.loads(self.logs(4, "", "--json"))["processes"][1]
        self.assertEqual(process["syncs"][0], {
            "region": "step", "group": "00000000005f00ab", "group_rank": 1, "question": 1, "hash": None,
            "wait_seconds": 1e-3, "verdict": "aborted", "text": "rank 1 did not come within 5 s"})

    def test_one_rank_is_compared_with_nobody(self):
        self.assertEqual(json.loads(self.logs(1, "", "--json"))["comparisons"], [])
        self.assertNotIn("on 1 ranks", self.logs(1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
