"""What is left of a run is shown while it goes on, and never among the program's own lines."""

import re
import time
import unittest

from harness import CommandTest

# Writes lines to the rank logs: a line is seconds to wait before it, the rank, and the fields.
WRITES_SLOWLY = '''
import os, sys, time
folder = os.environ["CONTEXTUNE_LOG_DIR"]
os.makedirs(folder, exist_ok=True)
for line in open(sys.argv[1]):
    pause, rank, fields = line.rstrip("\\n").split(" ", 2)
    time.sleep(float(pause))
    with open(os.path.join(folder, "rank-%s.log" % rank), "a") as log:
        log.write("2026-11-20T20:33:53.120Z run=%s pid=%d rank=%s level=info %s\\n"
                  % (os.environ["CONTEXTUNE_RUN_ID"], 100 + int(rank), rank, fields))
print("done")
'''
STATUS = "\r\x1b[K"


def site(name, configs=4, passes=32, region="decode"):
    planned = f" table_passes={passes}" if passes else ""
    return f'event=site region={region} site={name} key="" configs={configs} launches=1 provider=declared{planned}'


def trials(name, first, last, region="decode", each=8):
    return [f'event=trial region={region} pass={number} site={name} key="" config={number // each} '
            f"iter={number % each} launches=1 time_us=5 timer=cupti" for number in range(first, last)]


def stage(name, region="decode"):
    return f"event=stage region={region} stage={name} generation=0 elapsed_us=0"


