"""What a run tells, and where."""

import json
import os
import re
import sys
import unittest

from harness import CommandTest, REPLAY, WRITES_LOG, golden_log


FOUND = ('event=start version=0.1.0 program=./engine gpu="Simulated GPU" compute_capability=9.0 num_sms=132 '
         "driver=13.0 simulated=no mode=auto regions=auto timer=cupti\n"
         'event=region region=auto text="every 4 launches from core; 1,000 entries; 77 % of the elapsed time"\n')
SETTLED = ('event=site region=auto site=launches key="" configs=2\n'
           'event=winner region=auto site=launches key="" config=1 chained=true gathered=16 reason=region\n'
           "event=confirm region=auto verdict=kept gain=0.42 bound=0.39 pairs=4 tries=1\n")


def submission(state, launches, run=0, images=2, unneeded=0):
    return (f'event=submission region=auto launches="{launches}" state={state} run={run} most_runs=4 '
            "chained=1 held=8000 batches=500 late=3 graph_launches=500 in_graphs=7990 graphs=2 "
            f"images={images} kernels=57 images_left={images // 2} images_unneeded={unneeded} kept_bytes=3145728 load_us=1500\n")


class Summary(CommandTest):
    def setUp(self):
        super().setUp()
        self.program = self.script("writes_log.py", WRITES_LOG)

    def report_of(self, text, *flags):
        result = self.run_program(*self.program, flags=["--report", "report.txt", *flags], input=text)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "done\n", ""))
        return (self.work / "report.txt").read_text()

    def test_the_report_tells_what_was_won(self):
        report = self.report_of(golden_log())
        for text in (
            "Simulated GPU, 132 SMs, driver 13.0, launches timed by cupti",
            "region time 124 us with the defaults, 110 us with the winners, 11.3 % less "
            "(with 95 % confidence at least 10.1 %), 8 pairs of passes (simulated): "
            "the winners are kept",
            "22 passes of 30 entries, 500 ms of tuning (simulated); finished",
            "launch_failed, decode, kernel-1: Too many threads.",
            "17 launches outside every region",
        ):
            self.assertIn(text, report)

    def test_each_site_is_shown_with_its_configs_by_time(self):
        report = self.report_of(golden_log())
        self.assertRegex(report, r"kernel-0 +config-1 +block=128 +4\.00 us +0\.0 % +20\.0 % less +winner\n"
                                 r" +config-0 +block=64 +5\.00 us +0\.0 % +- +default\n")
        self.assertRegex(report, r"kernel-1 +config-2 +block=256 +3\.00 us +0\.0 % +40\.0 % less\n"
                                 r" +config-1 +block=128 +4\.00 us +0\.0 % +20\.0 % less\n"
                                 r" +config-0 +block=64 +5\.00 us +0\.0 % +- +default, winner\n")

    def test_a_region_that_was_found_is_told_in_words(self):
        report = self.report_of(FOUND + SETTLED + submission("settled", "chained gathered=16"))
        self.assertIn(
            "  region auto: every 4 launches from core; 1,000 entries; 77 % of the elapsed time\n"
            "    launches: chained, gathered by 16: 42.0 % less time than as written "
            "(with 95 % confidence at least 39.0 %, 4 pairs)\n"
            "    1 launch chained in the stream, 500 graphs of 7990 launches handed over\n"
            "    2 images with 57 kernels given waits, 1 left alone; 3.00 MiB of host memory kept, "
            "1.50 ms spent at loads\n", report)
        self.assertNotIn("config-1", report)
        self.assertIn("launches: chained, gathered by 16: 42.0 %", self.contextune("logs").stdout)
        contents = json.loads(self.contextune("logs", "--json").stdout)
        self.assertEqual(contents["num_bad_lines"], 0)
        (region,) = contents["processes"][0]["regions"]
        self.assertEqual(region["found"],
                         "every 4 launches from core; 1,000 entries; 77 % of the elapsed time")
        shown = region["submission"]
        self.assertEqual((shown["launches"], shown["state"], shown["run"]),
                         ("chained gathered=16", "settled", None))
        self.assertEqual((shown["in_graphs"], shown["images_left"], shown["load_seconds"]),
                         (7990, 1, 0.0015))

    def test_launches_in_turns_are_told_with_their_ratio_and_its_interval(self):
        compared = ("event=confirm region=auto verdict=defaults gain=-0.25 bound=-0.5625 pairs=900 tries=1\n")
        report = self.report_of(FOUND + compared + submission("turns", "gathered=16"))
        self.assertIn("    launches: gathered by 16 in turns with as written, as --force says: 0.800 times as fast "
                      "(95 % interval 0.640 to 1.000, 900 pairs)\n", report)
        report = self.report_of(FOUND + submission("turns", "chained"))
        self.assertIn("launches: chained in turns with as written, as --force says; too few blocks to compare",
                      report)

    def test_images_that_an_earlier_run_did_not_need_are_told_from_refused_ones(self):
        report = self.report_of(FOUND + SETTLED + submission("settled", "chained", unneeded=21))
        self.assertIn("    2 images with 57 kernels given waits, 1 left alone, 21 not needed here; 3.00 MiB", report)
        contents = json.loads(self.contextune("logs", "--json").stdout)
        self.assertEqual(contents["processes"][0]["regions"][0]["submission"]["images_unneeded"], 21)

    def test_launches_that_no_other_way_was_faster_for_stay_as_written(self):
        settled = SETTLED.replace("verdict=kept gain=0.42 bound=0.39", "verdict=defaults gain=0 bound=0")
        report = self.report_of(FOUND + settled + submission("settled", "as written", images=0))
        self.assertIn("    launches: as written, since nothing else was shown to be faster\n", report)
        self.assertNotIn("images", report)
        told = submission("settled", "as written", images=0).rstrip() + ' screened="chained 1.020, gathered=16 1.310" why="no gain"\n'
        self.assertIn("shown to be faster (times as long: chained 1.020, gathered=16 1.310)\n",
                      self.report_of(FOUND + settled + told))
        read = json.loads(self.contextune("logs", "--json").stdout)["processes"][0]["regions"][0]["submission"]
        self.assertEqual((read["screened"], read["why"]), ("chained 1.020, gathered=16 1.310", "no gain"))
        pinned = self.report_of(submission("pinned", "gathered=8"))
        self.assertIn("  region auto\n    launches: gathered by 8, as --force says\n", pinned)

    def test_a_search_that_goes_on_says_so_once(self):
        unsettled = 'event=fallback reason=not_settled region=auto site=launches text="It goes on."\n'
        report = self.report_of(FOUND + unsettled + submission("open", "chained", run=2))
        self.assertIn("    not settled yet (run 2 of at most 4): launches go out chained so far, and the next "
                      "run goes on from here\n", report)
        self.assertNotIn("It goes on", report)
        last = self.report_of(FOUND + unsettled + submission("open", "chained", run=4))
        self.assertIn("(run 4 of at most 4): launches go out chained so far, and the next run stays with that\n",
                      last)
        of_nccl = self.report_of(submission("nccl", "as written", images=0))
        self.assertIn("    launches: as written, since most are NCCL's\n", of_nccl)
        none = self.report_of(submission("nothing", "as written", images=0))
        self.assertIn("    launches: as written, since nothing repeats\n", none)

    def configs(self, count, status=lambda i: ""):
        return golden_log() + f'event=site region=decode site=many key="" configs={count}\n' + "".join(
            f'event=trial region=decode pass={2 * i + j} site=many key="" config={i} variant=v block={i} '
            f"iter={j} launches=1 time_us={10 - i + j / 10} timer=cupti{status(i)}\n"
            for i in range(count - 3) for j in range(2))

    def test_of_many_configs_the_fastest_are_shown_and_the_others_counted(self):
        text = self.configs(12, lambda i: " status=failed" if i == 5 else "")
        report = self.report_of(text)
        self.assertRegex(report, r"many +config-8 +block=8 +2\.05 us +4\.9 % +79\.6 % less\n")
        self.assertRegex(report, r" +config-0 +block=0 +10\.1 us +1\.0 % +- +default, undecided\n"
                                 r" +3 slower, 1 failed, 3 untried\n +all with variant=v\n")
        self.assertNotIn("config-3 ", report)
        listed = self.contextune("logs").stdout
        self.assertRegex(listed, r" +config-3 +block=3 +7\.05 us")
        self.assertRegex(listed, r" +config-5 +block=5 +- +- +- +failed\n")

    def test_a_slower_config_is_said_to_take_more(self):
        report = self.report_of(self.configs(6).replace("time_us=9", "time_us=12"))
        self.assertRegex(report, r"config-1 +block=1 +12\.\d us +0\.8 % +19\.9 % more\n")
        self.assertNotRegex(report, r" -\d")

    def test_a_winner_that_is_slower_alone_is_explained(self):
        text = golden_log().replace("time_us=4.0", "time_us=6.0").replace("reason=fastest", "reason=region")
        report = self.report_of(text)
        self.assertRegex(report, r"config-1 +block=128 +6\.00 us +0\.0 % +20\.0 % more +winner, by the time of "
                                 r"the region\n")
        left_out = ('event=confirm region=decode left_out=kernel-0 key="" config=1 block=128 verdict=kept '
                    "before_us=112 after_us=110 gain=0.018 bound=0.01 pairs=8\n"
                    'event=confirm region=decode left_out=kernel-1 key="" config=2 block=256 '
                    "verdict=dropped before_us=109 after_us=110 gain=-0.009 bound=-0.02 pairs=8\n")
        report = self.report_of(text.replace("reason=margin", "reason=dropped") + left_out)
        self.assertIn("winner, region 1.8 % less with it\n", report)
        self.assertIn("default, winner, another was dropped: region 0.9 % less without it\n", report)
        self.assertNotRegex(report, r" -\d")

    def test_the_times_of_a_line_and_its_gain_agree(self):
        report = self.report_of(golden_log().replace("after_us=110 gain=0.113", "after_us=99 gain=0.113"))
        self.assertIn("region time 124 us with the defaults, 110 us with the winners, 11.3 % less", report)

    def test_a_run_from_the_store_says_what_the_winner_gained_when_it_was_found(self):
        text = "".join(line + "\n" for line in golden_log().splitlines()
                       if " site=kernel-1" not in line and "=trial " not in line and "=passes " not in line)
        report = self.report_of(text.replace("reason=fastest", "reason=stored"))
        self.assertIn("started with the winners that are stored for 1 site, with the times of the run that "
                      "found them\n", report)
        self.assertRegex(report, r"kernel-0 +config-1 +block=128 +4\.00 us +- +20\.0 % less +winner, stored\n"
                                 r" +config-0 +as launched +5\.00 us +- +- +default\n")

    def test_a_run_from_the_store_says_what_the_region_gained_when_it_was_tuned(self):
        found = ("event=store region=decode action=found sites=1 same_software=1 verdict=kept "
                 "before_us=124 after_us=110 gain=0.113 bound=0.101 pairs=8 simulated=yes\n")
        text = "".join(line + "\n" for line in golden_log().splitlines()
                       if "=trial " not in line and "=passes " not in line and "=confirm " not in line)
        text = text.replace("reason=fastest", "reason=stored")
        line = ("    stored: region time 124 us with the defaults, 110 us with the winners, 11.3 % less "
                "(with 95 % confidence at least 10.1 %), 8 pairs of passes (simulated): "
                "the winners are kept\n")
        skipped = "event=confirm region=decode verdict=skipped pairs=0 tries=0\n"
        self.assertIn(line, self.report_of(found + text + skipped))
        self.assertIn(line, self.contextune("logs").stdout)
        stored = json.loads(self.contextune("logs", "--json").stdout)["processes"][-1]["regions"][0]
        self.assertEqual(stored["stored_confirm"]["gain"], 0.113)
        again = "event=confirm region=decode verdict=kept before_us=99 after_us=90 gain=0.09 bound=0.05 pairs=4\n"
        self.assertNotIn("stored: ", self.report_of(found + text + again))
        searched = text.replace("reason=stored", "reason=fastest")
        self.assertEqual(self.report_of(searched + 3 * skipped).count("not compared with the defaults"), 1)
        alone = skipped.replace("region=decode", "region=decode site=kernel-0")
        self.assertNotIn("stored: ", self.report_of(found + text + alone))
        self.assertNotIn("stored: ", self.report_of(found + golden_log()))

    def test_a_pinned_site_is_shown_beside_its_default(self):
        text = "".join(line + "\n" for line in golden_log().splitlines()
                       if " site=kernel-1" not in line and "=trial " not in line and "=passes " not in line)
        text = text.replace("time_us=4 default_us=5 reason=fastest",
                            'reason=pinned default_config="block=64 per_sm=2"')
        report = self.report_of(text)
        self.assertRegex(report, r"kernel-0 +config-0 +block=64 per_sm=2 +- +- +- +default\n"
                                 r" +config-1 +block=128 +- +- +- +winner, pinned\n")

    def test_a_text_of_several_lines_keeps_them(self):
        text = golden_log() + 'event=fault text="space.lua:3: wrong\\nin two lines\\n"\n'
        report = self.report_of(text)
        self.assertIn("    space.lua:3: wrong\n      in two lines\n", report)

    def test_what_befell_several_configs_is_not_told_as_one_of_them(self):
        text = golden_log() + "".join(
            f'event=fallback reason=build_failed region=decode site=kernel-0 text="Config {i} is wrong."\n'
            for i in (1, 2, 2))
        report = self.report_of(text)
        self.assertIn("build_failed, decode, kernel-0: Config 1 is wrong.\n", report)
        self.assertIn("build_failed, decode, kernel-0 (2 times): Config 2 is wrong.\n", report)

    def test_winners_that_were_not_shown_to_be_faster_are_said_so(self):
        report = self.report_of(golden_log().replace(
            "verdict=kept before_us=124 after_us=110 gain=0.113 bound=0.101",
            "verdict=defaults before_us=124 after_us=125 gain=-0.008 bound=-0.02"))
        self.assertIn("0.8 % more (its 95 % bound, -2.0 %, is not above zero)", report)
        self.assertIn("not shown to be faster: the defaults are kept", report)

    def test_simulated_figures_are_marked_and_real_ones_are_not(self):
        report = self.report_of(golden_log())
        self.assertIn("a simulated driver: no figure here is of a real GPU", report)
        self.assertIn("region decode (simulated)", report)
        real = golden_log().replace("simulated=yes", "simulated=no")
        self.assertNotIn("imulated driver", self.report_of(real))
        self.assertNotIn("(simulated)", self.report_of(real))

    def test_a_killed_program_still_gets_a_summary(self):
        program = self.script("killed.py", WRITES_LOG + "\nos.kill(os.getpid(), 9)\n")
        cut = golden_log().split("event=winner")[0]
        result = self.run_program(*program, flags=["--report", "report.txt"], input=cut)
        self.assertEqual(result.returncode, -9)
        report = (self.work / "report.txt").read_text()
        self.assertRegex(report, r"config-0 +block=64 +5\.00 us +0\.0 % +- +default, undecided\n")

    def test_lines_of_other_runs_do_not_count(self):
        folder = self.work / ".autotune_logs"
        folder.mkdir()
        (folder / "rank-0.log").write_text(
            "2026-11-20T20:33:53.120Z run=0000 pid=1 rank=0 level=info event=region region=old\n")
        self.assertNotIn("old", self.report_of(golden_log()))

    def test_of_many_fallbacks_the_report_shows_a_few_and_logs_all(self):
        lines = golden_log() + "".join(
            f'event=fallback reason=no_knobs region=decode site=plain-{i} text="One config."\n'
            for i in range(7))
        report = self.report_of(lines)
        self.assertIn("plain-3:", report)
        self.assertNotIn("plain-4:", report)
        self.assertIn("no_knobs: 3 more; `contextune logs` lists them", report)
        listed = self.contextune("logs").stdout
        for i in range(7):
            self.assertIn(f"plain-{i}:", listed)
        self.assertNotIn("more;", listed)

    def test_a_replayed_region_says_what_was_repeated(self):
        report = self.report_of(golden_log() + REPLAY)
        self.assertIn("replayed in 1 visit: 117 replays of 5 operations, 48.0 MiB put back before "
                      "each, the program stood still for 210 ms (simulated)\n", report)
        self.assertIn("    22 passes, 500 ms of tuning (simulated); finished", report)
        self.assertNotIn("live", report)
        after_itself = REPLAY.replace(" simulated", " timed_after=itself simulated")
        self.assertIn("117 replays of 5 operations, the timed ones right after another, 48.0 MiB put "
                      "back before the others, the program", self.report_of(golden_log() + after_itself))

    def test_visits_that_came_before_or_after_are_counted(self):
        again = REPLAY.replace("visit=1", "visit=3").replace("replays=117", "replays=130").replace(
            "time_s=0.21", "time_s=0.04")
        early = ("event=fallback reason=replay_allocation region=decode "
                 'text="A module was loaded."\n')
        report = self.report_of(golden_log() + early + REPLAY + again)
        self.assertIn("replayed in 3 visits: 130 replays of 5 operations, 48.0 MiB put back before "
                      "each, the program stood still for 250 ms (simulated)\n", report)
        self.assertIn("replay_allocation, decode: A module was loaded.", report)

    def test_a_live_region_says_why_it_was_not_replayed(self):
        declined = ("event=fallback reason=replay_allocation region=decode "
                    'text="A module was loaded."\n'
                    'event=fallback reason=host_memory region=other text="Not this one."\n'
                    'event=fallback reason=host_memory region=decode text="Kernel x is given '
                    'host memory."\n'
                    'event=fallback reason=too_many_sites region=decode text="Over 256 sites."\n')
        report = self.report_of(golden_log() + declined)
        self.assertIn("    live over 30 visits, because host_memory: Kernel x is given host "
                      "memory.\n    22 passes, 500 ms of tuning", report)
        self.assertEqual(report.count("Kernel x"), 1)
        for other in ("replay_allocation, decode: A module was loaded.",
                      "host_memory, other: Not this one.", "too_many_sites, decode: Over 256 sites."):
            self.assertIn(other, report)

    def test_a_region_that_came_once_and_could_not_be_replayed_is_not_called_live(self):
        text = golden_log().replace("entries=30", "entries=0") + (
            "event=fallback reason=replay_allocation region=decode "
            'text="A module was loaded."\n') * 2
        self.assertIn("    not replayed, because replay_allocation (2 times): A module was loaded.\n",
                      self.report_of(text))

    def test_what_was_asked_to_be_live_needs_no_reason(self):
        captured = 'event=fallback reason=capture region=decode text="A launch was captured."\n'
        report = self.report_of(golden_log().replace("mode=auto", "mode=live") + captured)
        self.assertIn("    live over 30 visits\n", report)
        self.assertNotIn("because", report)
        self.assertIn("capture, decode: A launch was captured.", report)

    def test_a_region_that_was_never_entered_is_named(self):
        text = golden_log().replace("regions=nvtx:decode", "regions=nvtx:decode;nvtx:prefill")
        report = self.report_of(text)
        self.assertIn("region nvtx:prefill was never entered", report)
        self.assertNotIn("nvtx:decode was never", report)

    def test_a_program_without_cuda_is_told_so(self):
        result = self.run_program("true", flags=["--report", "report.txt"])
        self.assertEqual(result.returncode, 0)
        report = (self.work / "report.txt").read_text()
        self.assertIn("nothing was tuned", report)
        self.assertIn("ended before it had started CUDA, or it does not use it", report)

    def test_without_a_terminal_the_summary_goes_to_standard_error(self):
        result = self.run_program(*self.program, input=golden_log())
        self.assertEqual((result.returncode, result.stdout), (0, "done\n"))
        self.assertIn("the winners are kept", result.stderr)
        self.assertNotIn("\x1b", result.stderr)
        self.assertNotIn("\r", result.stderr)
        self.assertTrue(result.stderr.startswith("contextune: ./engine, run "), result.stderr)

    def test_problems_go_to_standard_error(self):
        self.assertIn("nothing was tuned", self.run_program("true").stderr)
        failed = self.run_program("sh", "-c", "exit $RANK", flags=["-n", "2", "--kill-on-failure"])
        self.assertIn("nothing was tuned", failed.stderr)

    def test_a_report_takes_what_standard_error_would_get(self):
        result = self.run_program("true", flags=["--report", "report.txt", "--quiet"])
        self.assertEqual(result.stderr, "")
        self.assertIn("nothing was tuned", (self.work / "report.txt").read_text())

    def test_a_log_that_cannot_be_written_is_told(self):
        logs = self.work / ".autotune_logs"
        logs.mkdir()
        (logs / "rank-0.log").mkdir()
        self.assertIn("cannot be written (Is a directory)", self.run_program("true").stderr)

    def test_nothing_in_a_log_reaches_the_terminal_as_a_command(self):
        evil = 'event=fault text="\\u001b]0;owned\\u0007 a.lua:3"\n'
        report = self.report_of(golden_log() + evil)
        self.assertNotIn("\x1b", report)
        self.assertIn("a.lua:3", report)

    def test_the_summary_goes_to_the_terminal(self):
        lines = self.work / "lines"
        lines.write_text(golden_log())
        program = " ".join(self.program)
        status, output = self.in_terminal(
            self.argv("run", "--", "sh", "-c", f"{program} < lines > out.txt"))
        self.assertEqual(status, 0)
        self.assertIn("the winners are kept", output)
        self.assertEqual((self.work / "out.txt").read_text(), "done\n")

    def test_progress_is_one_line_where_the_program_writes_elsewhere(self):
        slow = self.script("slow.py", WRITES_LOG + "\nimport time\ntime.sleep(1.5)\n")
        (self.work / "lines").write_text(golden_log().split("event=summary")[0])
        program = "exec " + " ".join(slow) + " < lines"
        script = f"exec {self.command} run -- sh -c '{program}' > out.txt"
        status, output = self.in_terminal(["/bin/sh", "-c", script])
        self.assertEqual(status, 0)
        self.assertIn("\r\x1b[Kcontextune: decode: entered, 6 passes, 2 sites, 2 decided", output)
        self.assertEqual((self.work / "out.txt").read_text(), "done\n")

    def test_there_is_no_status_line_among_the_program_s_own(self):
        slow = self.script("slow.py", WRITES_LOG + "\nimport time\ntime.sleep(1.0)\n")
        (self.work / "lines").write_text(golden_log())
        status, output = self.in_terminal(
            self.argv("run", "--", "sh", "-c", " ".join(slow) + " < lines"))
        self.assertEqual(status, 0)
        self.assertNotIn("\x1b[K", output)
        self.assertIn("contextune: decode: finished", output)


