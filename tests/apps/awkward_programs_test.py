"""Programs that are awkward to replay compute under the shim what they compute alone, end in the
same way and in time, and the rank log tells what came of the replay."""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get(
    "CONTEXTUNE_TEST_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
PROGRAM = BUILD / "apps" / "awkward_programs"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
SPACE = pathlib.Path(__file__).resolve().parent / "awkward_programs.lua"
PATIENCE = 60
IN_A_REPLAY = "in a replay\n"


@dataclasses.dataclass
class Expected:
    """`told`: what comes of the regions, of each in the order of the log: `R winner`, `R replay 1`
    (the visit), or the reason why not; None: any of that. `interrupted`: what is awkward happens in the middle of a
    replay. `may_win`: the program's end may come before the winner is told, and after it."""

    told: list
    status: int = 0
    interrupted: bool = False
    may_win: bool = False


REPLAYED = ["R winner", "R replay 1"]
# A signal waits for the end of the replay, which comes before that of the tuning then.
CUT_BY_SIGNAL = ["R signal_waits", "R replay 1"]
CUT_SHORT = ["R replay 1"]
# The visit in which something came or went is not repeated; the next one is.
REPLAYED_NEXT = ["R replay_allocation", "R winner", "R replay 2"]

EXPECTED = {
    "value_of_the_host": Expected(["R stream_memory"]),
    "function_of_the_host": Expected(["R host_call"]),
    "allocations_while_the_gpu_waits": Expected(["R stream_memory"]),
    "large_allocation_while_the_gpu_works": Expected(["R stream_memory"]),
    "end_while_the_gpu_is_at_work": Expected(["R not_idle"], status=4),
    # It comes while the region waits for an idle GPU, before memory is looked at.
    "allocation_while_prepared": Expected(REPLAYED),
    # Whether a visit is found in which nothing comes or goes depends on when.
    "memory_freed_while_prepared": Expected(None),
    "allocation_while_recorded": Expected(REPLAYED_NEXT),
    "two_threads_in_a_region": Expected(["R other_thread"]),
    "other_region_while_repeated": Expected(
        [*REPLAYED, "other other_region"], interrupted=True),
    "upload_while_repeated": Expected(REPLAYED, interrupted=True),
    "upload_from_within_the_region": Expected(["R other_thread"]),
    "upload_from_before_the_region": Expected(["R other_thread"]),
    "threads_end_in_regions": Expected(
        ["R thread_ended", "R winner", "R replay 2", "other winner", "other replay 1"]),
    "handler_reads_memory": Expected(CUT_BY_SIGNAL, interrupted=True),
    "handler_of_the_process_reads_memory": Expected(CUT_BY_SIGNAL, interrupted=True),
    "handler_of_a_timer": Expected(
        ["R signal_waits", *(f"R replay {visit}" for visit in range(1, 9))]),
    "ignored_signals": Expected(REPLAYED),
    "handler_exits": Expected(CUT_BY_SIGNAL, status=6, interrupted=True),
    "handler_exits_within_malloc": Expected(REPLAYED, status=6),
    "handler_exits_and_joins": Expected(CUT_BY_SIGNAL, status=6, interrupted=True),
    # The end of the program waits until memory is put back: its own handlers, and the driver's end.
    "other_thread_exits": Expected(CUT_SHORT, status=5, interrupted=True),
    "other_thread_ends_the_driver": Expected(CUT_SHORT, status=5, interrupted=True),
    # With CUPTI in use, whose own end comes before that of the driver.
    "other_thread_ends_cupti": Expected(["R replay 1"], status=5, may_win=True),
    "other_thread_exits_while_cupti_begins": Expected(["R replay 1"], status=5, may_win=True),
    "other_thread_exits_while_cupti_begins_live": Expected(["R stream_memory"], status=5),
    "main_returns_while_cupti_begins": Expected(["R replay 1"], status=5, may_win=True),
    "driver_ends_in_the_region": Expected(["R region_never_left"], status=5),
    "driver_ends_while_repeated": Expected(["R replay_failed"], status=5, interrupted=True),
    "thread_cancelled": Expected(REPLAYED),
    "fork_while_repeated": Expected(REPLAYED, interrupted=True),
    "memory_freed": Expected(REPLAYED_NEXT),
    "module_unloaded": Expected(REPLAYED_NEXT),
    "stream_destroyed": Expected(REPLAYED_NEXT),
    "event_destroyed": Expected(REPLAYED),
    "texture_destroyed": Expected(REPLAYED_NEXT),
    "primary_context_reset": Expected(REPLAYED_NEXT, status=3),
    "primary_context_in_pairs": Expected(REPLAYED),
    "primary_context_released": Expected(REPLAYED_NEXT, status=3),
    "second_context_destroyed": Expected(["R several_devices"], status=3),
    "memory_over_visits": Expected(["R replay_allocation", "R winner", "R replay 6"]),
    "memory_almost_full": Expected(["R replay_allocation"]),
    "many_copies": Expected(REPLAYED),
    "much_memory_of_the_host": Expected(REPLAYED),
    "nested_regions": Expected(["R nested_region", *REPLAYED, "other other_region"]),
    "no_thread_left_while_repeated": Expected(["R not_deterministic"], interrupted=True),
    "memory_that_was_not_seen": Expected(["R unknown_memory"]),
    "memory_given_back_unseen": Expected(["R unknown_memory"]),
    "arithmetic_that_traps": Expected(REPLAYED),
    "flags_of_arithmetic": Expected(REPLAYED),
    "arithmetic_that_rounds_up": Expected(REPLAYED),
}


def environment():
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_", "SIMCUDA_"))
    }
    kept["LD_LIBRARY_PATH"] = str(BUILD / "simcuda")
    kept["SIMCUDA_EXIT"] = "deinitialise"
    kept["CONTEXTUNE_STORE"] = "off"
    return kept


