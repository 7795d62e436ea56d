"""What a call of NCCL costs the host under contextune: all_reduces of 4 KiB and more (nccl_calls.cpp), two
ranks, started in four ways in turns:

    bare      as it is
    first     `contextune run --distributed on`, which has never seen the program
    settled   the same, which has seen it in six runs
    off       the same with --no-auto: nothing is looked for

Prints for each way the lower quartile and the median of its processes' medians, and the ratio of the bare one's
lower quartile to its own with the interval of 95 of 100 draws from the same processes. On some hosts half of all
processes take a half longer for a call than the others, whatever they run under: hence the lower quartile."""

import argparse
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile

RUNS_TO_SETTLE = 6
PATIENCE = 60
WAYS = {
    "bare": None,
    "first": ["--store", "off"],
    "settled": [],
    "off": ["--no-auto", "--store", "off"],
}
OF_A_LAUNCHER = ("CONTEXTUNE_", "OMPI_", "SLURM_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LD_PRELOAD")


class Job:
    def __init__(self, asked, folder):
        self.asked = asked
        self.folder = pathlib.Path(folder)
        self.bin = asked.build.resolve() / "bin"
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(OF_A_LAUNCHER)}
        self.variables["CONTEXTUNE_CACHE_DIR"] = str(self.folder / "store")

    def run(self, way):
        """Microseconds of a call, and with the wait, by bytes."""
        own = WAYS[way]
        command = [] if own is None else [
            str(self.bin / "contextune"), "run", "--quiet", "--distributed", "on", "--log-dir",
            str(self.folder / f"logs-{way}"), *own, "--"]
        command += [str(self.bin / "contextune_bench_nccl_calls"), str(self.folder / "meet"), str(self.asked.calls),
                    str(self.asked.most)]
        ranks = [subprocess.Popen(command, text=True, stdout=subprocess.PIPE, start_new_session=True,
                                  env=self.variables | {"RANK": str(rank), "LOCAL_RANK": str(rank),
                                                        "WORLD_SIZE": str(self.asked.ranks)})
                 for rank in range(self.asked.ranks)]
        try:
            printed = [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]
        except subprocess.TimeoutExpired:
            sys.exit(f"{way}: a rank was not done after {PATIENCE} s")
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    os.killpg(rank.pid, signal.SIGKILL)  # the program as well
                    rank.wait()
        ended = [rank.returncode for rank in ranks]
        if any(ended):
            sys.exit(f"{way}: the ranks ended with {ended}")
        return {int(size): (float(call), float(whole)) for size, call, whole in map(str.split, printed[0].splitlines())}

    def state(self):
        """How the latest run that was to be settled ended."""
        log = (self.folder / "logs-settled" / "rank-0.log").read_text()
        found = re.findall(r"event=submission .*?(launches=.* state=\w+)", log)
        return found[-1] if found else "said nothing"


def lower_quartile(values):
    return sorted(values)[len(values) // 4]


def told(bare, own, draw):
    ratios = sorted(lower_quartile(draw.choices(bare, k=len(bare))) / lower_quartile(draw.choices(own, k=len(own)))
                    for _ in range(2000))
    return (f"{lower_quartile(own):6.2f} us, median {statistics.median(own):6.2f}; "
            f"{lower_quartile(bare) / lower_quartile(own):.3f} ({ratios[50]:.3f} to {ratios[-51]:.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--calls", type=int, default=50, help="of each size in a row")
    parser.add_argument("--most", type=int, default=65536, help="bytes")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--simulated", action="store_true", help="the figures are said to be")
    asked = parser.parse_args()
    if min(asked.ranks, asked.calls, asked.turns) < 1 or asked.most < 4096:
        parser.error("--ranks, --calls and --turns are at least 1, --most is at least 4096")
    with tempfile.TemporaryDirectory(prefix="contextune-nccl-calls-") as folder:
        job = Job(asked, folder)
        for run in range(RUNS_TO_SETTLE):
            print(f"run {run + 1} of {RUNS_TO_SETTLE} to settle", file=sys.stderr, flush=True)
            job.run("settled")
        times = {way: [] for way in WAYS}
        for turn in range(asked.turns):
            print(f"turn {turn + 1} of {asked.turns}", file=sys.stderr, flush=True)
            for way in WAYS if turn % 2 == 0 else reversed(WAYS):
                times[way].append(job.run(way))
        print(f"settled: {job.state()}")
    draw = random.Random(1)
    note = ", simulated" if asked.simulated else ""
    for size in times["bare"][0]:
        for what, place in (("a call", 0), ("with the wait", 1)):
            print(f"all_reduce of {size} bytes, {what}{note}")
            of = {way: [one[size][place] for one in runs] for way, runs in times.items()}
            for way in WAYS:
                print(f"  {way:8} {told(of['bare'], of[way], draw)}")


main()
