"""Compares two autotuners in context, Triton-distributed's contextual_autotune and contextune's, on one region of
Triton kernels.

    tools/bench ancestors PATH/TO/triton_dist/autotuner.py

The region is an axpy (12 configs) and a softmax of rows (5 configs) over 4096 x 1024 floats, with n_warmup 3 and
n_repeat 5. Both tune it in turns, in one process: first from nothing, so that all configs are compiled in each
tuning, and then with compiled kernels. Told of each tuning are its passes (runs of the body), milliseconds, and what it chose. Then all 60 pairs of configs take turns in a
process without either tuner: the region takes from the start of the axpy to the end of the softmax, by CUPTI (of
torch.profiler), in the median of the rounds. Only on a GPU. The ancestor's file is of its own project, and no part of
this one."""

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import pathlib
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


@contextlib.contextmanager
def nothing_compiled():
    """Kernels that are compiled anew."""
    with tempfile.TemporaryDirectory(prefix="contextune-ancestors-") as folder:
        before = os.environ.get("TRITON_CACHE_DIR")
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            yield triton.jit(axpy.fn), triton.jit(softmax.fn)
        finally:
            del os.environ["TRITON_CACHE_DIR"]
            if before is not None:
                os.environ["TRITON_CACHE_DIR"] = before


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


def time_all(rounds):
    """Prints the us of all pairs of configs, as JSON."""
    tensors = Tensors()
    pairs = list(itertools.product(range(len(AXPY)), range(len(SOFTMAX))))

    def run_all():
        for first, second in pairs:
            tensors.run(axpy, softmax, AXPY[first], SOFTMAX[second])

    for _ in range(3):
        run_all()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(rounds):
            run_all()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    kernels = sorted((event["ts"], event["dur"], event["name"]) for event in events
                     if event.get("cat") == "kernel" and event["name"] in ("axpy", "softmax"))
    if len(kernels) != 2 * rounds * len(pairs):
        sys.exit(f"the profiler has {len(kernels)} kernels, not {2 * rounds * len(pairs)}")
    times = {pair: [] for pair in pairs}
    for number in range(0, len(kernels), 2):
        (start, _, first), (other, took, second) = kernels[number:number + 2]
        assert (first, second) == ("axpy", "softmax")
        times[pairs[number // 2 % len(pairs)]].append(other + took - start)
    json.dump([[*pair, statistics.median(all_times)] for pair, all_times in times.items()], sys.stdout)


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
    parser.add_argument("--tunings", type=int, default=10, help="of each, from nothing and compiled before (default 10)")
    parser.add_argument("--rounds", type=int, default=200, help="that the region is timed in (default 200)")
    parser.add_argument("--time-all", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.time_all:
        return time_all(asked.rounds)
    if asked.ancestor is None or not asked.ancestor.is_file():
        parser.error("give the path of python/triton_dist/autotuner.py in a clone of "
                     "https://github.com/ByteDance-Seed/Triton-distributed")
    asked.ancestor = asked.ancestor.resolve()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/python"))
    import built_package
    built_package.use(asked.build)
    with tempfile.TemporaryDirectory(prefix="contextune-ancestors-") as folder, contextlib.chdir(folder):
        os.environ["CONTEXTUNE_STORE"] = "off"
        os.environ.setdefault("CONTEXTUNE_LOG_DIR", f"{folder}/logs")
        theirs = load_ancestor(asked.ancestor)  # before contextune, as it keeps the launches for good
        import contextune

        tensors = Tensors()
        for first, second in itertools.product(AXPY, SOFTMAX):  # compiles all, as they are launched later
            tensors.run(axpy, softmax, config_of(first).all_kwargs(), config_of(second).all_kwargs())
        torch.cuda.synchronize()
        def in_turns(how, kernels):
            """As many tunings by each, by name."""
            tunings = {f"Triton-distributed, {how}": [], f"contextune, {how}": []}
            for turn in range(asked.tunings):
                for name in list(tunings) if turn % 2 == 0 else list(tunings)[::-1]:
                    with kernels() as some:
                        if name.startswith("contextune"):  # by a name of its own each is searched anew
                            tuning = Tuning(tensors, some, contextune.contextual_autotune,
                                            name=f"{how.replace(' ', '_')}_{turn}")
                        else:
                            tuning = Tuning(tensors, some, theirs)
                    tunings[name].append(tuning)
                    print(f"{turn} {name}: {tuning.passes} passes, {tuning.milliseconds:.1f} ms, "
                          f"{text_of(tuning.outcome)}", file=sys.stderr, flush=True)
            return tunings

        tunings = in_turns("from nothing", nothing_compiled) | in_turns(
            "compiled before", lambda: contextlib.nullcontext((axpy, softmax)))
        times = measured(asked.rounds)
    print(f"{device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}")
    fastest, default = min(times, key=times.get), (0, 0)
    print(f"of {len(times)} pairs of configs the best takes {times[fastest]:.2f} us ({text_of(fastest)}), "
          f"the first of each {times[default]:.2f} us")
    for name, some in tunings.items():
        tell(name, some, times)


def measured(rounds):
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).resolve()), "--time-all", "--rounds", str(rounds)], check=True, text=True,
                          stdout=subprocess.PIPE)
    return {(first, second): us for first, second, us in json.loads(done.stdout.splitlines()[-1])}


def device_name():
    return torch.cuda.get_device_name()


if __name__ == "__main__":
    main()
