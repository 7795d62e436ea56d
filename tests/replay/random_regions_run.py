"""Starts the random regions, bare and under the preloaded shim."""

import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get(
    "CONTEXTUNE_TEST_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
PROGRAM = BUILD / "replay" / "random_regions"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
SPACE = pathlib.Path(__file__).resolve().parent / "random_regions.lua"
PATIENCE = 600

QUICK = {"N_WARMUP": "0", "N_REPEAT": "1", "REFINE": "false", "CONFIRM": "false"}
# How a process is tuned: variables of contextune without their prefix, and of the driver.
SETTINGS = {
    "quick": QUICK,
    "every-stage": {"N_WARMUP": "1", "N_REPEAT": "2", "CONFIRM_MAX_PAIRS": "4"},
    "events": {**QUICK, "TIMER": "events"},
    # Kernels that are in no graph: the driver fails in the middle of one, having run its beginning.
    "launches-fail": {
        **QUICK, "SCHEDULE": "interleaved",
        "SIMCUDA_FAULT": "launch_fail:through:block=64;launch_fail:through_wrong:block=64;"
                         "launch_fail:through_stray:block=64;launch_fail:shuffle:block=1024"},
}


class Runner:
    def __init__(self, jobs):
        self.jobs = jobs
        self.shows_log = False

    def environment(self):
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_", "SIMCUDA_"))
        }
        kept["LD_LIBRARY_PATH"] = str(BUILD / "simcuda")
        kept["CONTEXTUNE_STORE"] = "off"
        return kept

    def execute(self, arguments, environment):
        return subprocess.run([PROGRAM, *map(str, arguments)], env=environment, text=True,
                              capture_output=True, timeout=PATIENCE, check=False)

    def bare(self, first, count):
        return self.execute((first, count), self.environment())

    def tuned(self, first, count, setting, folder, fault=None):
        regions = ";".join(f"nvtx:region{seed}" for seed in range(first, first + count))
        variables = self.environment() | {
            "LD_PRELOAD": str(SHIM),
            "NVTX_INJECTION64_PATH": str(SHIM),
            "CONTEXTUNE_REGION": regions,
            "CONTEXTUNE_SPACE": str(SPACE),
            "CONTEXTUNE_LOG_DIR": str(folder),
            "CONTEXTUNE_MAX_SLOWDOWN": "0",
        }
        for name, value in SETTINGS[setting].items():
            variables[name if name.startswith("SIMCUDA_") else "CONTEXTUNE_" + name] = value
        faulty = ("--fault", fault) if fault else ()
        result = self.execute((*faulty, first, count), variables)
        if self.shows_log:
            sys.stdout.write((pathlib.Path(folder) / "rank-0.log").read_text())
        return result
