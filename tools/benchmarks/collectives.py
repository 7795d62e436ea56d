"""Compares NCCL's own choices, the best of all that it can be told by hand, and what contextune finds
while the program runs: AllReduce, AllGather and ReduceScatter by size, one process a GPU.

Once by hand, then without, with, and again without contextune in turns; what the two without it differ
by is what runs differ by on that machine. Ratios are of speed: above 1 is faster. fastest/fastest
compares the fastest of all runs without it with the fastest with it: what is left where a machine is
now fast and now slow. The rank logs and what the programs printed stay in --keep. Other options go to `contextune run`."""

import argparse
import datetime
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

FUNCTIONS = ("all_reduce", "all_gather", "reduce_scatter")
OF_A_LAUNCHER = ("CONTEXTUNE_", "OMPI_", "SLURM_", "RANK", "WORLD_SIZE", "LOCAL_RANK")
TIME = r"([\d.]+) us \(([\d.]+) to ([\d.]+)\)"
RUN_LINE = re.compile(rf"(\S+): {TIME}, [\d.]+ s, (PASS|MISMATCH.*)")
HAND_LINE = re.compile(rf"(\S+): default {TIME} (\S+), best {TIME} (\S+), "
                       r"gain ([\d.]+) \(([\d.]+) to ([\d.]+)\), (\d+) configs, [\d.]+ s, "
                       r"(PASS|MISMATCH.*)")
# What is asked of the tuning.
LEAST_OF_HAND = 0.97
LEAST_OF_DEFAULT = 0.99


class Failed(Exception):
    pass


def progress(text):
    print(f"[{datetime.datetime.now():%H:%M:%S}] {text}", file=sys.stderr, flush=True)


def bytes_of(size):
    return int(size.rstrip("KM")) << {"K": 10, "M": 20}.get(size[-1], 0)


def size_of(number):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if number % (1 << shift) == 0:
            return f"{number >> shift} {unit}"
    return f"{number} B"


class Job:
    """The program's ranks, several times."""

    def __init__(self, options, passed_on):
        self.options = options
        self.passed_on = passed_on
        self.bin = pathlib.Path(options.build) / "bin"
        self.keep = pathlib.Path(options.keep)
        self.keep.mkdir(parents=True, exist_ok=True)
        self.deadline = time.monotonic() + options.limit
        self.problems = [f"{function}-{bytes_of(size)}" for function in FUNCTIONS
                         for size in options.sizes.split(",")]
        self.head = ""

    def program(self, *arguments):
        return [str(self.bin / "contextune_bench_collectives"), "--sizes", self.options.sizes,
                "--type", "float32" if self.options.float else "int32",
                "--rounds", str(self.options.rounds), "--block-us", str(self.options.block_us),
                "--meet", f"/tmp/contextune-collectives.{os.getpid()}",
                *self.given("--cpus-per-rank", self.options.cpus_per_rank), *arguments]

    @staticmethod
    def given(flag, number):
        """The program takes no 0: it is what is there without the flag."""
        return [flag, str(number)] if number else []

    def environment(self):
        return {name: value for name, value in os.environ.items()
                if not name.startswith(OF_A_LAUNCHER)}

    def by_hand(self):
        return self.as_it_is("by-hand", "--mode", "by-hand")

    def as_it_is(self, name, *arguments):
        command = self.program(*arguments)
        ranks = [(command, {"RANK": str(rank), "WORLD_SIZE": str(self.options.ranks),
                            "LOCAL_RANK": str(rank)}) for rank in range(self.options.ranks)]
        return self.lines_of(name, ranks)

    def tuned(self, name):
        folder = self.keep / name
        command = [str(self.bin / "contextune"), "run", "-n", str(self.options.ranks),
                   "--kill-on-failure", "--auto", "--mode", "live",
                   "--region", ";".join(f"nvtx:{problem}" for problem in self.problems),
                   "--log-dir", str(folder), "--report", str(self.keep / f"{name}.report")]
        # What trials cost is nobody's loss here.
        if not any(option.startswith("--max-slowdown") for option in self.passed_on):
            command += ["--max-slowdown", "0"]
        command += [*self.passed_on, "--", *self.program(
            "--tune-iterations", str(self.options.tune_iterations),
            *self.given("--settle-seconds", self.options.settle_seconds),
            "--tune-seconds", str(self.options.tune_seconds))]
        for log in folder.glob("rank-*.log"):
            log.unlink()
        # Every run begins with nothing.
        return self.lines_of(name, [(command, {"CONTEXTUNE_STORE": "off"})])

    def lines_of(self, name, processes):
        """What the ranks print, line by line; shown as it comes."""
        progress(name)
        started = []
        path = self.keep / f"{name}.txt"
        try:
            with open(path, "wb") as output:
                for command, variables in processes:
                    started.append(subprocess.Popen(
                        command, env={**self.environment(), **variables}, stdout=output,
                        stdin=subprocess.DEVNULL, start_new_session=True))
            return self.follow(path, name, started)
        finally:
            for process in started:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def follow(self, path, name, started):
        lines = []
        with open(path) as output:
            while True:
                ended = [process.poll() for process in started]
                for line in output.read().splitlines():
                    lines.append(line)
                    progress(f"{name}: {line}")
                if any(status not in (None, 0, 1) for status in ended):
                    raise Failed(f"{name}: a rank ended with {ended}")
                if None not in ended:
                    break
                if time.monotonic() > self.deadline:
                    raise Failed(f"{name}: not done after --limit {self.options.limit} s")
                time.sleep(0.2)
        if len(lines) != len(self.problems) + 1:
            raise Failed(f"{name}: {len(lines)} lines, not {len(self.problems) + 1}, in {path}")
        self.head = lines[0]
        return lines[1:]


