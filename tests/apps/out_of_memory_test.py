"""A program that the kernel ends for want of memory while a config is in flight: that is nobody's
fault, whoever has started it. Needs a control group of its own; else the test is skipped."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from stored_runs import DEMO, PATIENCE, Log, StoredRuns

ROOM = 16 << 20  # more than the group has in use
HOG = f"import mmap\nm = mmap.mmap(-1, {8 * ROOM})\nfor i in range(0, len(m), 4096): m[i] = 1\n"
SKIPPED = 4  # as CMakeLists.txt knows it

PROGRAM = (DEMO, "--steps", "20")
# In flight until the program is ended.
STUCK = {"SIMCUDA_FAULT": "hang:rotate:block=1024"}


class MemoryGroup:
    """A control group of version 2, or of version 1 for memory. OSError: none can be made here."""

    def __init__(self):
        name = f"contextune-{os.getpid()}"
        mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
        errors = []
        for _, place, kind, options, *_ in mounts:
            if kind != "cgroup2" and not (kind == "cgroup" and "memory" in options.split(",")):
                continue
            own = next((line.split(":", 2)[2] for line in
                        pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                        if (line.startswith("0::") if kind == "cgroup2" else
                            "memory" in line.split(":")[1].split(","))), "/")
            self.path = pathlib.Path(place) / own.lstrip("/") / name
            self.limit, self.usage = (
                ("memory.max", "memory.current") if kind == "cgroup2" else
                ("memory.limit_in_bytes", "memory.usage_in_bytes"))
            try:
                self.path.mkdir()
                if (self.path / self.limit).exists():
                    return
                errors.append(f"{self.path} has no {self.limit}")
                self.path.rmdir()
            except OSError as error:
                errors.append(str(error))
        raise OSError("; ".join(errors) or "no control groups are mounted")

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def end_by_want_of_memory(self, pid):
        """The kernel's own choice among those in the group, once one of them takes too much."""
        pathlib.Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
        usage = int((self.path / self.usage).read_text())
        (self.path / self.limit).write_text(str(usage + ROOM))
        swap = self.path / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")
        hog = subprocess.Popen([sys.executable, "-c", HOG], preexec_fn=self.enter,
                               stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and hog.poll() is None and state_of(pid) not in ("", "Z"):
            time.sleep(0.01)
        (self.path / self.limit).write_text("max" if self.limit == "memory.max" else "-1")
        hog.kill()
        hog.wait()

    def remove(self):
        deadline = time.monotonic() + 10
        while self.path.exists() and time.monotonic() < deadline:
            try:
                self.path.rmdir()
            except OSError:
                time.sleep(0.05)  # somebody is on the way out


def text_of(path):
    """Nothing where it is gone again."""
    try:
        return path.read_text()
    except OSError:
        return ""


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


class OutOfMemoryTest(StoredRuns):
    def setUp(self):
        super().setUp()
        try:
            self.group = MemoryGroup()
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")
        self.addCleanup(self.group.remove)
        self.space = self.work / "one.lua"  # one config, which is always alone in flight
        self.space.write_text('kernel "rotate" { space = { block = {1024} }, apply = function(c, launch)'
                              " launch.block.x = c.block end }\n")

    def start_in_group(self, command, variables):
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.work, env=self.environment | variables, start_new_session=True,
            preexec_fn=self.group.enter)
        self.addCleanup(self.kill, process)
        return process

    def end_in_trial(self, process):
        """Ends the program for want of memory while its config is in flight."""
        journal = self.work / "store" / "journal"
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            for path in journal.glob("*.trying"):
                pid = int(path.name.split("-")[0])
                if state_of(pid) in ("", "Z") or "site rotate" not in text_of(path):
                    continue
                os.kill(pid, signal.SIGSTOP)
                if "site rotate" in text_of(path):
                    self.group.end_by_want_of_memory(pid)
                    if state_of(pid) not in ("", "Z"):
                        self.skipTest("the kernel found memory elsewhere (swap), and ended nobody")
                    return self.end(process)[0]
                os.kill(pid, signal.SIGCONT)
        self.fail("the config was never in flight")

    def assert_nobody_is_blamed(self, log):
        self.assertEqual(log.of("fallback", reason="config_crashed"), [])
        self.assertNotEqual(log.of("winner", site="rotate"), [])
        self.assertNotIn("rotate", self.known())

    def test_under_contextune_run_nobody_is_suspected(self):
        for _ in range(2):
            command = self.command(program=PROGRAM, space=self.space)
            status = self.end_in_trial(self.start_in_group(command, STUCK))
            self.assertIn(status, (-signal.SIGKILL, 128 + signal.SIGKILL))
            self.assertNotIn("rotate", self.known())
        log, _ = self.run_program(program=PROGRAM, space=self.space)
        self.assert_nobody_is_blamed(log)

    def test_without_it_a_suspect_is_tried_again_and_cleared(self):
        logs = self.work / "bare-logs"
        variables = self.preloaded(
            self.space, logs, CONTEXTUNE_N_WARMUP="0", CONTEXTUNE_N_REPEAT="2",
            CONTEXTUNE_REFINE="off", CONTEXTUNE_MODE="replay")
        for _ in range(2):
            self.assertEqual(self.end_in_trial(self.start_in_group(PROGRAM, variables | STUCK)),
                             -signal.SIGKILL)
        status, out, errors = self.end(self.start_in_group(PROGRAM, variables))
        self.assertEqual((status, out), (0, self.bare(PROGRAM)), errors)
        self.assert_nobody_is_blamed(Log(logs))


if __name__ == "__main__":
    ended = unittest.main(exit=False).result
    if ended.wasSuccessful() and ended.skipped:
        print("skipped:", ended.skipped[0][1])
        sys.exit(SKIPPED)
    sys.exit(not ended.wasSuccessful())
