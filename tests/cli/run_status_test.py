"""A run ends as its program ends."""

import os
import signal
import subprocess
import sys
import unittest

from harness import CommandTest


class Status(CommandTest):
    def test_every_exit_status_comes_through(self):
        for status in range(256):
            self.assertEqual(self.run_program("sh", "-c", f"exit {status}").returncode, status)

    def test_death_by_a_signal_comes_through(self):
        for name in ("HUP", "INT", "QUIT", "ABRT", "FPE", "KILL", "SEGV", "PIPE", "TERM", "USR1"):
            result = self.run_program("sh", "-c", f"ulimit -c 0; kill -{name} $$")
            self.assertEqual(result.returncode, -getattr(signal, "SIG" + name), name)

    def test_a_core_dump_is_not_doubled(self):
        (self.work / "cores").mkdir()
        self.run_program("sh", "-c", "ulimit -c unlimited; kill -SEGV $$", cwd=self.work / "cores")
        cores = [file for file in (self.work / "cores").iterdir() if file.is_file()]
        self.assertLessEqual(len(cores), 1, cores)
        for core in cores:
            self.assertNotIn(b"group_witness", core.read_bytes())

    def test_a_status_survives_a_parent_that_ignores_its_children(self):
        program = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); " \
                  "os.execv(sys.argv[1], sys.argv[1:])"
        result = subprocess.run(
            [sys.executable, "-c", program, *self.argv("run", "--", "sh", "-c", "exit 7")],
            env=self.environment, cwd=self.work, timeout=20)
        self.assertEqual(result.returncode, 7)

    def test_the_program_gets_mask_and_dispositions_as_they_were(self):
        show = [sys.executable, "-S", "-c",
                "print(''.join(l for l in open('/proc/self/status') if l[:3] in ('Sig', 'Shd')))"]
        setup = lambda: (signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]),
                         signal.signal(signal.SIGCHLD, signal.SIG_IGN),
                         signal.signal(signal.SIGHUP, signal.SIG_IGN))
        bare = subprocess.run(show, capture_output=True, text=True, preexec_fn=setup).stdout
        tuned = self.run_program(*show, preexec_fn=setup).stdout
        lines = lambda text: [l for l in text.splitlines() if not l.startswith("SigQ")]
        self.assertEqual(lines(bare), lines(tuned))

    def test_the_program_gets_the_interval_timers_that_were_running(self):
        begins = lambda *timer: (sys.executable, "-c", "import os, signal, sys; "
                                 f"signal.setitimer({', '.join(timer)}); "
                                 "os.execv(sys.argv[1], sys.argv[1:])")
        run = lambda *command: subprocess.run(command, env=self.environment, cwd=self.work,
                                              capture_output=True, text=True, timeout=20)
        sleeps = self.argv("run", "--", "sleep", "4")
        self.assertEqual(run(*begins("signal.ITIMER_REAL", "1"), *sleeps).returncode,
                         -signal.SIGALRM)
        shows = self.argv("run", "--", sys.executable, "-S", "-c", "import signal; print(*["
                          "signal.getitimer(t)[1] for t in (0, 1, 2)])")
        for which, timer in enumerate(("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")):
            intervals = run(*begins("signal." + timer, "100", "50"), *shows).stdout.split()
            self.assertEqual([float(i) for i in intervals],
                             [50.0 if one == which else 0.0 for one in range(3)])

    def test_a_program_that_is_missing_is_127(self):
        result = self.run_program("no-such-program-here")
        self.assertEqual(result.returncode, 127)
        self.assertIn("no-such-program-here: No such file or directory", result.stderr)
        self.assertIn("$PATH", result.stderr)
        self.assertEqual(result.stdout, "")

    def test_a_program_that_cannot_run_is_126(self):
        plain = self.work / "plain"
        plain.write_text("#!/bin/sh\nexit 0\n")
        result = self.run_program("./plain")
        self.assertEqual(result.returncode, 126)
        self.assertIn("./plain: Permission denied", result.stderr)

    def test_a_missing_interpreter_is_named_as_the_cause(self):
        script = self.work / "script"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        result = self.run_program("./script")
        self.assertIn("the file is there, but the interpreter or loader", result.stderr)

    def test_what_contextune_cannot_do_is_125(self):
        for arguments, text in (
            (["run"], "no program was given"),
            (["run", "--"], "no program was given"),
            (["run", "--regionn", "x", "--", "true"], "--regionn"),
            (["run", "--n-repeat", "none", "--", "true"], "n_repeat is 'none'"),
            (["run", "--region", "nvtx", "--", "true"], '"nvtx" is no mark; use nvtx:NAME'),
            (["run", "--region", "nvtx:a;kernel:(", "--", "true"], "cannot be read"),
            (["run", "--only", "(", "--", "true"], 'the regular expression "(" cannot be read'),
            (["run", "--force", "saxpy", "--", "true"], "option force: force: cannot read 'saxpy'"),
            (["run", "--buckets", "4X", "--", "true"], '"4X" is no size'),
            (["run", "--space-out", "f.lua", "--", "true"], "--discover"),
            (["run", "--kill-on-failure", "--", "true"], "-n starts"),
            (["run", "--report", "/no/such/folder/r", "--", "true"], "cannot write the report"),
        ):
            result = self.contextune(*arguments)
            self.assertEqual(result.returncode, 125, arguments)
            self.assertIn(text, result.stderr)

    def test_a_missing_library_is_said_before_the_program_starts(self):
        self.preload.unlink()
        result = self.run_program("sh", "-c", "echo started")
        self.assertEqual(result.returncode, 125)
        self.assertEqual(result.stdout, "")
        self.assertIn("libcontextune_preload.so", result.stderr)

    def test_disabled_needs_no_library(self):
        self.preload.unlink()
        result = self.run_program("sh", "-c", "echo $CONTEXTUNE_DISABLE$LD_PRELOAD; exit 3",
                                  flags=["--disable"])
        self.assertEqual((result.returncode, result.stdout), (3, "on\n"))

    def test_the_two_dashes_may_be_left_out(self):
        result = self.contextune("run", "--n-repeat", "4", "--no-refine", "sh", "-c",
                                 'echo $CONTEXTUNE_N_REPEAT $CONTEXTUNE_REFINE "$@"', "--", "--auto")
        self.assertEqual(result.stdout, "4 off --auto\n")


if __name__ == "__main__":
    unittest.main()
