"""`contextune logs` rebuilds what happened."""

import json
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
        result = self.contextune("logs")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(GOLDEN_TABLE, result.stdout)
        self.assertIn("the winners are kept", result.stdout)

    def test_output_that_cannot_be_written_is_a_failure(self):
        self.write(lines())
        for arguments in ([], ["--json"]):
            with open("/dev/full", "w") as full:
                result = self.contextune("logs", *arguments, stdout=full, stderr=subprocess.PIPE,
                                         capture_output=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn("contextune logs: cannot write the output", result.stderr)

    def test_the_numbers_of_configs_are_explained(self):
        self.write(lines())
        output = self.contextune("logs").stdout
        self.assertRegex(output, r"configs of kernel-1\n +config-0 +block=64\n +config-1 +block=128\n"
                                 r" +config-2 +block=256\n")

    def test_sites_of_one_name_are_told_apart_by_what_differs(self):
        text = "".join(
            f'event=trial region=r pass=0 site={site} key="code=aa n={n}" config=0 iter=0 '
            "launches=1 time_us=1 timer=cupti\n" for site, n in (("x", 1), ("x", 2), ("y", 1)))
        self.write(lines(text=text))
        self.assertRegex(self.contextune("logs").stdout, r"\| pass +\| x n=1 +\| x n=2 +\| y +\|")

    def test_every_rank_is_shown(self):
        self.write(lines())
        self.write(lines(rank=1, pid=4243), rank=1)
        output = self.contextune("logs").stdout
        self.assertEqual(output.count(GOLDEN_TABLE), 2)
        self.assertIn("rank 1, pid 4243", output)

    def test_the_last_run_is_shown_and_others_can_be_asked_for(self):
        self.write(lines(run="aaaa"))
        self.write(lines(run="bbbb", time="2026-11-20T21:33:53.120Z"))
        output = self.contextune("logs").stdout
        self.assertIn("run bbbb", output)
        self.assertNotIn("run aaaa,", output)
        self.assertIn("--run ID, or --run all): aaaa", output)
        self.assertIn("run aaaa,", self.contextune("logs", "--run", "aaaa").stdout)
        self.assertEqual(self.contextune("logs", "--run", "all").stdout.count(GOLDEN_TABLE), 2)
        unknown = self.contextune("logs", "--run", "cccc")
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

    def test_a_config_that_computes_something_else_is_marked(self):
        text = golden_log().replace(
            "config=2 block=256 iter=0 launches=1 time_us=3.0 timer=cupti",
            "config=2 block=256 warmup=3 launches=0 timer=cupti status=wrong_result")
        self.assertNotEqual(text, golden_log())
        self.write(lines(text=text))
        self.assertIn("config-2 (warm-up) wrong_result", self.contextune("logs").stdout)

    def test_bad_lines_are_named_and_counted_and_do_no_harm(self):
        self.write("not a log\n" + lines() + "2026-11-20T20:33:53.120Z run=7f3a pid=1")
        result = self.contextune("logs")
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
        self.assertIn(GOLDEN_TABLE, self.contextune("logs", self.logs, cwd="/").stdout)
        self.assertIn(GOLDEN_TABLE, self.contextune("logs", self.logs / "rank-0.log", cwd="/").stdout)
        found = self.contextune("logs", cwd="/",
                                env=self.environment | {"CONTEXTUNE_LOG_DIR": str(self.logs)})
        self.assertIn(GOLDEN_TABLE, found.stdout)

    def test_many_sites_are_shown_in_pieces(self):
        text = "".join(
            f'event=trial region=r pass=0 site=kernel-with-a-name-{i} key="" config=0 iter=0 '
            "launches=1 time_us=1 timer=cupti\n" for i in range(12))
        self.write(lines(text=text))
        output = self.contextune("logs").stdout
        self.assertGreater(output.count("| pass "), 1)
        for i in range(12):
            self.assertIn(f"| kernel-with-a-name-{i} ", output)
        table = [line for line in output.splitlines() if line.startswith("|")]
        self.assertLessEqual(max(map(len, table)), 120)


if __name__ == "__main__":
    unittest.main()