class RunProgress(CommandTest):
    def program(self, lines):
        """@param lines fields, or (seconds, fields), or (seconds, rank, fields)"""
        rows = []
        for line in lines:
            pause, rank, fields = (0, 0, line) if isinstance(line, str) else line if len(line) == 3 else (line[0], 0, line[1])
            rows.append(f"{pause} {rank} {fields}\n")
        (self.folder / "lines.txt").write_text("".join(rows))
        return [*self.script("writes_slowly.py", WRITES_SLOWLY), str(self.folder / "lines.txt")]

    def on_terminal(self, lines, *flags, to_file=True, **variables):
        """The text on standard error, a terminal, and its status lines."""
        command = self.argv("run", *flags, "--", *self.program(lines))
        if to_file:
            command = ["/bin/sh", "-c", '"$@" >output.txt', "sh", *command]
        environment = {"TERM": "xterm"} | self.environment | variables
        status, text = self.in_terminal(command, environment=environment)
        self.assertEqual(status, 0, text)
        if to_file:
            self.assertEqual((self.work / "output.txt").read_text(), "done\n")
        return text, [part.split("\r\n")[0] for part in text.split(STATUS)[1:] if part.startswith("contextune: ")
                      and "\r\n" not in part]

    table = [stage("table"), site("one"), site("two", 2, 16), *trials("one", 0, 8), *trials("two", 0, 8)]

    def test_what_is_left_of_a_table_is_shown(self):
        _, shown = self.on_terminal([*self.table, (0.7, stage("table"))])
        self.assertIn("contextune: decode: table, 2 of 6 configs tried, at most 24 passes left", shown)

    def test_seconds_are_shown_once_there_is_a_pace(self):
        slow = [(0.05, line) for line in trials("one", 8, 32)]
        _, shown = self.on_terminal([stage("table"), site("one", 8, 64), *trials("one", 0, 8), (0.7, "event=timer"), *slow,
                                     (0.7, stage("table"))])
        with_seconds = [line for line in shown if "about" in line]
        self.assertNotIn("about", shown[0])
        self.assertTrue(with_seconds, shown)
        left, seconds = map(int, re.search(r"at most (\d+) passes left, about (\d+) s of the table",
                                           with_seconds[0]).groups())
        self.assertLess(left, 56)
        self.assertIn(seconds, range(1, 9))  # 20 a second

    def test_a_log_that_does_not_say_how_many_passes_are_planned_gets_no_figure(self):
        old = [stage("table"), site("one"), site("two", 4, 0), *trials("one", 0, 8)]
        _, shown = self.on_terminal([*old, (0.7, stage("table"))])
        self.assertIn("contextune: decode: table, 1 of 8 configs tried", shown)
        self.assertFalse([line for line in shown if "left" in line or "about" in line], shown)

    def test_stages_of_no_known_length_say_so(self):
        _, shown = self.on_terminal([*self.table, stage("refine"), (0.5, stage("confirm")), (0.5, stage("finished")),
                                     (0.7, "event=timer")])
        self.assertTrue([line for line in shown if re.search("refine for 1 s, how long it takes is not known", line)], shown)
        self.assertTrue([line for line in shown if "confirm for " in line], shown)
        self.assertTrue([line for line in shown if "decode: finished, 8 passes" in line], shown)

    def test_the_rank_that_is_furthest_behind_is_shown(self):
        lines = [(0, rank, line) for rank in (0, 1, 2)
                 for line in [stage("table"), site("one"), *trials("one", 0, 8 if rank == 1 else 24)]]
        _, shown = self.on_terminal([*lines, (0.7, "event=timer")])
        self.assertIn("contextune: decode: table, 1 of 4 configs tried, at most 24 passes left (rank 1, the last of 3)",
                      shown)

    def test_sites_that_count_their_own_launches_add_up(self):
        lines = [line.replace("region=decode", "region=process")
                 for line in [*self.table, stage("refine"), stage("finished")]]  # of one of them
        _, shown = self.on_terminal([*lines, (0.7, "event=timer")])
        self.assertIn("contextune: process: table, 2 of 6 configs tried, at most 32 passes left", shown)

    def test_the_search_for_how_launches_go_out_is_shown(self):
        at = "event=stage region=auto generation=0 elapsed_us=0 stage="
        _, shown = self.on_terminal([at + "screen ways=5", (0.7, at + 'compare launches="chained gathered=16" '
                                     'against="as written" pairs=8'), (0.7, at + "finished"), (0.7, "event=timer")])
        self.assertTrue([line for line in shown
                         if re.fullmatch(r"contextune: auto: trying 5 ways to launch for \d s, how long it takes is not known",
                                         line)], shown)
        self.assertTrue([line for line in shown
                         if re.fullmatch(r"contextune: auto: comparing chained gathered=16 for \d s, "
                                         "8 pairs until it is judged next", line)], shown)
        self.assertIn("contextune: auto: finished", shown)

    def test_a_search_that_was_cut_off_is_told_in_the_summary(self):
        result = self.contextune("run", "--", *self.program(["event=stage region=auto stage=screen ways=5"]))
        self.assertIn("  region auto\n    the search for how launches go out did not come to its end\n", result.stderr)

    def test_one_line_is_rewritten_seldom_and_cleared_in_the_end(self):
        begin = time.monotonic()
        slow = [(0.005, line) for line in trials("one", 0, 256, each=64)]
        text, shown = self.on_terminal([stage("table"), site("one", 4, 256), *slow])
        self.assertGreater(len(shown), 2)
        self.assertLessEqual(len(shown), 10 * (time.monotonic() - begin))
        # Nothing stands behind the last status but what clears it.
        last = text.rindex(shown[-1]) + len(shown[-1])
        self.assertTrue(text[last:].startswith(STATUS), text[last:last + 40])
        for line in text.split("\r\n"):
            self.assertNotRegex(line.rsplit(STATUS, 1)[-1], "passes left.*event")

    def test_there_is_no_rewritten_line_where_it_would_be_in_the_way(self):
        for options in ({"to_file": False}, {"TERM": "dumb"}):
            text, _ = self.on_terminal([*self.table, (0.7, stage("refine"))], **options)
            self.assertNotIn("\x1b[K", text)
            self.assertIn("contextune: decode: table, ", text)  # the news are lines of their own

    def test_never_is_never(self):
        text, _ = self.on_terminal([*self.table, (0.7, stage("refine"))], "--progress", "never")
        self.assertNotIn("\x1b[K", text)
        self.assertNotIn("contextune: decode: ", text)
        self.assertIn("  region decode", text)  # the summary is no progress

    def test_always_writes_lines_to_a_terminal_that_the_program_writes_to(self):
        for variables in ({"to_file": False}, {"TERM": "dumb"}):
            text, _ = self.on_terminal([*self.table, (0.5, stage("refine"))], "--progress", "always", "--color", "never",
                                       **variables)
            self.assertIn("contextune: decode: table, 2 of 6 configs tried, at most 24 passes left\r\n", text)
            self.assertNotIn("\x1b", text)

    def run_piped(self, lines, *flags):
        result = self.contextune("run", *flags, "--", *self.program(lines))
        self.assertEqual((result.returncode, result.stdout), (0, "done\n"))
        return result.stderr

    def test_without_a_terminal_there_is_progress_only_if_it_is_asked_for(self):
        lines = [*self.table, (0.5, stage("refine"))]
        self.assertNotIn("contextune: decode", self.run_piped(lines))
        self.assertNotIn("contextune: decode", self.run_piped(lines, "--progress=never"))
        self.assertEqual(self.run_piped(lines, "--progress=always", "--quiet"), "")
        text = self.run_piped(lines, "--progress", "always")
        self.assertIn("contextune: decode: table, 2 of 6 configs tried, at most 24 passes left\n", text)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\r", text)

    def test_lines_in_a_pipe_are_few(self):
        slow = [(0.01, line) for line in trials("one", 0, 256, each=64)]
        begin = time.monotonic()
        text = self.run_piped([stage("table"), site("one", 4, 256), *slow], "--progress", "always")
        self.assertLessEqual(text.count("passes left"), time.monotonic() - begin + 1)
        self.assertGreater(text.count("passes left"), 1)

    def test_a_report_file_gets_news_and_no_status(self):
        for flags in ([], ["--progress", "always"]):
            self.assertEqual(self.run_piped([*self.table, (0.7, stage("refine"))], "--report", "report.txt", *flags), "")
            text = (self.work / "report.txt").read_text()
            self.assertIn("contextune: decode: table, ", text)
            self.assertNotIn("passes left", text)

    def test_hostile_names_do_not_reach_the_terminal(self):
        lines = [line.replace("region=decode", 'region="\\u001b[31mred\\u0007"') for line in self.table]
        text, shown = self.on_terminal([*lines, (0.7, "event=timer")])
        self.assertTrue(shown)
        self.assertNotIn("\x1b[31m", text)
        self.assertNotIn("\x07", text)

    def test_wrong_words_are_answered(self):
        for flag in ("--progress", "--color"):
            result = self.contextune("run", flag, "sometimes", "--", "true")
            self.assertEqual(result.returncode, 125)
            self.assertIn(flag, result.stderr)


if __name__ == "__main__":
    unittest.main()
