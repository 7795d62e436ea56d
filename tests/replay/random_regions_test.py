"""Random regions, bare and under the real preloaded shim on the simulated driver.

Each seed is a program with one marked region (random_regions --describe SEED shows it). Tuned, it
must print what it prints alone; the rank log must say that the region was tuned by replay, or that
it was not for the reason that was put into it; and no config that computes something else may win.

    random_regions_test.py                    the short run of the test suite
    random_regions_test.py --count 10000      the long one, some minutes
    random_regions_test.py --seed 17          one seed again, with its log

CONTEXTUNE_TEST_BUILD names the build folder (default: build/release)."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import sys
import tempfile

from random_regions_log import complaints, read_log, read_output
from random_regions_run import SETTINGS, Runner

# What goes wrong in the middle of a replay, and how many such calls go well before.
FAULTS = [
    f"{fault}:after={after},times=1"
    for fault in ("copy_fail:HtoD", "copy_fail:DtoH", "copy_fail:DtoD", "copy_wrong:HtoD",
                  "copy_wrong:DtoH", "copy_wrong:DtoD", "alloc_fail:*", "host_alloc_fail:*",
                  "launch_fail:*", "sticky:*")
    for after in (0, 1, 2, 3, 5, 8, 13, 21, 34)
]
STOPPED = "memory cannot be put back"


def first_difference(bare, tuned):
    """The number of the first line that differs, as a seed is a line."""
    bare_lines, tuned_lines = bare.splitlines(), tuned.splitlines()
    for number, line in enumerate(bare_lines):
        if number >= len(tuned_lines) or line != tuned_lines[number]:
            return number
    return None


class Batch:
    """Seeds first ... first + count - 1 in one process, bare and tuned."""

    def __init__(self, runner, first, count, setting):
        self.runner, self.first, self.count, self.setting = runner, first, count, setting
        self.failures = []
        self.outcomes = collections.Counter()

    def fail(self, seed, text):
        self.failures.append((seed, self.setting, text))

    def run(self):
        first, end = self.first, self.first + self.count
        while first < end:
            first = self.run_from(first, end - first)
        return self

    def run_from(self, first, count):
        """Returns the seed to go on with: a process that ends early ends with its seed."""
        with tempfile.TemporaryDirectory(prefix="contextune-regions-") as folder:
            bare = self.runner.bare(first, count)
            if bare.returncode != 0 or bare.stderr:
                self.fail(first, f"bare: status {bare.returncode}, {bare.stdout[-200:]}{bare.stderr}")
                return first + count
            tuned = self.runner.tuned(first, count, self.setting, folder)
            log = read_log(pathlib.Path(folder) / "rank-0.log")
        done = count
        if tuned.returncode != 0 or tuned.stderr:
            done = max(1, tuned.stdout.count("\n") + (tuned.returncode != 0))
            self.fail(first + done - 1, f"status {tuned.returncode}: {tuned.stderr.strip()}")
        bare_lines, tuned_lines = bare.stdout.splitlines(), tuned.stdout.splitlines()
        for number in range(min(done, len(tuned_lines))):
            seed = first + number
            program = read_output(bare_lines[number])
            if tuned_lines[number] != bare_lines[number]:
                self.fail(seed, f"computes something else:\n  {bare_lines[number]}\n"
                                f"  {tuned_lines[number]}")
            lines = log[program.region]
            self.outcomes[",".join(dict.fromkeys(program.expected))] += 1
            if tuned.returncode == 0:
                for text in complaints(program, lines):
                    self.fail(seed, text)
        return first + done


def run_fault(runner, seed, fault):
    """The outcome, and a failure if a process went on with mixed memory, or ended silently."""
    with tempfile.TemporaryDirectory(prefix="contextune-regions-") as folder:
        bare = runner.bare(seed, 1)
        tuned = runner.tuned(seed, 1, "quick", folder, fault)
    if (tuned.returncode, tuned.stdout, tuned.stderr) == (0, bare.stdout, ""):
        return "with a fault: went on, rightly", None
    if tuned.returncode == -6 and STOPPED in tuned.stderr:
        return "with a fault: stopped, loudly", None
    return "with a fault: wrong", (seed, f"quick --fault '{fault}'",
                                   f"status {tuned.returncode}\n  {bare.stdout}  {tuned.stdout}"
                                   f"  {tuned.stderr}")


def run_faults(runner, first, count):
    failures, outcomes = [], collections.Counter()
    programs = map(read_output, runner.bare(first, 20 * count).stdout.splitlines())
    seeds = [seed for seed, one in enumerate(programs, first) if one.may_be_declined()][:count]
    with concurrent.futures.ThreadPoolExecutor(runner.jobs) as pool:
        tasks = [pool.submit(run_fault, runner, seed, fault) for seed in seeds for fault in FAULTS]
        for task in tasks:
            outcome, failure = task.result()
            outcomes[outcome] += 1
            if failure:
                failures.append(failure)
    if not outcomes["with a fault: stopped, loudly"]:
        failures.append((seeds[0], "quick", "no fault hit a restore"))
    return failures, outcomes


def run_batches(runner, first, count, batch):
    settings = sorted(SETTINGS)
    batches = [
        Batch(runner, at, min(batch, first + count - at), settings[at // batch % len(settings)])
        for at in range(first, first + count, batch)
    ]
    failures, outcomes = [], collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(runner.jobs) as pool:
        for done in pool.map(Batch.run, batches):
            failures += done.failures
            outcomes += done.outcomes
            for failure in done.failures:
                report(failure)
    return failures, outcomes


def report(failure):
    seed, setting, text = failure
    print(f"seed {seed} ({setting}): {text}\n  again: {sys.argv[0]} --seed {seed} "
          f"--setting {setting}", flush=True)


def show(outcomes):
    for outcome, number in outcomes.most_common():
        print(f"{number:6}  {outcome}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1, help="first seed (1)")
    parser.add_argument("--count", type=int, default=300, help="how many seeds (300)")
    parser.add_argument("--batch", type=int, default=25, help="seeds in one process (25)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--fault-seeds", type=int, default=2,
                        help="seeds that are run with faults while memory is restored (2)")
    parser.add_argument("--seed", type=int, help="this seed alone, with its log")
    parser.add_argument("--fault", help="with --seed: a fault of the driver while the region ends")
    parser.add_argument("--setting", choices=sorted(SETTINGS), default="quick",
                        help="how the seed is tuned (quick)")
    arguments = parser.parse_args()
    runner = Runner(arguments.jobs)
    if arguments.seed is not None:
        runner.shows_log = True
        if arguments.fault:
            failure = run_fault(runner, arguments.seed, arguments.fault)[1]
            failures = [failure] if failure else []
        else:
            failures = Batch(runner, arguments.seed, 1, arguments.setting).run().failures
        for failure in failures:
            report(failure)
        return 1 if failures else 0
    failures, outcomes = run_batches(runner, arguments.first, arguments.count, arguments.batch)
    show(outcomes)
    if arguments.fault_seeds:
        fault_failures, fault_outcomes = run_faults(
            runner, arguments.first, arguments.fault_seeds)
        for failure in fault_failures:
            report(failure)
        failures += fault_failures
        show(fault_outcomes)
    print(f"{arguments.count} regions, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