def times_of(lines):
    """Microseconds a call by problem, and which results were wrong."""
    found = {match[1]: (float(match[2]), match[5]) for match in map(RUN_LINE.fullmatch, lines)}
    return ({name: us for name, (us, _) in found.items()},
            [f"{name}: {verdict}" for name, (_, verdict) in found.items() if verdict != "PASS"])


def winners_of(log):
    """By region: the winner's parameters, and whether its tuning was finished, in a rank log."""
    winners = {}
    for line in log.read_text().splitlines():
        region = re.search(r" region=(\S+)", line)
        if region is None:
            continue
        if " event=winner " in line:
            config = [re.search(rf" {name}=(\S+)", line)
                      for name in ("algorithm", "protocol", "channels")]
            text = "/".join(part[1] for part in config if part and part[1] != "0")
            winners.setdefault(region[1], ["", False])[0] = text or "default"
        elif " event=stage " in line:
            winners.setdefault(region[1], ["default", False])[1] = " stage=finished " in line
    return {region: config if done else f"{config or 'default'}, unfinished"
            for region, (config, done) in winners.items()}


def spread(values, form="{:.3f}"):
    """Median, and the range if there is one."""
    text = form.format(statistics.median(values))
    return text if len(values) == 1 else (
        f"{text} ({form.format(min(values))} to {form.format(max(values))})")


