"""`contextune logs --perfetto FILE` and `--csv FILE`: files for other tools, whatever stands in the logs."""

import csv
import io
import json
import os
import pathlib
import re
import resource
import subprocess
import unittest

from harness import CommandTest, REPLAY, golden_log
from trace_events import Trace

WRITE_RANK_LOGS = pathlib.Path(os.environ["CONTEXTUNE_WRITE_RANK_LOGS"])
COLUMNS = ("run,rank,pid,region,site,key,config,parameters,pass,agreed,iteration,counts,status,launches,"
           "seconds,region_seconds,timer,sm_clock_hz,began,simulated")


def clock(milliseconds, seconds=53):
    return f"2026-11-20T20:33:{seconds + milliseconds // 1000:02}.{milliseconds % 1000:03}Z"


def lines(text, run="7f3a", pid=4242, rank=0, time="2026-11-20T20:33:53.120Z"):
    head = f"{time} run={run} pid={pid} rank={rank} level=info "
    return "".join(head + line + "\n" for line in text.splitlines())


class Files(CommandTest):
    def setUp(self):
        super().setUp()
        self.logs = self.work / ".autotune_logs"
        self.logs.mkdir()

    def write(self, text, rank=0):
        with open(self.logs / f"rank-{rank}.log", "ab") as log:
            log.write(text if isinstance(text, bytes) else text.encode())

    def trace(self, *flags):
        result = self.contextune("logs", "--perfetto", "trace.json", *flags)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        text = (self.work / "trace.json").read_bytes().decode()
        self.assertRegex(result.stdout.splitlines()[-1],
                         r"^trace\.json: \d[\d,]* events? of \d+ process(es)?, .*; open it in https://ui\.perfetto\.dev$")
        trace = Trace(text)
        trace.check(self)
        return trace, result.stdout

    def rows(self, *flags):
        result = self.contextune("logs", "--csv", "-", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return list(csv.DictReader(io.StringIO(result.stdout, newline=""), strict=True))


class Perfetto(Files):
    def test_a_tuning_is_shown_on_tracks_of_its_region_and_sites(self):
        text = golden_log().replace(
            "event=region region=decode", "event=stage region=decode stage=table generation=0 elapsed_us=0\n"
            "event=region region=decode")
        self.write(lines(text))
        self.write(lines("event=stage region=decode stage=confirm generation=0 elapsed_us=9\n", time=clock(200)))
        self.write(lines("event=stage region=decode stage=finished generation=0 elapsed_us=9\n"
                         + REPLAY + "event=fault text=\"space.lua:3\"\n", time=clock(330)))
        trace, _ = self.trace()
        self.assertEqual(set(trace.tracks.values()),
                         {"region decode", "region decode: replayed visits", "decode: kernel-0",
                          "decode: kernel-1", "events of no region"})
        self.assertEqual(list(trace.processes.values()), ["rank 0 (simulated), process 4242: ./engine"])
        (stages,) = trace.on("region decode").values()
        self.assertEqual([(one["name"], int(one["ts"]), one["dur"]) for one in stages],
                         [("table", 0, 80_000), ("confirm", 80_000, 130_000)])
        (replays,) = trace.on("region decode: replayed visits").values()
        self.assertEqual([(one["name"], one["dur"]) for one in replays], [("replay of visit 1", 210_000)])
        self.assertEqual({one["name"] for one in trace.instants},
                         {"finished", "confirm: kept", "winner: block=128", "winner: block=64",
                          "fallback: launch_failed", "fault: space.lua:3"})
        (fallback,) = [one for one in trace.instants if one["cat"] == "fallback"]
        self.assertEqual(trace.tracks[fallback["pid"], fallback["tid"]], "decode: kernel-1")
        (slices,) = trace.on("decode: kernel-1").values()
        self.assertEqual([one["name"] for one in slices], [f"block={64 << (i // 2)}" for i in range(6)])
        self.assertEqual(slices[3]["args"] | {"placed": ""},
                         {"config": 1, "pass": 3, "iteration": 1, "status": "measured", "launches": 1,
                          "microseconds": 4, "timer": "cupti", "placed": ""})
        self.assertTrue(trace.about["simulated"])

    def test_trials_begin_when_their_pass_did_and_last_as_long_as_their_launches(self):
        self.write(lines("event=start program=./a\n", time="2026-11-20T20:33:53.000Z"))
        for number, (began, status) in enumerate(((100, ""), (250, ""), (400, " status=failed"))):
            took = "" if status else "time_us=1.5 region_us=20 "
            self.write(lines(
                f'event=trial region=r pass={number} site=a key="" config=2 block=64 iter=0 launches=4 '
                f"{took}timer=cupti began=2026-11-20T20:33:53.000{began}Z{status}\n", time=clock(9)))
        trace, _ = self.trace()
        (slices,) = trace.on("r: a").values()
        self.assertEqual([one["ts"] for one in slices], [100, 250, 400])
        self.assertEqual([one["dur"] for one in slices], [6, 6, 0])
        self.assertEqual(slices[2]["args"]["status"], "failed")
        self.assertNotIn("placed", slices[0]["args"])
        self.assertEqual([one["args"] for one in trace.counters], [{"microseconds": 20}] * 2)

    def test_trials_of_an_older_log_stand_where_their_lines_were_written(self):
        self.write(lines(golden_log()))
        trace, _ = self.trace()
        for slices in (*trace.on("decode: kernel-0").values(), *trace.on("decode: kernel-1").values()):
            self.assertEqual({one["args"]["placed"] for one in slices}, {"where its line was written"})
            self.assertEqual([one["dur"] for one in slices], [5 - i // 2 for i in range(len(slices))])
        self.assertEqual(len(trace.counters), 2)  # before and after it was confirmed

    def test_what_ranks_decided_connects_their_questions_with_the_verdict(self):
        subprocess.run([WRITE_RANK_LOGS, self.logs, "4"], check=True, timeout=60)
        trace, _ = self.trace()
        self.assertEqual(len(trace.processes), 4)
        flows = trace.flows(self)
        self.assertEqual(len(flows), 2 * 4)
        for question, verdict in flows:
            self.assertEqual(question["args"]["question"], verdict["args"]["question"])
            self.assertEqual(trace.tracks[question["pid"], question["tid"]], "agreements")
            self.assertTrue(trace.processes[verdict["pid"]].startswith("rank 0 "))
            self.assertEqual(verdict["args"]["ranks"], 4)
        self.assertEqual({question["pid"] for question, _ in flows}, set(trace.processes))
        self.assertEqual({verdict["name"] for _, verdict in flows},
                         {"question 1: aborted", "question 2: committed"})
        self.assertEqual(trace.about["clocks"], "as the logs say")

    def test_the_stages_of_tunings_of_single_sites_have_tracks_of_their_own(self):
        for time, site, stage in ((100, "a", "table"), (150, "b", "table"), (200, "a", "refine"), (300, "b", "refine")):
            self.write(lines(f"event=stage region=process site={site} stage={stage} generation=0\n", time=clock(time)))
        trace, _ = self.trace()
        for site, end in (("a", 100_000), ("b", 150_000)):
            (stages,) = trace.on(f"region process: tuning of {site}").values()
            self.assertEqual([one["name"] for one in stages], ["table", "refine"])
            self.assertEqual(stages[0]["dur"], end)

    def sync(self, rank, question, at, wait_us=400, began=""):
        return lines(f"event=sync region=r group=5f group_rank={rank} question={question} hash=aa "
                     f"wait_us={wait_us} verdict=committed{began}\n", rank=rank, pid=10 + rank, time=clock(at))

    def test_blocks_of_a_log_of_level_debug_have_a_track(self):
        for time, block, way in ((200, 0, '"as written"'), (300, 3, '"gathered=16"'), (301, 4, "chained")):
            self.write(lines(f"event=block region=auto block={block} launches={way} time_us=2000 entries=8\n",
                             time=clock(time)).replace("level=info", "level=debug"))
        trace, _ = self.trace()
        (blocks,) = trace.on("region auto: how launches went out").values()
        self.assertEqual([(one["name"], one["dur"]) for one in blocks],
                         [("as written", 2000), ("gathered=16", 2000), ("chained", 2000)])
        self.assertEqual(blocks[0]["args"], {"block": 0, "entries": 8, "microseconds_of_an_entry": 250})

    def test_clocks_of_hosts_are_put_beside_one_another_by_verdicts(self):
        for rank, host, ahead in ((0, "node-a", 0), (1, "node-a", 0), (2, "node-b", 1500), (3, "node-c", 0)):
            self.write(lines(f"event=start program=./a host={host}\n", rank=rank, pid=10 + rank, time=clock(ahead)), rank)
            if rank == 3:
                self.write(lines("event=region region=r\n", rank=3, pid=13, time=clock(100)), 3)
                continue
            for question in range(5):
                self.write(self.sync(rank, question, 100 + ahead + 10 * question), rank)
        trace, output = self.trace()
        self.assertIn("the clock of node-b is 1.50 s ahead of the first rank's, by 5 verdicts, and put right\n", output)
        self.assertIn("the clock of node-c is taken as it is: no agreement compares it", output)
        self.assertRegex(trace.about["clocks"], r"node-b: -1500\.000 ms by 5 verdicts; node-c: as its clock says")
        for question, verdict in trace.flows(self):
            self.assertLess(verdict["ts"] - question["ts"], 1000)

    def test_a_rank_that_hears_late_on_the_same_host_is_not_moved(self):
        for rank, late in ((0, 0), (1, 70)):
            self.write(lines("event=start program=./a host=vm\n", rank=rank, pid=10 + rank, time=clock(0)), rank)
            for question in range(5):
                self.write(self.sync(rank, question, 100 + late + 100 * question), rank)
        trace, output = self.trace()
        self.assertEqual(len(output.splitlines()), 1)
        late = [question["ts"] for question, _ in trace.flows(self) if question["args"]["group_rank"] == 1]
        self.assertEqual(min(late), 169_600)

    def test_a_verdict_stands_behind_all_questions_whatever_clocks_say(self):
        for rank, ahead in ((0, 0), (1, 300)):
            for question in range(3):
                self.write(self.sync(rank, question, 500 + ahead + 10 * question, 0), rank)
        trace, _ = self.trace()
        self.assertEqual(len(trace.flows(self)), 6)

    def test_one_rank_can_be_chosen(self):
        subprocess.run([WRITE_RANK_LOGS, self.logs, "4"], check=True, timeout=60)
        trace, _ = self.trace("--rank", "2")
        self.assertRegex(*trace.processes.values(), "^rank 2 ")

    def test_names_cannot_break_it(self):
        names = ['</script><b>"', "a\\\\", "\\u001b[2J", "\\u009b1m", "\\xff\\xfe", "\\n\\r\\t", "\\u0000", "é漢😀", "x" * 900_000]
        for number, name in enumerate(names):
            quoted = '"' + name.replace('"', '\\"') + '"'
            for event in (f"stage region={quoted} stage={quoted if number < 8 else 's'} generation=0",
                          f"trial region={quoted} pass=1 site={quoted if number < 8 else 'x'} key=\"\" config=1 "
                          f"block={quoted if number < 8 else 'y'} iter=0 launches=1 time_us=1 status={quoted if number < 8 else 'z'} timer=cupti",
                          f"winner region={quoted} site=x key=\"\" config=1 reason=fastest",
                          f"sync region=r group={quoted} question=1 wait_us=1 verdict={quoted if number < 8 else 'v'}",
                          f"confirm region={quoted} verdict={quoted if number < 8 else 'v'}",
                          f"fallback reason={quoted} region=r text={quoted if number < 8 else 't'}",
                          f"fault text={quoted}"):
                self.write(lines(f"event={event}"))
        self.write(b'2026-11-20T20:33:53.120Z run=7f3a pid=4242 rank=0 level=info event=fault text="\xff\x80\xc3"\n')
        self.write(lines('event=start program="\\u001b]0;x\\u0007</title>"'))
        result = self.contextune("logs", "--perfetto", "t.json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        written = (self.work / "t.json").read_bytes()
        self.assertFalse(re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", written))
        trace = Trace(written.decode("utf-8"))
        trace.check(self)
        self.assertIn("fault: \ufffd\ufffd\ufffd", [one["name"] for one in trace.instants])
        self.assertLess(max(map(len, trace.tracks.values())), 200)
        self.assertIn("region é漢😀", trace.tracks.values())
        # Of a megabyte, only what is read as text is kept whole.
        self.assertLess(len(written), 4_000_000)

    def test_figures_and_times_cannot_break_it(self):
        for number, (took, began) in enumerate((("1e300", "9999-12-31T23:59:59.999999Z"), ("-5", "0001-01-01T00:00:00.000Z"),
                                                ("nan", "x"), ("inf", "2026-11-20T20:33:53.120001Z"), ("1e12", "2026-99-20T20:33:53.120Z"))):
            self.write(lines(f"event=trial region=r pass={number} site=a key=\"\" config=0 iter=0 launches=4000000000 "
                             f"time_us={took} region_us={took} timer=cupti began={began}\n"
                             f"event=stage region=r stage=table generation=0 began={began}\n"
                             f"event=sync group=1 question={number} wait_us={took} verdict=committed began={began}\n"
                             f"event=replay region=r visit={number} replays=1 time_s={took}\n"
                             f"event=confirm region=r verdict=kept pairs=1 before_us={took} after_us={took}\n"))
        self.write(lines("event=region region=r\n", time="2026-99-99T99:99:99.999Z", rank=1), 1)
        self.trace()


class Csv(Files):
    def test_every_trial_is_a_row_that_says_what_json_does(self):
        self.write(lines(golden_log()))
        self.write(lines(
            'event=trial region=decode pass=7 site="gemm<64, 64>, \\"x\\"" key="m=1 n=2" config=3 block=64 note="a, b" warmup=2 '
            "launches=3 time_us=2.53 region_us=20.25 timer=events sm_mhz=1980 status=throttled agreed=yes "
            "began=2026-11-20T20:33:53.119845Z\n"
            'event=trial region=decode pass=8 site="" key="" config=1 iter=0 launches=0 timer=cupti status=failed\n', rank=1), 1)
        rows = self.rows()
        contents = json.loads(self.contextune("logs", "--json").stdout)
        expected = []
        for process in contents["processes"]:
            for region in process["regions"]:
                for site in region["sites"]:
                    for trial in site["trials"]:
                        of_all = {"run": process["run"], "rank": process["rank"], "pid": process["pid"],
                                  "region": region["name"], "site": site["name"], "key": site["key"],
                                  "parameters": site["configs"][str(trial["config"])], "simulated": process["simulated"]}
                        expected.append(of_all | trial)
        self.assertEqual(len(rows), 12)
        self.assertEqual(list(rows[0]), COLUMNS.split(","))
        self.assertEqual([{name: self.value(text) for name, text in row.items()} for row in rows],
                         [{name: self.value(self.text(one[name])) for name in COLUMNS.split(",")} for one in expected])
        self.assertEqual(rows[10]["site"], 'gemm<64, 64>, "x"')
        self.assertEqual(rows[10]["parameters"], 'block=64 note="a, b"')
        self.assertEqual(rows[10]["began"], "2026-11-20T20:33:53.119845Z")
        self.assertEqual(rows[10]["seconds"], "2.53e-06")
        self.assertEqual((rows[11]["seconds"], rows[11]["status"]), ("", "failed"))

    @staticmethod
    def text(value):
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    @staticmethod
    def value(text):
        try:
            return float(text)
        except ValueError:
            return text

    def test_a_row_is_a_line_whatever_names_hold(self):
        name = '"a\\nb\\r\\u0000,\\"\\u001b[2J\\xff=1+1"'
        self.write(lines(f'event=trial region={name} pass=1 site={name} key={name} config=1 x={name} iter=0 '
                         f"launches=1 time_us=1 timer={name} status={name}\n"))
        text = self.contextune("logs", "--csv", "-").stdout
        self.assertEqual(len(text.splitlines()), 2)
        self.assertNotRegex(text.replace("\n", ""), r"[\x00-\x1f\x7f]")
        (row,) = self.rows()
        for column in ("region", "site", "key", "timer", "status"):
            self.assertEqual(row[column], 'a\\nb\\r\\u0000,"\\u001b[2J\\xff=1+1')

    def test_it_goes_to_a_file_or_to_standard_output(self):
        self.write(lines(golden_log()))
        shown = self.contextune("logs", "--csv", "-")
        result = self.contextune("logs", "--csv", "trials.csv", "--perfetto", "trace.json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^trace\.json: .*\ntrials\.csv: 10 rows, .*\n$")
        self.assertEqual((self.work / "trials.csv").read_text(), shown.stdout)
        self.assertEqual(len({row["rank"] for row in self.rows("--rank", "0")}), 1)
        self.assertEqual(sorted(os.listdir(self.work)), [".autotune_logs", "trace.json", "trials.csv"])


class Writing(Files):
    def logs_with(self, *flags, **options):
        return self.contextune("logs", *flags, **options)

    def test_what_cannot_be_written_names_the_file_and_leaves_what_was_there(self):
        self.write(lines(golden_log()))
        (self.work / "folder").mkdir()
        for flag in ("--perfetto", "--csv"):
            for path, why in (("/dev/full", "No space left on device; make room there, or name a file on another disk"),
                              ("none/t.json", "No such file or directory; make its folder first"),
                              ("folder", "Is a directory; name a file in that folder"),
                              ("/proc/t.json", "name a")):
                result = self.logs_with(flag, path)
                self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
                self.assertRegex(result.stderr, rf"^contextune logs: cannot write {re.escape(path)}: ")
                self.assertIn(why, result.stderr)
            with open("/dev/full", "w") as full:
                result = self.logs_with(flag, "-", stdout=full, stderr=subprocess.PIPE, capture_output=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn("cannot write standard output: No space left on device", result.stderr)
        self.assertEqual(sorted(os.listdir(self.work)), [".autotune_logs", "folder"])

    def test_a_disk_that_is_full_halfway_leaves_the_old_file(self):
        self.write(lines(golden_log()))
        (self.work / "old.json").write_text("old")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        for flag in ("--perfetto", "--csv"):
            # Python leaves SIGXFSZ ignored, so that a write fails and ends nobody.
            result = self.logs_with(flag, "old.json", preexec_fn=limit, restore_signals=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn("old.json: File too large; ", result.stderr)
            self.assertIn("nothing was written, and what was there is unchanged", result.stderr)
            self.assertEqual((self.work / "old.json").read_text(), "old")
            self.assertEqual(sorted(os.listdir(self.work)), [".autotune_logs", "old.json"])

    def test_a_link_stays_and_its_file_is_replaced_whole(self):
        self.write(lines(golden_log()))
        (self.work / "real.csv").write_text("old")
        (self.work / "real.csv").chmod(0o640)
        (self.work / "link.csv").symlink_to("real.csv")
        self.assertEqual(self.logs_with("--csv", "link.csv").returncode, 0)
        self.assertTrue((self.work / "link.csv").is_symlink())
        self.assertTrue((self.work / "real.csv").read_text().startswith("run,rank,"))
        self.assertEqual((self.work / "real.csv").stat().st_mode & 0o777, 0o640)

    def test_nothing_to_write_is_said_and_no_file_appears(self):
        self.write(lines("event=start program=./engine\n"))
        for flag, why in (("--perfetto", "no region, agreement or fallback is in these logs"),
                          ("--csv", "no trial is in these logs")):
            result = self.logs_with(flag, "file")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(f"contextune logs: {why}; file is not written; `contextune ", result.stderr)
        self.assertFalse((self.work / "file").exists())

    def test_a_run_or_rank_that_is_not_there_is_named(self):
        self.write(lines(golden_log()))
        for flags, why in ((("--run", "none"), "there is no run none"), (("--rank", "7"), "there is no rank 7")):
            result = self.logs_with("--csv", "t.csv", "--perfetto", "t.json", *flags)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"contextune logs: {why}\n"))
        self.assertEqual(os.listdir(self.work), [".autotune_logs"])

    def test_ways_to_ask_that_exclude_one_another_are_refused(self):
        for flags in (("--json", "--csv", "x"), ("--nccl-csv", "y", "--perfetto", "x"), ("--perfetto", "-", "--csv", "-")):
            self.assertEqual(self.logs_with(*flags).returncode, 2)

    def test_help_says_what_they_write(self):
        text = self.logs_with("--help").stdout
        for word in ("--perfetto FILE", "--csv FILE", "ui.perfetto.dev"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
