"""Compares two autotuners in context, Triton-distributed's contextual_autotune and contextune's, on one region of
Triton kernels.

    tools/bench ancestors PATH/TO/triton_dist/autotuner.py

The region is an axpy (12 configs) and a softmax of rows (5 configs) over 4096 x 1024 floats, with n_warmup 3 and
n_repeat 5. Both tune it in turns, in one process, in three states: from nothing, so that each tuning compiles all
configs; from Triton's disk cache, so that each tuning loads what was compiled before; and with kernels that the process
has loaded. Told of each tuning are its passes (runs of the body), milliseconds, and what it chose.

Before, processes without either tuner time all 60 pairs of configs, by CUPTI (of torch.profiler), from the start of
the axpy to the end of the softmax. The GPU never waits for the host, and each pair runs many times in a row, as the pair
before leaves the L2 cache another way. The time of a pair is the median of its medians in the processes, which are
apart by up to 1.5 % (H200): each has its tensors elsewhere. Only on a GPU. The ancestor's file is of its own project,
and no part of this one."""

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import triton
import triton.language as tl

DEVICE = "cuda"
ROWS, COLUMNS = 4096, 1024
FACTOR = 2.0
AXPY = [{"BLOCK": block, "num_warps": warps} for block in (128, 256, 512, 1024, 2048, 4096) for warps in (4, 8)]
SOFTMAX = [{"num_warps": warps} for warps in (1, 2, 4, 8, 16)]
AS_GOOD = 1.01
SLEEP_CYCLES = 4_000_000  # 2 ms, in which the host launches all that comes in a row
IN_A_ROW, UNCOUNTED = 32, 8  # regions of a pair
MOST_GAP_US = 4.0  # between the kernels of a region; the GPU has waited for the host where it is more


