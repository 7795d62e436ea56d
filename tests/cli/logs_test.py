"""`contextune logs` rebuilds what happened."""

import json
import re
import resource
import subprocess
import unittest

from harness import CommandTest, GOLDEN_TABLE, REPLAY, golden_log


def lines(run="7f3a", pid=4242, rank=0, time="2026-11-20T20:33:53.120Z", text=None):
    head = f"{time} run={run} pid={pid} rank={rank} level=info "
    return "".join(head + line + "\n" for line in (text or golden_log()).splitlines())


class Logs(CommandTest):
    def setUp(self):
        super().setUp()
        self.logs = self.work / ".autotune_logs"
        self.logs.mkdir()

    def write(self, text, rank=0):
        with open(self.logs / f"rank-{rank}.log", "a") as log:
            log.write(text)

    def test_the_iteration_table_is_rebuilt(self):
        self.write(lines())
        result = self.contextune("logs", "--passes")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(GOLDEN_TABLE, result.stdout)
        self.assertIn("the winners are kept", result.stdout)

    def test_the_iteration_table_is_shown_when_it_is_asked_for(self):
        self.write(lines())
        self.assertNotIn("| pass", self.contextune("logs").stdout)
        self.assertIn("--passes", self.contextune("logs", "--help").stdout)

    def cells(self, text):
        (self.logs / "rank-0.log").write_text(lines(text=text))
        region = json.loads(self.contextune("logs", "--json").stdout)["processes"][0]["regions"][0]
        return {row["pass"]: row["cells"] for row in region["table"]["rows"]}

    def test_the_table_shows_what_ran_and_not_what_should_have(self):
        winner = "pass=2 last_pass=5 site=kernel-0 key=\"\" config=1 block=128"
        late = golden_log().replace(
            "event=passes region=decode " + winner,
            "event=passes region=decode pass=2 last_pass=3 site=kernel-0 key=\"\" config=1 block=128\n"
            "event=passes region=decode pass=4 last_pass=4 site=kernel-0 key=\"\" config=0 block=64\n"
            "event=passes region=decode pass=5 last_pass=5 site=kernel-0 key=\"\" status=mixed")
        self.assertNotEqual(late, golden_log())
        cells = self.cells(late)
        self.assertEqual(cells["3"], ["config-1 (iter-1)", "config-1 (iter-1)"])
        self.assertEqual(cells["4"], ["config-0", "config-2 (iter-0)"])
        self.assertEqual(cells["5"], ["mixed", "config-2 (iter-1)"])
        absent = golden_log().replace(winner, winner.replace("=5", "=3"))
        self.assertEqual(self.cells(absent)["4"], ["-", "config-2 (iter-0)"])

    def test_a_default_that_ran_in_the_place_of_a_trial_is_shown(self):
        text = golden_log().replace(
            "config=2 block=256 iter=1 launches=1 time_us=3.0 timer=cupti",
            "config=2 block=256 iter=1 launches=1 timer=cupti status=failed")
        text = text.replace(
            'pass=4 last_pass=5 site=kernel-1 key="" config=2 block=256',
            'pass=4 last_pass=4 site=kernel-1 key="" config=2 block=256\n'
            'event=passes region=decode pass=5 last_pass=5 site=kernel-1 key="" config=0 block=64')
        self.assertEqual(self.cells(text)["5"], ["**winner**", "config-0 (config-2 failed)"])

    def test_what_a_log_does_not_say_is_not_known(self):
        without = "".join(line + "\n" for line in golden_log().splitlines() if "=passes " not in line)
        self.assertEqual(self.cells(without)["4"], ["?", "config-2 (iter-0)"])
        # The process ended in its table: what came after the last line is not known.
        cut = golden_log()[:golden_log().index("event=winner")].replace(
            "event=region region=decode",
            "event=stage region=decode stage=table generation=0 elapsed_us=0\nevent=region region=decode")
        cut = "".join(line + "\n" for line in cut.splitlines() if "pass=2 last_pass=5" not in line)
        cells = self.cells(cut)
        self.assertEqual(cells["2"], ["config-1 (iter-0)", "config-1 (iter-0)"])
        self.assertEqual(cells["4"], ["?", "config-2 (iter-0)"])

    def test_passes_that_a_rank_made_alone_are_told_from_those_that_all_made(self):
        agreed = "".join(
            re.sub("(event=(trial|passes) .*)", r"\1 agreed=yes", line) + "\n"
            for line in golden_log().splitlines())
        alone = ('event=trial region=decode pass=0 site=kernel-0 key="" config=0 block=64 iter=0 '
                 "launches=1 time_us=5 timer=cupti\nevent=passes region=decode pass=0 last_pass=0 "
                 'site=kernel-0 key="" config=0 block=64\n')
        cells = self.cells(alone + agreed)
        self.assertEqual(list(cells), ["0 (alone)", *"012345", "final"])
        self.assertEqual(cells["0 (alone)"], ["config-0 (iter-0)", "-"])
        self.assertEqual(cells["0"], ["config-0 (iter-0)"] * 2)

    def test_a_line_of_passes_that_cannot_be_is_named(self):
        for passes in ("pass=5 last_pass=4", "pass=0 last_pass=10000", "pass=0"):
            self.write(lines(text=f'event=passes region=r {passes} site=a key="" config=0'))
            result = self.contextune("logs")
            self.assertIn("event=passes without a usable last_pass", result.stderr)
            (self.logs / "rank-0.log").unlink()

    def test_output_that_cannot_be_written_is_a_failure(self):
        self.write(lines())
        for arguments in ([], ["--json"]):
            with open("/dev/full", "w") as full:
                result = self.contextune("logs", *arguments, stdout=full, stderr=subprocess.PIPE,
                                         capture_output=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn("contextune logs: cannot write the output", result.stderr)

    def test_all_configs_of_a_site_are_shown_by_time(self):
        self.write(lines())
        output = self.contextune("logs").stdout
        self.assertRegex(output, r"kernel-1 +config-2 +block=256 +3\.00 us .*\n +config-1 +block=128 .*\n"
                                 r" +config-0 +block=64 ")

    def test_sites_of_one_name_are_told_apart_by_what_differs(self):
        text = "".join(
            f'event=trial region=r pass=0 site={site} key="code=aa n={n}" config=0 iter=0 '
            "launches=1 time_us=1 timer=cupti\n" for site, n in (("x", 1), ("x", 2), ("y", 1)))
        self.write(lines(text=text))
        self.assertRegex(self.contextune("logs", "--passes").stdout, r"\| pass +\| x n=1 +\| x n=2 +\| y +\|")

    def test_every_rank_is_shown(self):
        self.write(lines())
        self.write(lines(rank=1, pid=4243), rank=1)
        output = self.contextune("logs", "--passes").stdout
        self.assertEqual(output.count(GOLDEN_TABLE), 2)
        self.assertIn("rank 1, pid 4243", output)

    def test_the_last_run_is_shown_and_others_can_be_asked_for(self):
        self.write(lines(run="aaaa"))
        self.write(lines(run="bbbb", time="2026-11-20T21:33:53.120Z"))
        output = self.contextune("logs", "--passes").stdout
        self.assertIn("run bbbb", output)
        self.assertNotIn("run aaaa,", output)
        self.assertIn("--run ID, or --run all): aaaa", output)
        self.assertIn("run aaaa,", self.contextune("logs", "--passes", "--run", "aaaa").stdout)
        self.assertEqual(self.contextune("logs", "--passes", "--run", "all").stdout.count(GOLDEN_TABLE), 2)
        unknown = self.contextune("logs", "--passes", "--run", "cccc")
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("there is no run cccc", unknown.stderr)

    def test_json_holds_the_same(self):
        self.write(lines() + "garbage\n")
        result = self.contextune("logs", "--json")
        self.assertEqual(result.returncode, 0)
        read = json.loads(result.stdout)
        self.assertEqual(read["schema"], 1)
        region = read["processes"][0]["regions"][0]
        self.assertTrue(read["processes"][0]["simulated"])
        self.assertEqual(region["table"]["sites"], ["kernel-0", "kernel-1"])
        self.assertEqual([row["cells"] for row in region["table"]["rows"]][4],
                         ["**winner**", "config-2 (iter-0)"])
        self.assertAlmostEqual(region["sites"][0]["winner"]["seconds"], 4e-6)
        self.assertEqual(region["sites"][0]["configs"], {"0": "block=64", "1": "block=128"})
        self.assertEqual(len(region["sites"][1]["trials"]), 6)
        self.assertEqual(region["confirms"][0]["verdict"], "kept")
        self.assertEqual(read["bad_lines"][0]["line"], len(golden_log().splitlines()) + 1)

    def test_a_site_that_was_compared_alone_is_named(self):
        text = golden_log().replace("event=confirm region=decode ",
                                    "event=confirm region=decode site=kernel-0 ")
        self.write(lines(text=text))
        self.assertIn("    kernel-0 124 us with the default, 110 us with the winner, ",
                      self.contextune("logs").stdout)
        read = json.loads(self.contextune("logs", "--json").stdout)
        self.assertEqual(read["processes"][0]["regions"][0]["confirms"][0]["site"], "kernel-0")

    def test_how_a_region_was_tuned_is_told(self):
        self.write(lines(text=golden_log() + REPLAY))
        self.assertIn("replayed in 1 visit: 117 replays of 5 operations, 48.0 MiB",
                      self.contextune("logs").stdout)

    def test_json_tells_how_a_region_was_tuned(self):
        declined = 'event=fallback reason=host_memory region=decode text="Kernel x."\n'
        for text, mode, why in ((golden_log(), None, None), (golden_log() + REPLAY, "replay", None),
                                (golden_log() + declined, "live", "host_memory")):
            with self.subTest(mode):
                (self.logs / "rank-0.log").write_text(lines(text=text))
                read = json.loads(self.contextune("logs", "--json").stdout)
                region = read["processes"][0]["regions"][0]
                self.assertEqual((region["mode"], region["why_live"]), (mode, why))
                self.assertEqual(len(region["replays"]), mode == "replay")
        self.write(lines(text=REPLAY))
        replay = json.loads(self.contextune("logs", "--json").stdout)[
            "processes"][0]["regions"][0]["replays"][0]
        self.assertEqual(
            {name: replay[name] for name in ("visit", "operations", "replays", "dirty_bytes")},
            {"visit": 1, "operations": 5, "replays": 117, "dirty_bytes": 48 << 20})
        self.assertAlmostEqual(replay["seconds"], 0.21)
        self.assertAlmostEqual(replay["restore_seconds"], 31e-6)
        self.assertEqual((replay["timed_after"], replay["why_restored"]), (None, None))

    def test_a_config_that_computes_something_else_is_marked(self):
        text = golden_log().replace(
            "config=2 block=256 iter=0 launches=1 time_us=3.0 timer=cupti",
            "config=2 block=256 warmup=3 launches=0 timer=cupti status=wrong_result")
        self.assertNotEqual(text, golden_log())
        self.write(lines(text=text))
        self.assertIn("config-2 (warm-up) wrong_result", self.contextune("logs", "--passes").stdout)

    def test_bad_lines_are_named_and_counted_and_do_no_harm(self):
        self.write("not a log\n" + lines() + "2026-11-20T20:33:53.120Z run=7f3a pid=1")
        result = self.contextune("logs", "--passes")
        self.assertEqual(result.returncode, 0)
        self.assertIn(GOLDEN_TABLE, result.stdout)
        self.assertIn("rank-0.log:1: does not begin with a time", result.stderr)
        self.assertIn("was cut off", result.stderr)
        self.assertIn("2 lines could not be read", result.stderr)

    def test_nothing_readable_is_a_failure(self):
        self.write("not a log\n\x00\xff\n")
        self.assertEqual(self.contextune("logs").returncode, 1)
        missing = self.contextune("logs", "elsewhere")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("there is no log folder elsewhere", missing.stderr)

    def test_a_folder_or_a_file_may_be_given(self):
        self.write(lines())
        self.assertIn(GOLDEN_TABLE, self.contextune("logs", "--passes", self.logs, cwd="/").stdout)
        self.assertIn(GOLDEN_TABLE, self.contextune("logs", "--passes", self.logs / "rank-0.log", cwd="/").stdout)
        found = self.contextune("logs", "--passes", cwd="/",
                                env=self.environment | {"CONTEXTUNE_LOG_DIR": str(self.logs)})
        self.assertIn(GOLDEN_TABLE, found.stdout)

    def work_of(self, text, *flags):
        """User time that the command takes for a log: how it grows with the log is its shape."""
        (self.logs / "rank-0.log").write_text(lines(text=text))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        result = self.contextune("logs", *flags, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 capture_output=False, timeout=100)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def test_the_work_grows_with_the_log_and_not_with_its_square(self):
        def log(count, region, site, key):
            return "".join(
                f'event=trial region={region.format(i)} pass=0 site={site.format(i)} '
                f'key="{key.format(i)}" config=0 block=64 iter=0 launches=1 time_us=1 timer=cupti\n'
                f'event=fallback reason=host_memory region={region.format(i)} text="Kernel x."\n'
                f'event=fallback reason=launch_failed region={region.format(i)} '
                f'site={site.format(i)} text="Too many threads."\n' for i in range(count))

        few, factor = 3000, 4
        for shape in (("r", "kernel-{}", ""), ("r", "kernel", "code=aa n={}"), ("r-{}", "kernel", "")):
            for flags in ([], ["--json"]):
                with self.subTest(shape=shape, flags=flags):
                    # The square would take 16 times as much; what else runs here disturbs both.
                    growths = []
                    while len(growths) < 5 and (not growths or growths[-1] > 8):
                        growths.append(self.work_of(log(factor * few, *shape), *flags) /
                                       max(self.work_of(log(few, *shape), *flags), 0.01))
                    self.assertLess(min(growths), 8, growths)

    def test_a_table_that_nobody_could_read_is_left_out(self):
        text = "".join(
            f'event=passes region=r pass=0 last_pass=9999 site=kernel-{i} key="" config=0\n'
            for i in range(201))
        self.write(lines(text=text))
        self.assertIn("the table of r has more than 1000000 cells and is not shown",
                      self.contextune("logs", "--passes").stdout)
        region = json.loads(self.contextune("logs", "--json").stdout)["processes"][0]["regions"][0]
        self.assertIsNone(region["table"])
        self.assertEqual(region["sites"][200]["passes"][0]["last"], 9999)

    def test_json_holds_no_character_that_a_terminal_takes_for_a_command(self):
        evil = "a\x9b31m b\u202e c\u2066 \u00e9"
        self.write(lines(text=f'event=fault text="{evil}"'))
        result = self.contextune("logs", "--json", text=False)
        self.assertTrue(result.stdout.isascii(), result.stdout)
        self.assertEqual(json.loads(result.stdout)["processes"][0]["faults"], [evil])

    def test_many_sites_are_shown_in_pieces(self):
        text = "".join(
            f'event=trial region=r pass=0 site=kernel-with-a-name-{i} key="" config=0 iter=0 '
            "launches=1 time_us=1 timer=cupti\n" for i in range(12))
        self.write(lines(text=text))
        output = self.contextune("logs", "--passes").stdout
        self.assertGreater(output.count("| pass "), 1)
        for i in range(12):
            self.assertIn(f"| kernel-with-a-name-{i} ", output)
        table = [line for line in output.splitlines() if line.startswith("|")]
        self.assertLessEqual(max(map(len, table)), 120)


if __name__ == "__main__":
    unittest.main()