KERNELS = """\
event=start version=0.1.0 program=./engine gpu=G compute_capability=9.0 num_sms=132 driver=13.0 simulated=no mode=auto regions=nvtx:decode timer=cupti
event=kernel region=decode kernel=small key="" launches=10 time_s=0.01 grid=8 block=64 shared_bytes=0 registers=8 params="ptr i32" timer=cupti
event=kernel region=decode kernel="gemm<64, 64>" key="n=7" launches=10 time_s=0.09 grid=8x4 block=16x16 shared_bytes=1024 registers=64 params="ptr ptr ptr i32" timer=cupti
"""


class Discover(CommandTest):
    def setUp(self):
        super().setUp()
        self.program = self.script("writes_log.py", WRITES_LOG)

    def discover(self, *flags):
        return self.run_program(*self.program, input=KERNELS,
                                flags=["--discover", "--report", "report.txt", *flags])

    def test_kernels_are_listed_by_time(self):
        self.assertEqual(self.discover().returncode, 0)
        report = (self.work / "report.txt").read_text()
        rows = [line.split() for line in report.splitlines() if "cupti" not in line and "%" in line]
        self.assertEqual([row[0] for row in rows], ["90.0", "10.0"])
        self.assertRegex(report, r"90\.0 % +90\.0 ms +10 +8x4 +16x16 +64 +1024 +gemm<64, 64> +ptr ptr ptr i32")

    def test_a_space_file_is_written(self):
        self.discover()
        text = (self.work / "contextune.lua").read_text()
        self.assertIn('kernel "gemm<64, 64>"', text)
        self.assertIn("contextune.lua", (self.work / "report.txt").read_text())

    def test_a_space_file_may_be_named_where_the_variable_asks_for_it(self):
        environment = self.environment | {"CONTEXTUNE_DISCOVER": "on"}
        result = self.run_program("true", flags=["--space-out", "other.lua"], env=environment)
        self.assertEqual(result.returncode, 0)

    def test_a_file_that_is_there_is_never_overwritten(self):
        (self.work / "contextune.lua").write_text("mine")
        self.assertEqual(self.discover().returncode, 0)
        self.assertEqual((self.work / "contextune.lua").read_text(), "mine")
        self.assertIn("is there already", (self.work / "report.txt").read_text())
        (self.work / "other.lua").write_text("mine")
        result = self.discover("--space-out", "other.lua")
        self.assertEqual(result.returncode, 125)
        self.assertEqual(result.stdout, "")
        self.assertEqual((self.work / "other.lua").read_text(), "mine")


if __name__ == "__main__":
    unittest.main()
