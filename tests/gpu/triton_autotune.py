"""`triton.autotune`d kernels of PyTorch programs in regions, on a GPU: results, winners, failures, what is undone,
and what a launch costs.

Needs PyTorch and its Triton, and the package or a build of this clone (CONTEXTUNE_TEST_BUILD):
    python tests/gpu/triton_autotune.py
    build/gpu/bin/contextune run --quiet -- python tests/gpu/triton_autotune.py
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import built_package

LOGS = tempfile.TemporaryDirectory(prefix="contextune-triton-")
os.environ.setdefault("CONTEXTUNE_LOG_DIR", LOGS.name)
os.environ.setdefault("CONTEXTUNE_STORE", "off")
built_package.use()

import contextune
import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 4096, 1024
MOST_MORE_US = 2.0  # of a settled launch in a region
LAUNCHES = 2000


def blocks(*sizes, warps=(4,), **more):
    return [triton.Config({"BLOCK": size}, num_warps=number, **more) for size in sizes for number in warps]


@triton.autotune(blocks(128, 256, 512, 1024, 2048, 4096, warps=(4, 8)), key=["n"])
@triton.jit
def axpy(out, x, y, factor, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.store(out + index, tl.load(x + index, mask=mask) * factor + tl.load(y + index, mask=mask), mask=mask)


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (1, 2, 4, 8, 16)], key=["columns"])
@triton.heuristics({"BLOCK": lambda named: triton.next_power_of_2(named["columns"])})
@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    index = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    value = tl.load(x + index, mask=mask, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + index, value / tl.sum(value, axis=0), mask=mask)


@triton.jit
def add_to(total, x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.atomic_add(total + index, tl.load(x + index, mask=mask), mask=mask)


@triton.autotune([triton.Config({"TILE": 256}, num_warps=8, num_stages=4),  # out of shared memory
                  triton.Config({"TILE": 64}, num_warps=4, num_stages=2),
                  triton.Config({"TILE": 32}, num_warps=4, num_stages=2)], key=["n"])
@triton.jit
def multiply(out, a, b, n, TILE: tl.constexpr):
    rows = (tl.program_id(0) * TILE + tl.arange(0, TILE)) % n
    columns = (tl.program_id(1) * TILE + tl.arange(0, TILE)) % n
    inner = tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, n, TILE):
        sums += tl.dot(tl.load(a + rows[:, None] * n + start + inner[None, :]),
                       tl.load(b + (start + inner)[:, None] * n + columns[None, :]))
    tl.store(out + rows[:, None] * n + columns[None, :], sums)


def of_elements(n):
    return lambda named: (triton.cdiv(n, named["BLOCK"]),)


def no_bench(*_, **__):
    raise AssertionError("Triton measures by itself")


def log():
    folder = pathlib.Path(os.environ["CONTEXTUNE_LOG_DIR"])
    return [line for file in folder.glob("rank-*.log") for line in file.read_text().splitlines()]


def lines(*words):
    """Lines of the rank log with all of these; waits for the first."""
    until = time.monotonic() + 5
    while True:
        found = [line for line in log() if all(word in line for word in words)]
        if found or time.monotonic() > until:
            return found
        time.sleep(0.05)


class TritonAutotune(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.name = self.id().rsplit(".", 1)[-1]
        self.x = torch.randn(ROWS, COLUMNS, device="cuda")
        self.y = torch.randn(ROWS, COLUMNS, device="cuda")

    def region(self, body, **more):
        return contextune.contextual_autotune(name=self.name, **more)(body)

    def test_kernels_are_tuned_together_and_triton_runs_their_winners_outside(self):
        axpy.do_bench = softmax.do_bench = no_bench
        z, out = torch.empty_like(self.x), torch.empty_like(self.x)

        def body(factor):
            axpy[of_elements(z.numel())](z, self.x, self.y, factor, z.numel())
            softmax[(ROWS,)](out, z, COLUMNS)
            return out

        begin = time.perf_counter()
        result = self.region(body)(2.0)
        print(f"tuned in {(time.perf_counter() - begin) * 1e3:.0f} ms, compilers included", flush=True)
        expected = torch.softmax(2.0 * self.x + self.y, dim=-1)
        torch.testing.assert_close(result, expected)
        self.assertEqual((len(axpy.cache), len(softmax.cache)), (1, 1))
        self.assertGreater(min(len(axpy.configs_timings), len(softmax.configs_timings)), 1)
        for kernel in ("axpy", "softmax"):
            self.assertTrue(lines("event=winner", f"region={self.name} ", f"site={kernel}"))
            self.assertTrue(lines("event=trial", f"site={kernel}", "timer=cupti"))
        torch.testing.assert_close(body(2.0), expected)
        for kernel in (axpy, softmax):
            for config, times in kernel.configs_timings.items():
                print(f"  {kernel.base_fn.__name__} {config}: {times[0] * 1e3:.2f} us"
                      f"{', the winner' if config == kernel.best_config else ''}")

    def test_each_launch_has_its_own_arguments_and_each_key_a_winner(self):
        kernel = triton.autotune(blocks(256, 1024), key=["n"])(axpy.fn)
        kernel.do_bench = no_bench
        parts = [torch.randn(size, device="cuda") for size in (1 << 10, 1 << 20, 1 << 22)]
        outs = [torch.empty_like(part) for part in parts]

        def body():
            for out, part in zip(outs, parts, strict=True):
                kernel[of_elements(part.numel())](out, part, part, 3.0, part.numel())

        self.region(body)()
        for out, part in zip(outs, parts, strict=True):
            torch.testing.assert_close(out, 4.0 * part)
        self.assertEqual(len(kernel.cache), 3)

    def test_a_config_out_of_resources_fails_and_others_are_tuned(self):
        n = 1024
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in range(2))
        out = torch.empty(n, n, device="cuda")
        grid = lambda named: 2 * (triton.cdiv(n, named["TILE"]),)
        multiply.do_bench = no_bench
        self.region(lambda: multiply[grid](out, a, b, n))()
        torch.testing.assert_close(out, a.float() @ b.float(), rtol=1e-2, atol=0.1)
        self.assertNotEqual(multiply.best_config.kwargs["TILE"], 256)
        self.assertTrue(lines("TILE=256", "OutOfResources"))

    def test_what_a_kernel_changes_is_undone_before_the_body_runs_again(self):
        n = self.x.numel()
        for more, first in (({"restore_value": ["total"]}, 6.0), ({"reset_to_zero": ["total"]}, 1.0)):
            kernel = triton.autotune(blocks(256, 512, 1024), key=["n"], **more)(add_to)
            kernel.do_bench = no_bench
            ones, total = torch.ones(n, device="cuda"), torch.full((n,), 5.0, device="cuda")
            step = self.region(lambda: kernel[of_elements(n)](total, ones, n))
            self.name += "_reset"
            step()
            self.assertEqual(total.unique().tolist(), [first])
            step()
            self.assertEqual(total.unique().tolist(), [first + 1.0])

    def test_a_hook_of_a_config_is_part_of_its_launch(self):
        n = self.x.numel()
        kernel = triton.autotune(blocks(256, 512, pre_hook=lambda named: named["total"].zero_()) +
                                 blocks(1024, pre_hook=lambda named: named["total"].zero_()),
                                 key=["n"])(add_to)
        kernel.do_bench = no_bench
        ones, total = torch.ones(n, device="cuda"), torch.full((n,), 5.0, device="cuda")
        self.region(lambda: kernel[of_elements(n)](total, ones, n))()
        self.assertEqual(total.unique().tolist(), [1.0])

    def test_a_captured_graph_keeps_the_winners(self):
        kernel = triton.autotune(blocks(256, 1024, 4096), key=["n"])(axpy.fn)
        kernel.do_bench = no_bench
        out, n = torch.empty_like(self.x), self.x.numel()
        step = self.region(lambda: kernel[of_elements(n)](out, self.x, self.y, 2.0, n))
        step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        out.zero_()
        graph.replay()
        torch.testing.assert_close(out, 2.0 * self.x + self.y)

    def test_a_second_process_starts_with_the_winners_of_the_first(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = []
            for _ in range(2):
                done = subprocess.run(
                    [sys.executable, __file__, "stored"], text=True, check=True, stdout=subprocess.PIPE,
                    env=os.environ | {"CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": folder,
                                      "CONTEXTUNE_LOG_DIR": f"{folder}/logs"})
                runs.append(int(done.stdout))
            print(f"runs of the body: {runs[0]}, and with the stored winners {runs[1]}")
            self.assertLess(runs[1], runs[0])

    def test_a_settled_launch_costs_little_in_a_region_and_nothing_outside(self):
        kernel = triton.autotune(blocks(256, 1024), key=["n"])(axpy.fn)
        small = torch.ones(1024, device="cuda")
        launch = lambda: kernel[(4,)](small, small, small, 1.0, 1024)
        as_usual = time_launches(launch)  # Triton's winner, before any region of this kernel
        self.region(launch)()
        inside, outside = [], []
        for _ in range(15):
            with contextune.region(self.name):
                inside.append(time_launches(launch))
            outside.append(time_launches(launch))
        more = statistics.median(one - other for one, other in zip(inside, outside, strict=True))
        print(f"us a launch: {as_usual:.2f} before, {statistics.median(outside):.2f} outside, "
              f"{statistics.median(inside):.2f} inside of a region")
        self.assertLess(more, MOST_MORE_US)
        self.assertEqual(triton.runtime.autotuner.Autotuner.run.__module__, "triton.runtime.autotuner")
        self.assertFalse(hasattr(triton.runtime.autotuner.Autotuner.run, "__wrapped__"))


def time_launches(launch):
    """us of the host for each."""
    torch.cuda.synchronize()
    times = []
    for _ in range(LAUNCHES // 100):
        begin = time.perf_counter()
        for _ in range(100):
            launch()
        times.append((time.perf_counter() - begin) * 1e4)
        torch.cuda.synchronize()
    return statistics.median(times)


def tune_with_store():
    """How often the body runs in one call."""
    x, out = (torch.ones(1 << 22, device="cuda") for _ in range(2))
    runs = 0

    @contextune.contextual_autotune(name="stored")
    def body():
        nonlocal runs
        runs += 1
        axpy[of_elements(x.numel())](out, x, x, 2.0, x.numel())

    body()
    print(runs)


if __name__ == "__main__":
    if sys.argv[1:] == ["stored"]:
        tune_with_store()
    else:
        unittest.main(argv=sys.argv[:1], verbosity=2)
