"""What goes wrong around a tuned program never reaches the program: each test runs an unmodified
program bare and under the real shim, and compares output and status.

On the simulated driver by default; with CONTEXTUNE_TEST_GPU=1 on this machine's GPU."""

import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"]).resolve()
ON_GPU = os.environ.get("CONTEXTUNE_TEST_GPU") == "1"
DEMO = BUILD / "demo" / "contextune_demo"
KERNELS = BUILD / "demo" / "demo_kernels.fatbin"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
ENDS = BUILD / "apps" / "ends_in_region"
PATIENCE = 120
# One visit is enough to tune the region, and some more to run with the winners.
SMALL_DEMO = (DEMO, "--rows", "16")
SHORT_DEMO = (*SMALL_DEMO, "--steps", "10")
QUICK = ("--n-warmup", "0", "--n-repeat", "1", "--no-refine", "--no-confirm")


def environment(driver=True):
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_"))
    }
    kept["CONTEXTUNE_STORE"] = "off"
    if driver and not ON_GPU:
        kept["LD_LIBRARY_PATH"] = str(BUILD / "simcuda")
    return kept


class BadInputTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-apps-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.logs = self.folder / "logs"
        self.report = self.folder / "report"

    def start(self, argv, variables):
        return subprocess.Popen(
            list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder, env=variables)

    def execute(self, argv, variables):
        process = self.start(argv, variables)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def under(self, program, flags=(), region="nvtx:decode"):
        space = () if any(str(flag) == "--space" for flag in flags) else (
            "--space", DEMO.parent / "demo.lua")
        return [BUILD / "bin" / "contextune", "run", "--region", region, "--log-dir", self.logs,
                "--report", self.report, *space, *flags, "--", *program]

    def unchanged(self, program=SHORT_DEMO, flags=(), variables=None,
                  region="nvtx:decode"):
        """Runs the program bare and under contextune; the log of the latter."""
        variables = variables or environment()
        bare = self.execute(program, variables)
        self.assertEqual(self.execute(self.under(program, (*QUICK, *flags), region), variables), bare)
        return self.log()

    def unchanged_when_preloaded(self, space=None, **more):
        """The same without `contextune run`, which looks at what it is given before it starts
        anything."""
        variables = environment()
        preloaded = variables | {
            "LD_PRELOAD": str(SHIM), "NVTX_INJECTION64_PATH": str(SHIM),
            "CONTEXTUNE_REGION": "nvtx:decode", "CONTEXTUNE_LOG_DIR": str(self.logs),
            "CONTEXTUNE_SPACE": str(space or DEMO.parent / "demo.lua"), "CONTEXTUNE_N_WARMUP": "0",
            "CONTEXTUNE_N_REPEAT": "1", "CONTEXTUNE_REFINE": "off", "CONTEXTUNE_CONFIRM": "off"} | more
        self.assertEqual(self.execute(SHORT_DEMO, preloaded), self.execute(SHORT_DEMO, variables))
        return self.log()

    def log(self):
        return "".join(file.read_text() for file in sorted(self.logs.glob("rank-*.log")))

    def space(self, text):
        file = self.folder / "space.lua"
        file.write_text(text)
        return ("--space", file)

    @unittest.skipIf(ON_GPU, "there is a driver")
    def test_without_a_driver(self):
        program = ("/bin/sh", "-c", "echo out; echo err >&2; exit 3")
        log = self.unchanged(program, variables=environment(driver=False))
        self.assertIn("reason=nothing_seen", log)
        self.assertIn("nothing was tuned", self.report.read_text())

    @unittest.skipIf(ON_GPU, "CUPTI would be found in the toolkit")
    def test_without_cupti(self):
        alone = self.folder / "driver"
        alone.mkdir()
        for file in (BUILD / "simcuda").glob("libcuda*"):
            shutil.copy(file, alone / file.name, follow_symlinks=False)
        variables = environment()
        variables["LD_LIBRARY_PATH"] = str(alone)
        variables["CUDA_HOME"] = variables["CUDA_PATH"] = str(self.folder)
        log = self.unchanged(variables=variables)
        self.assertRegex(log, "reason=(no_cupti|no_samples)")

    def test_a_log_folder_that_cannot_be_written(self):
        self.logs = pathlib.Path("/proc/nowhere")
        self.unchanged_when_preloaded()

    def test_a_disk_that_is_full(self):
        self.logs.mkdir()
        variables = environment()
        bare = self.execute(SHORT_DEMO, variables)
        # A pipe that nobody reads takes as little as a full disk, and needs no mount.
        os.mkfifo(self.logs / "rank-0.log")
        pipe = os.open(self.logs / "rank-0.log", os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, pipe)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(pipe, bytes(4096))
        self.assertEqual(self.execute(self.under(SHORT_DEMO, QUICK), variables), bare)
        self.assertIn("Resource temporarily unavailable", self.report.read_text())

    def test_a_log_that_another_user_has_led_elsewhere(self):
        self.logs.mkdir()
        precious = self.folder / "precious"
        precious.write_text("a line of the user's\n")
        (self.logs / "rank-0.log").symlink_to(precious)
        variables = environment()
        bare = self.execute(SHORT_DEMO, variables)
        self.assertEqual(self.execute(self.under(SHORT_DEMO, QUICK), variables), bare)
        self.assertEqual(precious.read_text(), "a line of the user's\n")
        self.assertEqual(self.report.read_text().count("a link stands in its way"), 1)

    def test_a_space_file_that_is_missing(self):
        log = self.unchanged_when_preloaded(self.folder / "nowhere.lua")
        self.assertIn("reason=space_file", log)
        self.assertIn("nowhere.lua", log)

    def test_a_space_file_that_is_a_pipe_or_has_no_end(self):
        os.mkfifo(self.folder / "pipe.lua")
        for path in (self.folder / "pipe.lua", "/dev/zero"):
            with self.subTest(path=path):
                log = self.unchanged_when_preloaded(path)
                self.assertIn(f"{path}: is not a regular file", log)
                self.assertIn("reason=space_file", log)

    def test_a_module_or_source_that_is_a_pipe_or_has_no_end(self):
        os.mkfifo(self.folder / "pipe")
        for kind, path in itertools.product(("module", "source"), ("pipe", "/dev/zero")):
            with self.subTest(kind=kind, path=path):
                shutil.rmtree(self.logs, ignore_errors=True)
                file = self.folder / "space.lua"
                file.write_text(
                    'kernel "attend" {\n  space = { block = {64, 128} },\n'
                    "  apply = function(config, launch)\n    launch.block.x = config.block\n"
                    f'    launch.{kind} = "{path}"\n  end,\n}}\n')
                log = self.unchanged_when_preloaded(file)
                self.assertRegex(log, f"reason=rule_error .*launch.{kind} = .*there is no file")

    def test_a_space_file_that_is_broken(self):
        log = self.unchanged_when_preloaded(self.space('kernel "attend" {\n  apply = \n}\n')[1])
        self.assertIn("reason=space_file", log)
        self.assertIn("space.lua:3:", log)

    def test_an_endless_loop_while_the_space_file_is_read(self):
        log = self.unchanged_when_preloaded(self.space("while true do end\n")[1])
        self.assertIn("space.lua:1:", log)

    def test_an_endless_loop_in_a_rule(self):
        log = self.unchanged(flags=self.space(
            'kernel "attend" {\n  space = { block = {128, 512} },\n'
            "  apply = function(config, launch)\n    while true do end\n  end,\n}\n"))
        self.assertIn("reason=rule_error", log)
        self.assertIn("space.lua:4:", log)

    def test_one_config_that_no_device_could_launch_costs_that_config(self):
        log = self.unchanged(flags=self.space(
            'kernel "attend" {\n  space = { block = {128, 2048, 512} },\n'
            "  apply = function(config, launch) launch.block.x = config.block end,\n}\n"))
        self.assertRegex(log, r"reason=build_failed .*Config \d \(block=2048\): .*space.lua:3: ")
        self.assertNotIn("reason=rule_error", log)
        for block in 128, 512:
            self.assertRegex(log, f"event=trial .*site=attend.* block={block}")

    def test_a_config_that_cannot_be_launched(self):
        log = self.unchanged(flags=self.space(
            'kernel "attend" {\n  space = { cluster = {1, 2, 16} },\n'
            "  apply = function(config, launch) launch.cluster.x = config.cluster end,\n}\n"))
        self.assertRegex(log, "reason=(launch_failed|build_failed)")
        self.assertIn("cluster=16", log)
        self.assertNotRegex(log, "event=winner .*cluster=16")

    def test_a_region_that_is_never_entered(self):
        log = self.unchanged(region="nvtx:nowhere")
        self.assertIn("reason=region_never_entered", log)
        self.assertIn("nowhere", self.report.read_text())

    def test_few_descriptors_and_closed_output(self):
        program = ("/bin/sh", "-c", f"ulimit -n 256; exec '{DEMO}' --rows 64 --steps 10 >&-")
        log = self.unchanged(program)
        self.assertIn("event=trial", log)
        self.assertNotIn("checksum", log)

    def test_a_report_that_nobody_reads(self):
        os.mkfifo(self.report)
        reader = subprocess.Popen(["head", "-c", "10", self.report], stdout=subprocess.DEVNULL)
        self.addCleanup(reader.wait)
        log = self.unchanged()
        self.assertIn("event=trial", log)

    def test_switches_are_taken_at_their_word(self):
        for word, tuned in (("off", True), ("no", True), ("on", False)):
            with self.subTest(word):
                shutil.rmtree(self.logs, ignore_errors=True)
                variables = environment()
                variables["CONTEXTUNE_DISABLE"] = word
                log = self.unchanged(variables=variables)
                self.assertEqual("event=trial" in log, tuned)
        log = self.unchanged_when_preloaded(CONTEXTUNE_DISABLE="maybe")
        self.assertIn("event=trial", log)
        self.assertIn("CONTEXTUNE_DISABLE=maybe", log)

    def test_signals_in_the_middle_of_the_tuning(self):
        for mode, number in (("live", signal.SIGTERM), ("live", signal.SIGKILL),
                             ("replay", signal.SIGTERM), ("replay", signal.SIGKILL)):
            with self.subTest(mode=mode, signal=number.name):
                shutil.rmtree(self.logs, ignore_errors=True)
                program = (*SMALL_DEMO, "--steps", "10000000")
                process = self.start(self.under(program, ("--mode", mode)), environment())
                end = time.monotonic() + PATIENCE
                while "event=trial" not in self.log() and time.monotonic() < end:
                    time.sleep(0.01)
                # The program, not `contextune`: it is the only one that maps the driver's kernels.
                children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
                demos = [int(child) for child in children.read_text().split()
                         if os.readlink(f"/proc/{child}/exe") == str(DEMO)]
                for demo in demos:  # what else there is ends with it
                    os.kill(demo, number)
                process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, -number)
                self.assertIn("event=trial", self.log())

    def test_the_ways_to_end_inside_a_region(self):
        space = self.space(
            'kernel "remember" {\n  space = { block = {64, 128, 512}, grid = {32, 128} },\n'
            "  apply = function(config, launch)\n    launch.block.x = config.block\n"
            "    launch.grid.x = config.grid\n  end,\n}\n")
        for how in ("end", "exit", "_exit", "quick_exit", "thread", "abort", "uncaught", "caught",
                    "sigterm", "sigkill"):
            with self.subTest(how):
                shutil.rmtree(self.logs, ignore_errors=True)
                log = self.unchanged((ENDS, KERNELS, how, 20), (*space, "--mode", "live"),
                                     region="nvtx:step")
                # Who ends at once may lose the lines of the last moment.
                self.assertIn("event=trial" if how in ("end", "exit", "thread", "caught")
                              else "event=start", log)
                self.assertNotIn("event=replay", log)
            # In the middle of the visit that is recorded, or of one after the replay.
            for visit in (0, 20) if how in ("exit", "caught") else (0,):
                with self.subTest(how, visit=visit):
                    shutil.rmtree(self.logs, ignore_errors=True)
                    log = self.unchanged((ENDS, KERNELS, how, visit), space, region="nvtx:step")
                    replayed = how == "end" or visit > 0
                    self.assertEqual("event=trial" in log, replayed)
                    self.assertEqual("event=replay" in log, replayed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
