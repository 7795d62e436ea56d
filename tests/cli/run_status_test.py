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

    def refusal(self, *flags, **variables):
        """What is said of a run whose program is not started."""
        result = self.run_program("sh", "-c", "echo started", flags=flags,
                                  env=self.environment | variables)
        self.assertEqual((result.returncode, result.stdout), (125, ""), (flags, variables))
        self.assertRegex(result.stderr, "^contextune run: ")
        return result.stderr

    def accept(self, *flags, **variables):
        result = self.run_program("sh", "-c", "echo started", flags=flags,
                                  env=self.environment | variables)
        self.assertEqual((result.returncode, result.stdout), (0, "started\n"), result.stderr)

    def space(self, text, name="space.lua"):
        (self.work / name).write_text(text)
        return ["--space", name]

    def test_a_space_file_that_cannot_be_used_ends_the_run_before_the_start(self):
        self.assertIn("nowhere.lua: cannot open the space file: No such file",
                      self.refusal("--space", "nowhere.lua"))
        self.assertIn("is a folder, not a space file", self.refusal("--space", "."))
        broken = self.space('kernel "attend" {\n  apply = \n}\n')
        self.assertIn("space.lua:3:", self.refusal(*broken))
        self.assertIn("space.lua:3:", self.refusal(CONTEXTUNE_SPACE="space.lua"))
        self.assertIn("space.lua:1:", self.refusal(*self.space("while true do end\n")))
        good = self.space('kernel "a" { space = { block = {64, 128} }, '
                          "apply = function(c, l) l.block.x = c.block end }\n", "good.lua")
        self.assertIn("space.lua:1:", self.refusal("--space", f"{good[1]}:space.lua"))
        self.accept(*good)

    def test_a_space_file_that_only_this_gpu_may_refuse_is_left_to_the_program(self):
        self.accept(*self.space('if device.num_sms ~= 7 then error("for a GPU of 7 SMs") end\n'))

    def test_a_log_folder_that_cannot_be_written_ends_the_run_before_the_start(self):
        (self.work / "in_the_way").write_text("")
        said = self.refusal("--log-dir", "in_the_way/logs")
        self.assertIn("in_the_way/logs cannot be written (Not a directory)", said)
        self.assertIn("--log-dir", said)
        self.refusal(CONTEXTUNE_LOG_DIR="in_the_way")

    def test_variables_that_make_no_sense_end_the_run_before_the_start(self):
        self.assertIn('"decode" is no mark; use nvtx:NAME', self.refusal(CONTEXTUNE_REGION="decode"))
        self.assertIn("CONTEXTUNE_N_REPEAT: option n_repeat is 'none'",
                      self.refusal(CONTEXTUNE_N_REPEAT="none"))
        self.assertIn('the regular expression "(" cannot be read', self.refusal(CONTEXTUNE_ONLY="("))
        self.accept("--n-repeat", "3", CONTEXTUNE_N_REPEAT="none")
        self.accept(CONTEXTUNE_N_REPEAT="none", CONTEXTUNE_DISABLE="1")

    def test_names_that_leave_nothing_end_the_run_before_the_start(self):
        for everything in (".", "", "[a-zA-Z_]"):
            flags = ["--exclude", everything or "x*"]
            self.assertIn("leaves no kernel and no collective", self.refusal(*flags))
        self.assertIn("leaves no kernel", self.refusal("--only", "saxpy", "--exclude", "saxpy"))
        self.accept("--exclude", "[a-z]")
        self.accept("--only", "saxpy")
        space = self.space('kernel "gemm<64, 64>" { space = { block = {64, 128} }, '
                           "apply = function(c, l) l.block.x = c.block end }\n"
                           'collective "all_gather" { space = { channels = {0, 16} } }\n')
        self.assertIn("--only 'saxpy' leaves nothing of what the space files declare: gemm<64, 64>, "
                      "all_gather", self.refusal(*space, "--only", "saxpy"))
        self.refusal(*space, "--exclude", "gemm|gather", "--auto", "chained")
        self.accept(*space, "--exclude", "gemm|gather")
        for only in ("gemm", "gemm<64,64>", "^all_", "ncclAllGather", "ncclBcast"):
            self.accept(*space, "--only", only)
        self.accept(*space, "--only", "saxpy", "--auto")
        self.accept(*space, "--only", "saxpy", "--discover")

    def test_a_pin_that_is_no_config_of_a_declared_kernel_ends_the_run_before_the_start(self):
        space = self.space('kernel "gemm<64, 64>" { configs = { {block=64, per_sm=1}, '
                           "{block=64, per_sm=2}, {block=128, per_sm=1} }, "
                           "apply = function(c, l) l.block.x = c.block end }\n")
        all_of_it = "it has default, block=64 per_sm=1, block=64 per_sm=2, block=128 per_sm=1"
        whose = ' of kernel "gemm<64, 64>" (space.lua:1)'
        for wrong in ("block=100", "4", "blok=64", "large", "block=128 per_sm=2"):
            said = self.refusal(*space, "--force", f"gemm<64,64>={wrong}")
            self.assertIn(f'option force: "{wrong}" is no config{whose}; {all_of_it}', said)
        self.assertIn(all_of_it, self.refusal(
            *space, CONTEXTUNE_FORCE="other=1,gemm<64, 64>{grid=8}=block=100"))
        self.assertIn(f'"block=64" means several configs{whose}: '
                      "block=64 per_sm=1, block=64 per_sm=2",
                      self.refusal(*space, "--force", "gemm<64, 64>=block=64"))
        for right in ("0", "3", "default", "block=128", "block=64 per_sm=2"):
            self.accept(*space, "--force", f"gemm<64, 64>={right}")
        self.accept(*space, "--force", "saxpy=block=100,decode{n=4}=7")
        self.accept(*space, CONTEXTUNE_FORCE="gemm<64, 64>=9", CONTEXTUNE_DISABLE="1")

    def test_a_pin_that_is_written_as_no_config_ends_the_run_before_the_start(self):
        for wrong in ("large", "-1", "=3", "99999999999"):
            self.assertIn(f'option force: "{wrong}" of "saxpy" is no config',
                          self.refusal("--force", f"saxpy={wrong}"))

    def test_launches_are_pinned_to_a_way_in_which_they_can_go_out(self):
        for way in ("chained", "gathered=8", "chained gathered=16", "as written"):
            self.accept("--force", f"launches={way}")
        self.assertIn('option force: launches are pinned to "as written", or to "chained",',
                      self.refusal("--force", "launches=gathered"))

    def test_a_pin_that_only_the_launch_or_the_gpu_can_judge_is_left_to_the_program(self):
        kernel = ('kernel "saxpy" { space = { block = { %s }, per_sm = {1, 2} }, %s '
                  "apply = function(c, l) l.block.x = c.block end }\n")
        by_device = self.space(kernel % ("device.num_sms", ""), "device.lua")
        self.accept(*by_device, "--force", "saxpy=block=7 per_sm=1")
        prunes = "prune = function(c, l) return c.per_sm == 1 end,"
        by_launch = self.space(kernel % ("64, 128", prunes), "launch.lua")
        self.accept(*by_launch, "--force", "saxpy=block=64")
        self.refusal(*by_launch, "--force", "saxpy=block=7")

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
