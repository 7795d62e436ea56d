"""Regions whose memory holds the right result already, bare and tuned, on the simulated driver or a GPU.

Each seed is a program with one marked region of idempotent and accumulating kernels. In most of them a
config does half, nothing, everything twice, or takes what is there for the result, and is the fastest. No
wrong config may be chosen, none stored, and the program must print what it prints alone, in a first run
and in a second one that starts with what the first has stored.

    warm_regions_test.py                 the short run of the test suite
    warm_regions_test.py --count 1000    the long one
    warm_regions_test.py --seed 17       one seed again, with its log
    warm_regions_test.py --gpu           on the GPU that there is

CONTEXTUNE_TEST_BUILD names the build folder (default: build/release)."""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get(
    "CONTEXTUNE_TEST_BUILD", pathlib.Path(__file__).resolve().parents[3] / "build" / "release"))
FOLDER = BUILD / "replay" / "warm"
PROGRAM = FOLDER / "warm_regions"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
SPACE = pathlib.Path(__file__).resolve().parent / "warm_regions.lua"
PATIENCE = 600
FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')
WRONG_TWICE = {"add", "hop"}


def is_wrong(kernel):
    family, flavour = kernel.split("_")
    return flavour in ("half", "nothing", "stale") or (flavour == "twice" and family in WRONG_TWICE)


class Runner:
    def __init__(self, on_gpu, shows_log):
        self.on_gpu, self.shows_log = on_gpu, shows_log

    def run(self, first, count, variables=()):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_", "SIMCUDA_"))}
        if not self.on_gpu:
            environment["LD_LIBRARY_PATH"] = str(BUILD / "simcuda")
        return subprocess.run([PROGRAM, FOLDER, str(first), str(count)], text=True, check=False,
                              env=environment | dict(variables), capture_output=True, timeout=PATIENCE)

    def tuned(self, first, count, work):
        regions = ";".join(f"nvtx:warm{seed}" for seed in range(first, first + count))
        return self.run(first, count, {
            "LD_PRELOAD": str(SHIM), "NVTX_INJECTION64_PATH": str(SHIM), "CONTEXTUNE_REGION": regions,
            "CONTEXTUNE_SPACE": str(SPACE), "CONTEXTUNE_LOG_DIR": f"{work}/logs",
            "CONTEXTUNE_CACHE_DIR": f"{work}/store", "CONTEXTUNE_MAX_SLOWDOWN": "0",
            "CONTEXTUNE_N_WARMUP": "0", "CONTEXTUNE_N_REPEAT": "1", "CONTEXTUNE_REFINE": "false",
            "CONTEXTUNE_CONFIRM": "false", "CONTEXTUNE_MARGIN": "0"})


def winners(log):
    """Region, kernel and block of each winner in a rank log."""
    for line in log.read_text().splitlines():
        fields = {name: value.strip('"') for name, value in FIELD.findall(line)}
        if fields.get("event") == "winner" and fields.get("block"):
            yield fields["region"], fields["site"], fields["block"]


def stored(store):
    for path in pathlib.Path(store).glob("*/*.json"):
        entry = json.loads(path.read_text())
        for site in entry["sites"]:
            yield entry["name"], site["name"], str(site["winner"].get("block", ""))


def run_batch(runner, first, count):
    failures, outcomes = [], collections.Counter()
    with tempfile.TemporaryDirectory(prefix="contextune-warm-") as work:
        bare = runner.run(first, count)
        if bare.returncode != 0 or bare.stderr:
            return [f"bare: status {bare.returncode}: {bare.stdout[-200:]}{bare.stderr}"], outcomes
        for run in "first", "second":
            tuned = runner.tuned(first, count, work)
            log = pathlib.Path(work) / "logs" / "rank-0.log"
            if runner.shows_log:
                sys.stdout.write(tuned.stdout + log.read_text())
            if tuned.returncode != 0 or tuned.stderr:
                failures.append(f"{run} run from seed {first}: status {tuned.returncode}: {tuned.stderr}")
            pairs = zip(bare.stdout.splitlines(), tuned.stdout.splitlines())
            failures += [f"{run} run computes something else:\n  {a}\n  {b}" for a, b in pairs if a != b]
            found = set(winners(log)) if log.exists() else set()
            for where, what in (("won", found), ("is stored", set(stored(f"{work}/store")))):
                failures += [f"{run} run: a wrong config of {kernel} in {region} {where}"
                             for region, kernel, block in what if block == "96" and is_wrong(kernel)]
            text = log.read_text() if log.exists() else ""
            for line in text.splitlines():
                if "event=fallback" in line and "site=" in line:
                    outcomes[f"{run} run: " + re.search("reason=([a-z_]+)", line)[1]] += 1
            outcomes[f"{run} run: right winners other than the default"] += len(found)
    return failures, outcomes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1, help="first seed (1)")
    parser.add_argument("--count", type=int, default=200, help="how many seeds (200)")
    parser.add_argument("--batch", type=int, default=25, help="seeds in one process (25)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--seed", type=int, help="this seed alone, with its log")
    parser.add_argument("--gpu", action="store_true", help="with the driver of this machine")
    arguments = parser.parse_args()
    runner = Runner(arguments.gpu, arguments.seed is not None)
    first, count = (arguments.first, arguments.count) if arguments.seed is None else (arguments.seed, 1)
    failures, outcomes = [], collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = [pool.submit(run_batch, runner, at, min(arguments.batch, first + count - at))
                 for at in range(first, first + count, arguments.batch)]
        for task in tasks:
            found, seen = task.result()
            failures += found
            outcomes += seen
    for failure in failures:
        print(failure)
    for outcome, number in sorted(outcomes.items()):
        print(f"{number:6}  {outcome}")
    print(f"{count} regions, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