def report(job, hand, pairs):
    simulated = "Simulated" in job.head
    print(f"{job.head}{' (SIMULATED)' if simulated else ''}, {datetime.date.today()}, "
          f"tools/bench collectives --ranks {job.options.ranks} --sizes {job.options.sizes}"
          f"{' --float' if job.options.float else ''}"
          f"{f' --cpus-per-rank {cpus}' if (cpus := job.options.cpus_per_rank) else ''}"
          f" {' '.join(job.passed_on)}".rstrip())
    print(f"us a call; ratios of speed, with the range over {len(pairs)} rounds of runs"
          f"{'; all figures are simulated' if simulated else ''}\n")
    rows = [("collective", "size", "default us", "NCCL's own", "hand's best us", "by hand",
             "tuned us", "tuned to", "hand/default", "tuned/default", "tuned/hand",
             "default/default", "fastest/fastest")]
    short_of_hand, short_of_default, unfinished = [], [], []
    for name in job.problems:
        function, size = name.split("-")
        found = hand[name]
        default = [bare[name] for bare, _, _, _ in pairs]
        again = [bare[name] for _, _, bare, _ in pairs]
        tuned = [times[name] for _, times, _, _ in pairs]
        configs = [winners.get(name, "not tuned") for _, _, _, winners in pairs]
        to_default = [a / b for a, b in zip(default, tuned)]
        to_hand = [found["best"] / us for us in tuned]
        to_itself = [a / b for a, b in zip(default, again)]
        if statistics.median(to_hand) < LEAST_OF_HAND:
            short_of_hand.append(name)
        if statistics.median(to_default) < LEAST_OF_DEFAULT:
            short_of_default.append(name)
        if any("unfinished" in config or config == "not tuned" for config in configs):
            unfinished.append(name)
        rows.append((function, size_of(int(size)), spread(default, "{:.2f}"), found["own"],
                     f"{found['best']:.2f} ({found['least']:.2f} to {found['most']:.2f})",
                     found["config"], spread(tuned, "{:.2f}"), " | ".join(dict.fromkeys(configs)),
                     f"{found['gain']:.3f} ({found['gain_least']:.3f} to {found['gain_most']:.3f})",
                     spread(to_default), spread(to_hand), spread(to_itself),
                     f"{min(default + again) / min(tuned):.3f}"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print()
    for what, names in ((f"tuned below {LEAST_OF_HAND} of the hand's best", short_of_hand),
                        (f"tuned below {LEAST_OF_DEFAULT} of the default", short_of_default),
                        ("tuning not finished before it was timed", unfinished)):
        print(f"{what}: {len(names)} of {len(job.problems)}"
              f"{': ' if names else ''}{', '.join(names)}")


def compare(job):
    hand, wrong = {}, []
    for line in job.by_hand():
        match = HAND_LINE.fullmatch(line)
        if match is None:
            raise Failed(f"by-hand: '{line}'")
        hand[match[1]] = {"own": match[5], "best": float(match[6]), "least": float(match[7]),
                          "most": float(match[8]), "config": match[9], "gain": float(match[10]),
                          "gain_least": float(match[11]), "gain_most": float(match[12])}
        if match[14] != "PASS":
            wrong.append(f"{match[1]} by hand: {match[14]}")
    pairs = []
    for number in range(job.options.pairs):
        try:
            bare, bare_wrong = times_of(job.as_it_is(f"bare-{number}"))
            tuned, tuned_wrong = times_of(job.tuned(f"tuned-{number}"))
            again, again_wrong = times_of(job.as_it_is(f"again-{number}"))
        except Failed as failure:
            if not pairs:
                raise
            progress(f"{failure}; the table is of what was done before")
            break
        wrong += bare_wrong + tuned_wrong + again_wrong
        pairs.append((bare, tuned, again, winners_of(job.keep / f"tuned-{number}" / "rank-0.log")))
    report(job, hand, pairs)
    print(f"results that were not exact: {len(wrong)}{': ' if wrong else ''}{'; '.join(wrong)}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(prog="tools/bench collectives", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--build", help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, default=2, help="processes, one a GPU (2)")
    parser.add_argument("--sizes", default="4K,16K,64K,256K,1M,4M,16M,64M,256M",
                        help="bytes as NCCL tells a tuner (4K to 256M in steps of 4 times; "
                             "simulated: 4K, 64K, 256K)")
    parser.add_argument("--float", action="store_true",
                        help="sums of float32 and not of int32: with more than 2 ranks contextune "
                             "tunes them only where --allow-rounding is given, too")
    parser.add_argument("--pairs", type=int, default=2,
                        help="runs without, with and again without contextune (2)")
    parser.add_argument("--rounds", type=int, default=20, help="blocks that a median is of (20)")
    parser.add_argument("--block-us", type=int, default=3000, help="length of a block (3000)")
    parser.add_argument("--cpus-per-rank", type=int, default=0,
                        help="keep each rank on CPUs of its own, the same in all runs: where small "
                             "calls are bound by the host, runs differ by where they happen to be "
                             "(0: not)")
    parser.add_argument("--tune-iterations", type=int, default=3000,
                        help="entries of each range before it is timed (3000)")
    parser.add_argument("--settle-seconds", type=int, default=1,
                        help="for which they go on at least: CUPTI leaves a process half a second "
                             "after it was used last, and small calls take a third longer until "
                             "then (1)")
    parser.add_argument("--tune-seconds", type=int, default=10,
                        help="for which they may go on at most (10)")
    parser.add_argument("--limit", type=float, default=480,
                        help="seconds for all of it; later pairs are left out (480)")
    parser.add_argument("--keep", default="build/bench_collectives",
                        help="folder of logs and outputs (build/bench_collectives)")
    options, passed_on = parser.parse_known_args()
    try:
        return compare(Job(options, passed_on))
    except Failed as failure:
        print(f"tools/bench collectives: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
