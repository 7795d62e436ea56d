"""`contextune run -n` starts the ranks of a job on this host."""

import json
import os
import re
import signal
import subprocess
import sys
import unittest

from harness import CommandTest, gone, wait_until

SHOWS = """
import json, os, sys
names = ["CONTEXTUNE_RANK", "CONTEXTUNE_WORLD_SIZE", "CONTEXTUNE_ADDRESS", "CONTEXTUNE_SECRET",
         "CONTEXTUNE_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT"]
seen = {name: os.environ.get(name) for name in names}
seen["input"] = sys.stdin.read()
os.write(1, (json.dumps(seen) + "\\n").encode())
"""


class Ranks(CommandTest):
    def shown(self, *flags, **options):
        result = self.run_program(*self.script("shows.py", SHOWS), flags=("--quiet", *flags), **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return sorted((json.loads(line) for line in result.stdout.splitlines()),
                      key=lambda seen: seen["CONTEXTUNE_RANK"])

    def shell(self, text, *flags, **options):
        return self.run_program("sh", "-c", text, flags=flags, **options)

    def test_every_rank_is_told_which_it_is_and_where_they_meet(self):
        ranks = self.shown("-n", "3", input="")
        self.assertEqual([seen["CONTEXTUNE_RANK"] for seen in ranks], ["0", "1", "2"])
        for rank, seen in enumerate(ranks):
            self.assertEqual(seen["CONTEXTUNE_WORLD_SIZE"], "3")
            self.assertEqual((seen["RANK"], seen["WORLD_SIZE"], seen["LOCAL_RANK"]),
                             (str(rank), "3", str(rank)))
            self.assertRegex(seen["CONTEXTUNE_ADDRESS"], "^unix:contextune-run-[0-9a-f]{32}$")
            self.assertRegex(seen["CONTEXTUNE_SECRET"], "^[0-9a-f]{32}$")
            self.assertIsNone(seen["MASTER_PORT"])
        for name in ("CONTEXTUNE_ADDRESS", "CONTEXTUNE_SECRET", "CONTEXTUNE_RUN_ID"):
            self.assertEqual(len({seen[name] for seen in ranks}), 1, name)

    def test_another_job_meets_elsewhere(self):
        first, second = self.shown("-n", "1", input=""), self.shown("--num-ranks=1", input="")
        for name in ("CONTEXTUNE_ADDRESS", "CONTEXTUNE_SECRET"):
            self.assertNotEqual(first[0][name], second[0][name])

    def test_without_it_nothing_is_said_about_ranks(self):
        seen = json.loads(self.run_program(*self.script("shows.py", SHOWS), input="").stdout)
        self.assertEqual({seen[name] for name in seen if "RANK" in name or "SECRET" in name}, {None})

    def test_what_the_user_set_stays(self):
        self.environment |= {"CONTEXTUNE_ADDRESS": "unix:mine", "CONTEXTUNE_SECRET": "x" * 20,
                             "WORLD_SIZE": "64"}
        for seen in self.shown("-n", "2", input=""):
            self.assertEqual((seen["CONTEXTUNE_ADDRESS"], seen["CONTEXTUNE_SECRET"]), ("unix:mine", "x" * 20))
            self.assertEqual((seen["RANK"], seen["WORLD_SIZE"], seen["LOCAL_RANK"]), (None, "64", None))
            self.assertEqual(seen["CONTEXTUNE_WORLD_SIZE"], "2")

    def test_only_rank_0_reads_the_input(self):
        self.assertEqual([seen["input"] for seen in self.shown("-n", "3", input="hello")],
                         ["hello", "", ""])

    def test_the_output_is_the_programs_own(self):
        result = self.shell("echo out; echo err >&2", "-n", "3", "--quiet")
        self.assertEqual((result.stdout, result.stderr), ("out\n" * 3, "err\n" * 3))

    def test_the_secret_stands_in_no_command_line_and_no_log(self):
        program = self.script("looks.py", """
import glob, os
secret = os.environ["CONTEXTUNE_SECRET"].encode()
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        if secret in open(path, "rb").read():
            print("found in", path)
    except OSError:
        pass
""")
        result = self.run_program(*program, flags=("-n", "2", "--report", "report.txt", "--log-level", "debug"))
        self.assertEqual(result.stdout, "")
        self.environment["CONTEXTUNE_SECRET"] = "do-not-print-this-one"
        self.run_program("true", flags=("-n", "2", "--report", "report.txt", "--log-level", "debug"))
        written = (self.work / "report.txt").read_text()
        for log in (self.work / ".autotune_logs").glob("*"):
            written += log.read_text()
        self.assertNotIn("do-not-print", written)
        self.assertNotEqual(written, "")

    def test_the_first_that_fails_gives_the_status_after_all_have_ended(self):
        result = self.shell("case $RANK in 1) exit 7;; 2) sleep 0.5; echo late; exit 9;; esac",
                            "-n", "3", "--report", "report.txt")
        self.assertEqual((result.returncode, result.stdout), (7, "late\n"))
        self.assertIn("rank 1 ended with status 7; the other ranks go on",
                      (self.work / "report.txt").read_text())

    def test_a_rank_that_is_killed_leaves_the_others_alone(self):
        result = self.shell("ulimit -c 0; test $RANK = 0 && kill -SEGV $$; sleep 0.5; echo done",
                            "-n", "3", "--report", "report.txt")
        self.assertEqual((result.returncode, result.stdout), (-signal.SIGSEGV, "done\n" * 2))
        self.assertIn("rank 0 was killed by signal 11 (Segmentation fault)",
                      (self.work / "report.txt").read_text())

    def test_with_kill_on_failure_it_takes_them_along(self):
        result = self.shell("test $RANK = 1 && exit 7; exec sleep 1000", "-n", "3", "--kill-on-failure",
                            "--report", "report.txt")
        self.assertEqual(result.returncode, 7)
        self.assertIn("the other ranks are ended", (self.work / "report.txt").read_text())

    def test_a_rank_that_does_not_hear_is_killed_after_a_while(self):
        deaf = self.script("deaf.py", """
import os, signal, sys, time
if os.environ["RANK"] == "1":
    time.sleep(0.5)
    sys.exit(7)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(1000)
""")
        result = self.run_program(*deaf, flags=("-n", "2", "--kill-on-failure"), timeout=40)
        self.assertEqual(result.returncode, 7)

    def test_signals_reach_every_rank_once(self):
        hears = self.script("hears.py", """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
os.write(1, b"ready\\n")
first = signal.sigtimedwait([signal.SIGTERM, signal.SIGUSR1], 15)
again = signal.sigtimedwait([signal.SIGTERM, signal.SIGUSR1], 0.5)
os.write(1, ("%s %s\\n" % (first and first.si_signo, again)).encode())
""")
        for to_group in (False, True):
            process = self.start(*hears, flags=("-n", "3"), start_new_session=True)
            for _ in range(2):
                self.assertEqual(process.stdout.readline(), "ready\n")
            if to_group:
                os.killpg(process.pid, signal.SIGTERM)
            else:
                process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=20)
            self.assertEqual((out, process.returncode), ("15 None\n" * 3, 0))

    def test_none_outlives_contextune(self):
        process = self.start("sh", "-c", "echo ready; echo $$; exec sleep 1000", flags=("-n", "2"))
        lines = [process.stdout.readline() for _ in range(3)]
        pids = [int(line) for line in lines if line != "ready\n"]
        process.kill()
        process.wait()
        self.assertTrue(wait_until(lambda: all(gone(pid) for pid in pids)))

    def test_ctrl_c_ends_all_and_is_the_status(self):
        status, output = self.in_terminal(
            self.argv("run", "-n", "2", "--", "sh", "-c", "echo up; exec sleep 1000"),
            talk=[(b"up\r\nup\r\n", b"\x03")])
        self.assertEqual(os.WTERMSIG(status), signal.SIGINT, output)

    def test_what_is_missing_or_makes_no_sense_is_said(self):
        self.assertEqual(self.run_program("no-such-program", flags=("-n", "2")).returncode, 127)
        for flags in (("-n", "0"), ("-n", "2000"), ("-n", "x"), ("-n", "2", "--rank", "1")):
            result = self.run_program("true", flags=flags)
            self.assertEqual(result.returncode, 125, flags)
            self.assertIn("contextune run", result.stderr)

    def test_the_help_tells(self):
        text = self.contextune("run", "--help").stdout
        for word in ("-n N", "--kill-on-failure", "--address", "CONTEXTUNE_SECRET"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
