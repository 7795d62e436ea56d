"""The program's input, output and environment are its own."""

import os
import subprocess
import sys
import unittest

from harness import CommandTest, WRITES_LOG, golden_log

SANITIZED = os.environ.get("CONTEXTUNE_SANITIZED")


class Streams(CommandTest):
    def test_redirected_output_is_byte_identical(self):
        program = ["sh", "-c", "printf 'a\\0b\\n'; printf 'c\\033[1md' >&2; cat; exit 3"]
        options = dict(input=b"\x00\x01in\xff", capture_output=True, cwd=self.work, timeout=20)
        bare = subprocess.run(program, env=self.environment, **options)
        tuned = subprocess.run(self.argv("run", "--quiet", "--", *program), env=self.environment,
                               **options)
        self.assertEqual((bare.returncode, bare.stdout, bare.stderr),
                         (tuned.returncode, tuned.stdout, tuned.stderr))

    def test_a_tuned_program_s_redirected_output_is_byte_identical(self):
        program = self.script("writes_log.py", WRITES_LOG)
        for quiet, variables in ((["--quiet"], {}), ([], {"CONTEXTUNE_QUIET": "1"}),
                                 (["--report", "report.txt"], {})):
            result = self.run_program(*program, input=golden_log(), flags=quiet,
                                      env=self.environment | variables)
            self.assertEqual((result.stdout, result.stderr), ("done\n", ""))

    def test_a_log_that_cannot_be_written_leaves_the_output_alone(self):
        logs = self.work / ".autotune_logs"
        logs.mkdir()
        (logs / "rank-0.log").mkdir()
        result = self.run_program("echo", "hello", flags=["--quiet"])
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "hello\n", ""))

    def test_a_standard_error_that_nobody_reads_is_waited_for_once(self):
        """Whatever is to be said: here of twelve processes."""
        program = """
            mkdir -p $CONTEXTUNE_LOG_DIR
            for pid in 1 2 3 4 5 6 7 8 9 10 11 12; do
                echo 2026-11-20T20:33:53.120Z run=$CONTEXTUNE_RUN_ID pid=$pid rank=0 level=info event=start
            done >$CONTEXTUNE_LOG_DIR/rank-0.log
            echo done"""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        try:
            while os.write(write_end, b"x" * 4096):
                pass
        except BlockingIOError:
            os.set_blocking(write_end, True)
        result = self.run_program("sh", "-c", program, capture_output=False, stdout=subprocess.PIPE,
                                  stderr=write_end)
        self.assertEqual((result.returncode, result.stdout), (0, "done\n"))
        os.close(read_end)
        result = self.run_program("sh", "-c", "exit 3", capture_output=False, stderr=write_end)
        self.assertEqual(result.returncode, 3)
        os.close(write_end)

    def test_standard_input_reaches_the_program(self):
        result = self.run_program("wc", "-c", input="x" * 1000000)
        self.assertEqual(result.stdout.strip(), "1000000")

    def test_the_reader_sees_the_end_when_the_program_closes_its_output(self):
        program = "exec 1>&-; exec sleep 60"
        process = subprocess.Popen(self.argv("run", "--", "sh", "-c", program), cwd=self.work,
                                   env=self.environment, stdout=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.assertEqual(process.stdout.read(), b"")
        process.stdout.close()
        self.assertIsNone(process.poll())
        process.kill()

    def test_further_descriptors_are_passed_and_not_held(self):
        read_end, write_end = os.pipe()
        process = subprocess.Popen(
            self.argv("run", "--", "sh", "-c", f"echo hi >&{write_end}; exec {write_end}>&-; exec sleep 60"),
            cwd=self.work, env=self.environment, pass_fds=[write_end])
        self.addCleanup(process.wait)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as stream:
            self.assertEqual(stream.read(), b"hi\n")
        self.assertIsNone(process.poll())
        process.kill()

    def test_the_program_has_no_descriptor_of_ours(self):
        show = ["sh", "-c", "ls /proc/self/fd"]
        bare = subprocess.run(show, capture_output=True, text=True, env=self.environment).stdout
        self.assertEqual(self.run_program(*show, flags=["--report", "r.txt"]).stdout, bare)

    def test_arguments_come_through_as_they_are(self):
        arguments = ["a b", "", "--auto", "--", "*", "\\n", "\u00e9"]
        show = "import sys; print(sys.argv[1:])"
        result = self.run_program(sys.executable, "-c", show, *arguments)
        self.assertEqual(result.stdout, f"{arguments}\n")


class Variables(CommandTest):
    def variables(self, *flags, **changes):
        show = "import os\nfor n, v in sorted(os.environ.items()): print(f'{n}={v}')"
        result = self.contextune("run", *flags, "--", sys.executable, "-c", show,
                                 env=self.environment | changes)
        self.assertEqual(result.returncode, 0, result.stderr)
        return dict(line.split("=", 1) for line in result.stdout.splitlines())

    def test_ours_is_loaded_into_the_program_and_its_children(self):
        notes = self.work / "notes"
        self.run_program("sh", "-c", "sh -c :; :", env=self.environment | {"FAKE_PRELOAD_NOTES": str(notes)})
        self.assertEqual(len(set(notes.read_text().split())), 2)

    def test_ours_comes_behind_what_the_user_preloads(self):
        users = self.folder / "users.so"
        users.write_bytes(self.preload.read_bytes())
        seen = self.variables(LD_PRELOAD=str(users))
        self.assertEqual(seen["LD_PRELOAD"], f"{users}:{self.preload}")
        self.assertEqual(self.variables()["LD_PRELOAD"], str(self.preload))

    def test_a_program_with_a_sanitizer_starts(self):
        if not SANITIZED:
            self.skipTest("another compiler than GCC")
        self.assertEqual(self.run_program(SANITIZED).returncode, 6)
        for own, seen in (({}, "verify_asan_link_order=0"),
                          ({"ASAN_OPTIONS": "detect_leaks=0"}, "detect_leaks=0:verify_asan_link_order=0"),
                          ({"ASAN_OPTIONS": "verify_asan_link_order=1"}, "verify_asan_link_order=1")):
            self.assertEqual(self.variables(**own)["ASAN_OPTIONS"], seen)

    def test_a_run_inside_of_a_run_preloads_once(self):
        seen = self.variables(LD_PRELOAD=str(self.preload), NVTX_INJECTION64_PATH=str(self.preload))
        self.assertEqual(seen["LD_PRELOAD"], str(self.preload))
        self.assertNotIn("CONTEXTUNE_NVTX_CHAIN", seen)

    def test_an_injector_of_the_user_is_chained(self):
        seen = self.variables(NVTX_INJECTION64_PATH="/opt/tool/libinjector.so")
        self.assertEqual(seen["NVTX_INJECTION64_PATH"], str(self.preload))
        self.assertEqual(seen["CONTEXTUNE_NVTX_CHAIN"], "/opt/tool/libinjector.so")
        self.assertNotIn("CONTEXTUNE_NVTX_CHAIN", self.variables())

    def test_a_flag_goes_before_its_variable(self):
        seen = self.variables("--n-repeat=7", "--region", "nvtx:a", "--region", "profiler",
                              CONTEXTUNE_N_REPEAT="2", CONTEXTUNE_N_WARMUP="1")
        self.assertEqual(seen["CONTEXTUNE_N_REPEAT"], "7")
        self.assertEqual(seen["CONTEXTUNE_N_WARMUP"], "1")
        self.assertEqual(seen["CONTEXTUNE_REGION"], "nvtx:a;profiler")
        self.assertNotIn("CONTEXTUNE_N_REPEAT", self.variables())

    def test_switches_can_be_turned_on_and_off(self):
        self.assertEqual(self.variables("--auto")["CONTEXTUNE_AUTO"],
                         "chained,gathered,collectives,attributes")
        for flags in (["--auto=chained"], ["--auto", "chained"], ["--auto", "--auto", "chained"]):
            self.assertEqual(self.variables(*flags)["CONTEXTUNE_AUTO"], "chained", flags)
        for flags in (["--no-auto"], ["--auto=off"], ["--auto", "none"]):
            self.assertEqual(self.variables(*flags)["CONTEXTUNE_AUTO"], "off", flags)
        self.assertEqual(self.variables("--no-confirm")["CONTEXTUNE_CONFIRM"], "off")
        self.assertEqual(self.variables("--refine=off")["CONTEXTUNE_REFINE"], "off")
        self.assertEqual(self.variables("--confirm", CONTEXTUNE_CONFIRM="0")["CONTEXTUNE_CONFIRM"], "on")

    def test_folders_and_files_do_not_move_with_the_program(self):
        for name in ("a.lua", "b.lua"):
            (self.work / name).write_text("")
        seen = self.variables("--space", "a.lua", "--space", self.work / "b.lua", "--cache-dir", "cache")
        self.assertEqual(seen["CONTEXTUNE_CACHE_DIR"], str(self.work / "cache"))
        self.assertNotIn("CONTEXTUNE_CACHE_DIR", self.variables())
        self.assertEqual(seen["CONTEXTUNE_LOG_DIR"], str(self.work / ".autotune_logs"))
        self.assertEqual(seen["CONTEXTUNE_SPACE"], f"{self.work / 'a.lua'}:{self.work / 'b.lua'}")

    def test_an_empty_log_folder_is_the_default(self):
        for environment in ({}, {"CONTEXTUNE_LOG_DIR": "elsewhere"}):
            seen = self.variables("--log-dir", "", **environment)
            self.assertEqual(seen["CONTEXTUNE_LOG_DIR"], str(self.work / ".autotune_logs"))

    def test_each_run_has_an_id_and_the_report_is_not_inherited(self):
        first, second = (self.variables("--report", "r.txt") for _ in range(2))
        self.assertNotEqual(first["CONTEXTUNE_RUN_ID"], second["CONTEXTUNE_RUN_ID"])
        self.assertNotIn("CONTEXTUNE_REPORT", first)

    def test_a_library_that_ld_preload_cannot_name_is_refused(self):
        moved = self.folder / "with blank"
        moved.mkdir()
        for part in ("bin", "lib"):
            (self.folder / part).rename(moved / part)
        self.command = moved / "bin" / "contextune"
        result = self.run_program("true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("blank or a colon", result.stderr)


if __name__ == "__main__":
    unittest.main()