def tuned_environment(folder):
    return environment() | {
        "LD_PRELOAD": str(SHIM),
        "NVTX_INJECTION64_PATH": str(SHIM),
        "CONTEXTUNE_MODE": "replay",
        "CONTEXTUNE_REGION": "nvtx:R;nvtx:other",
        "CONTEXTUNE_SPACE": str(SPACE),
        "CONTEXTUNE_LOG_DIR": folder,
        "CONTEXTUNE_MAX_SLOWDOWN": "0",
        "CONTEXTUNE_N_WARMUP": "0",
        "CONTEXTUNE_N_REPEAT": "1",
        "CONTEXTUNE_REFINE": "false",
        "CONTEXTUNE_CONFIRM": "false",
    }


def execute(name, variables):
    """Status, output and errors; status None: it did not end."""
    process = subprocess.Popen([PROGRAM, name], env=variables, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its children too: they hold the pipes
        return None, *process.communicate()
    return process.returncode, out, err


class ProgramTest(unittest.TestCase):
    """Runs of one program, in a folder of its own."""

    program = PROGRAM

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="contextune-apps-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, variables, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], env=variables, cwd=self.folder,
                              text=True, capture_output=True, timeout=PATIENCE)

    def log(self, folder="."):
        return "".join(file.read_text() for file in (self.folder / folder).glob("rank-*.log"))


def told_by(log):
    """What the log tells of regions; None: they were not seen at all."""
    if "event=region region=R " not in log:
        return None
    told = []
    for line in log.splitlines():
        if replay := re.search(r"event=replay region=(\w+) visit=(\d+)", line):
            told.append(f"{replay[1]} replay {replay[2]}")
        elif winner := re.search(r"event=winner region=(\w+)", line):
            told.append(f"{winner[1]} winner")
        elif fallback := re.search(r"event=fallback reason=(\w+) region=(\w+)", line):
            if fallback[1] != "region_never_entered":
                told.append(f"{fallback[2]} {fallback[1]}")
    return sorted(told, key=lambda one: one.split()[0])


def run(name):
    """How the program alone ended, how it ended under the shim, and what the log tells."""
    with tempfile.TemporaryDirectory(prefix="contextune-awkward-") as folder:
        bare = execute(name, environment())
        tuned = execute(name, tuned_environment(folder))
        log = pathlib.Path(folder) / "rank-0.log"
        return bare, tuned, told_by(log.read_text() if log.exists() else "")


class AwkwardProgramsTest(unittest.TestCase):
    maxDiff = None

    def test_every_program_is_expected_to_do_something(self):
        listed = subprocess.run([PROGRAM, "--list"], env=environment(), text=True,
                                capture_output=True, check=True).stdout
        self.assertEqual(listed.split(), list(EXPECTED))

    def test_the_programs_compute_and_end_as_they_do_alone(self):
        # Some do nothing but wait.
        with concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
            runs = {name: pool.submit(run, name) for name in EXPECTED}
            for name, expected in EXPECTED.items():
                with self.subTest(name):
                    bare, tuned, told = runs[name].result()
                    self.assertEqual((bare[0], bare[2]), (expected.status, ""), bare)
                    errors = IN_A_REPLAY if expected.interrupted else ""
                    self.assertEqual(tuned, (*bare[:2], errors))
                    if expected.may_win and told:
                        told = [one for one in told if one != "R winner"]
                    if expected.told is not None:
                        self.assertEqual(told, expected.told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