@triton.jit
def axpy(z, x, y, factor, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.store(z + index, tl.load(x + index, mask=mask) * factor + tl.load(y + index, mask=mask), mask=mask)


@triton.jit
def softmax(out, z, columns, COLUMNS: tl.constexpr):
    place = tl.arange(0, COLUMNS)
    index = tl.program_id(0) * columns + place
    value = tl.load(z + index, mask=place < columns, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + index, value / tl.sum(value, axis=0), mask=place < columns)


class Tensors:
    def __init__(self):
        torch.manual_seed(7)
        self.x, self.y = (torch.randn(ROWS, COLUMNS, device=DEVICE) for _ in range(2))
        self.z, self.out = torch.empty_like(self.x), torch.empty_like(self.x)

    def run(self, axpy_kernel, softmax_kernel, of_axpy=None, of_softmax=None):
        n = self.x.numel()
        axpy_kernel[lambda named: (triton.cdiv(n, named["BLOCK"]),)](
            self.z, self.x, self.y, FACTOR, n, **(of_axpy or {}))
        softmax_kernel[(ROWS,)](self.out, self.z, COLUMNS, COLUMNS=COLUMNS, **(of_softmax or {}))

    def check(self):
        torch.testing.assert_close(self.out, torch.softmax(FACTOR * self.x + self.y, dim=-1))


def config_of(given):
    return triton.Config({name: value for name, value in given.items() if name != "num_warps"},
                         num_warps=given["num_warps"])


def autotuned(kernel, space, key):
    return triton.autotune(list(map(config_of, space)), key=[key])(kernel)


def launch_all(tensors, kernels):
    """Compiles and loads all configs, as they are launched later."""
    for first, second in itertools.product(AXPY, SOFTMAX):
        tensors.run(*kernels, config_of(first).all_kwargs(), config_of(second).all_kwargs())
    torch.cuda.synchronize()


@contextlib.contextmanager
def fresh_kernels(cache):
    """Kernels of which nothing is loaded, with this folder as Triton's disk cache."""
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = str(cache)
    try:
        yield triton.jit(axpy.fn), triton.jit(softmax.fn)
    finally:
        del os.environ["TRITON_CACHE_DIR"]
        if before is not None:
            os.environ["TRITON_CACHE_DIR"] = before


@contextlib.contextmanager
def nothing_compiled():
    with tempfile.TemporaryDirectory(prefix="contextune-ancestors-") as folder, fresh_kernels(folder) as kernels:
        yield kernels


class Tuning:
    """One, by contextual_autotune of either package."""

    def __init__(self, tensors, kernels, contextual_autotune, **options):
        kernels = autotuned(kernels[0], AXPY, "n"), autotuned(kernels[1], SOFTMAX, "columns")
        self.passes = 0

        @contextual_autotune(is_dist=False, n_repeat=5, n_warmup=3, **options)
        def region():
            self.passes += 1
            tensors.run(*kernels)

        tensors.out.zero_()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        region()
        torch.cuda.synchronize()
        self.milliseconds = (time.perf_counter() - begin) * 1e3
        tensors.check()
        self.outcome = tuple(space.index({name: value for name, value in kernel.best_config.all_kwargs().items()
                                          if name in space[0]})
                             for kernel, space in zip(kernels, (AXPY, SOFTMAX), strict=True))


def load_ancestor(path):
    spec = importlib.util.spec_from_file_location("ancestor", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # It asks for its rank, whatever it tunes.
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    return module.contextual_autotune


def text_of(outcome):
    shown = [" ".join(f"{name}={value}" for name, value in space[number].items())
             for number, space in zip(outcome, (AXPY, SOFTMAX), strict=True)]
    return f"axpy {shown[0]}, softmax {shown[1]}"


def tune_in_turns(state, kernels, count, tensors, theirs, ours):
    """As many tunings by each, by name. Each has kernels by a call of `kernels`."""
    tunings = {f"Triton-distributed, {state}": [], f"contextune, {state}": []}
    for turn in range(count):
        for name in list(tunings) if turn % 2 == 0 else list(tunings)[::-1]:
            with kernels() as some:
                if name.startswith("contextune"):  # by a name of its own each is searched anew
                    region = re.sub(r"\W+", "_", f"{state} {turn}")
                    tuning = Tuning(tensors, some, ours, name=region)
                else:
                    tuning = Tuning(tensors, some, theirs)
            tunings[name].append(tuning)
            print(f"{turn} {name}: {tuning.passes} passes, {tuning.milliseconds:.1f} ms, "
                  f"{text_of(tuning.outcome)}", file=sys.stderr, flush=True)
    return tunings


def profiled(work):
    """The kernels that a call launches, as (start, duration, name) in us, in the order of their starts."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    return sorted((event["ts"], event["dur"], event["name"]) for event in events
                  if event.get("cat") == "kernel" and event["name"] in ("axpy", "softmax"))


def time_all(rounds):
    """Prints the us of all pairs of configs, as JSON."""
    tensors = Tensors()
    pairs = list(itertools.product(range(len(AXPY)), range(len(SOFTMAX))))
    order = [pair for number in range(rounds) for pair in (pairs if number % 2 == 0 else pairs[::-1])]

    def run(pair):
        tensors.run(axpy, softmax, AXPY[pair[0]], SOFTMAX[pair[1]])

    def run_all():
        for pair in order:
            torch.cuda._sleep(SLEEP_CYCLES)
            for _ in range(IN_A_ROW):
                run(pair)

    for pair in pairs:  # compiles them
        run(pair)
    torch.cuda.synchronize()
    times, gaps = times_of(profiled(run_all), order)
    for pair, gap in gaps.items():
        if gap > MOST_GAP_US:
            sys.exit(f"between the kernels of {text_of(pair)} the GPU was idle for {gap:.1f} us, more than "
                     f"{MOST_GAP_US}: it has waited for the host, so the times are not the GPU's")
    json.dump([[*pair, time_of_pair] for pair, time_of_pair in times.items()], sys.stdout)


def times_of(kernels, order):
    """The medians of the regions' times and of the gaps in them, in us, by pair."""
    count = 2 * IN_A_ROW * len(order)
    if len(kernels) != count:
        sys.exit(f"the profiler has {len(kernels)} kernels, not {count}")
    times, gaps = ({pair: [] for pair in order} for _ in range(2))
    for region in range(count // 2):
        (start, took, first), (next_start, next_took, second) = kernels[2 * region:2 * region + 2]
        assert (first, second) == ("axpy", "softmax")
        if region % IN_A_ROW >= UNCOUNTED:
            pair = order[region // IN_A_ROW]
            times[pair].append(next_start + next_took - start)
            gaps[pair].append(next_start - start - took)
    return tuple({pair: statistics.median(of_pair) for pair, of_pair in both.items()} for both in (times, gaps))


def tell(name, tunings, times):
    best = min(times.values())
    milliseconds = [one.milliseconds for one in tunings]
    outcomes = [one.outcome for one in tunings]
    of_outcomes = [times[one] for one in outcomes]
    print(f"{name}: {len(tunings)} tunings, passes {' '.join(map(str, sorted({one.passes for one in tunings})))}; "
          f"ms {statistics.median(milliseconds):.1f} ({min(milliseconds):.1f} to {max(milliseconds):.1f}, "
          f"the first {milliseconds[0]:.1f})")
    print(f"  region time {statistics.median(of_outcomes):.2f} us ({min(of_outcomes):.2f} to "
          f"{max(of_outcomes):.2f}); within {AS_GOOD - 1:.0%} of the best: "
          f"{sum(one <= best * AS_GOOD for one in of_outcomes)} of {len(tunings)}; "
          f"{len(set(outcomes))} distinct outcomes:")
    for outcome in sorted(set(outcomes), key=outcomes.count, reverse=True):
        print(f"    {outcomes.count(outcome):2} times {text_of(outcome)}: {times[outcome]:.2f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ancestor", type=pathlib.Path, nargs="?",
                        help="python/triton_dist/autotuner.py of a clone of Triton-distributed")
    parser.add_argument("--build", type=pathlib.Path, help="a folder of a build; absent: the installed package")
    parser.add_argument("--tunings", type=int, default=10, help="by each in each state (default 10)")
    parser.add_argument("--rounds", type=int, default=5,
                        help=f"in which each pair is timed, {IN_A_ROW} times in a row (default 5)")
    parser.add_argument("--processes", type=int, default=5, help="that time them (default 5)")
    parser.add_argument("--time-all", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if min(asked.tunings, asked.rounds, asked.processes) < 1:
        parser.error("--tunings, --rounds and --processes are at least 1")
    if asked.time_all:
        return time_all(asked.rounds)
    if asked.ancestor is None or not asked.ancestor.is_file():
        parser.error("give the path of python/triton_dist/autotuner.py in a clone of "
                     "https://github.com/ByteDance-Seed/Triton-distributed")
    asked.ancestor = asked.ancestor.resolve()
    times, scatter = measured(asked.rounds, asked.processes)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/python"))
    import built_package
    built_package.use(asked.build)
    with tempfile.TemporaryDirectory(prefix="contextune-ancestors-") as folder, contextlib.chdir(folder):
        os.environ["CONTEXTUNE_STORE"] = "off"
        os.environ.setdefault("CONTEXTUNE_LOG_DIR", f"{folder}/logs")
        theirs = load_ancestor(asked.ancestor)  # before contextune, as it keeps the launches for good
        import contextune

        tensors, compiled = Tensors(), pathlib.Path(folder) / "compiled"
        with fresh_kernels(compiled) as kernels:
            launch_all(tensors, kernels)
        launch_all(tensors, (axpy, softmax))
        tunings = {}
        for state, kernels in (("from nothing", nothing_compiled),
                               ("from Triton's disk cache", lambda: fresh_kernels(compiled)),
                               ("compiled before", lambda: contextlib.nullcontext((axpy, softmax)))):
            tunings |= tune_in_turns(state, kernels, asked.tunings, tensors, theirs, contextune.contextual_autotune)
    print(f"{device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}")
    fastest, default = min(times, key=times.get), (0, 0)
    print(f"of {len(times)} pairs of configs the best takes {times[fastest]:.2f} us ({text_of(fastest)}), "
          f"the first of each {times[default]:.2f} us; each by {asked.processes} processes, in the median within "
          f"{statistics.median(scatter):.1%} of each other, at most {max(scatter):.1%}")
    for name, some in tunings.items():
        tell(name, some, times)


def measured(rounds, processes):
    """The us of all pairs, and how far the processes are apart about each, as a share of it."""
    by_pair = {}
    for _ in range(processes):
        done = subprocess.run([sys.executable, pathlib.Path(__file__).resolve(), "--time-all", "--rounds", str(rounds)],
                              text=True, stdout=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit("the pairs of configs could not be timed")
        for first, second, us in json.loads(done.stdout.splitlines()[-1]):
            by_pair.setdefault((first, second), []).append(us)
    times = {pair: statistics.median(us) for pair, us in by_pair.items()}
    return times, [(max(us) - min(us)) / times[pair] for pair, us in by_pair.items()]


def device_name():
    return torch.cuda.get_device_name()


if __name__ == "__main__":
    main()
