"""Kernels that Triton compiles for a GPU that is not there: its own JIT functions, compilers and Autotuner,
over a driver whose launches go to the simulated one. Skipped where there is no Triton."""

import os
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import contextune
from simulated import Gpu, clear_logs, lines

_compiled = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = _compiled.name  # an earlier run has left nothing
try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.runtime import _async_compile  # noqa: F401
    from triton.runtime.driver import driver
except ImportError:
    print("skipped: there is no Triton for this Python")
    sys.exit(4)  # as CTest knows it

clear_logs()
gpu = Gpu()
launched = []
LARGEST_SHARED = 48 << 10


class Utils:
    """Loads nothing. A block has 48 KiB of shared memory."""

    def get_device_properties(self, device):
        return {"max_shared_mem": LARGEST_SHARED, "multiprocessor_count": 132}

    def load_binary(self, name, binary, shared, device):
        return 1, name, 32, 0, 1024


class Launcher:
    """Launches what takes as long as the simulated kernel does with that many threads."""

    def __init__(self, source, metadata):
        self.threads = 32 * metadata.num_warps

    def __call__(self, grid_x, grid_y, grid_z, stream, function, metadata, launch_metadata, *others):
        launched.append(self.threads)
        _, _, y, *_ = others  # behind the hooks, the kernel's arguments
        gpu.launch("set", self.threads, y, 1.0)


class Driver:
    utils = Utils()
    launcher_cls = Launcher

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        raise NotImplementedError

    def get_benchmarker(self):
        raise AssertionError("Triton measures")


driver.set_active(Driver())


def configs(*warps):
    return [triton.Config({"BLOCK": 1024}, num_warps=number) for number in warps]


@triton.autotune(configs(8, 4, 2), key=["n"])
@triton.jit
def fill(y, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + index, 1.0, mask=index < n)


@triton.autotune([triton.Config({"ROWS": rows}, num_warps=warps) for rows, warps in
                  ((256, 8), (16, 8), (16, 4))], key=["n"])
@triton.heuristics({"COLUMNS": lambda named: triton.next_power_of_2(named["n"])})
@triton.jit
def turn(y, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    values = tl.load(y + rows * n + columns, mask=columns < n)
    product = tl.dot(values.to(tl.float16), tl.trans(values.to(tl.float16)))
    tl.store(y + rows * ROWS + tl.arange(0, ROWS)[None, :], product)


@triton.autotune(configs(4, 8), key=["n"])
@triton.jit
def wrong(y, n, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), unknown_name)  # noqa: F821


class Compile(unittest.TestCase):
    def setUp(self):
        self.y = gpu.tensor(1000)
        launched.clear()

    def region(self, body):
        return contextune.contextual_autotune(name=self.id().rsplit(".", 1)[-1], confirm=False,
                                              refine=False)(body)

    def test_all_configs_are_compiled_in_parallel_before_the_first_launch(self):
        compilers, as_usual = set(), triton.compiler.compile

        def compile_slowly(*args, **kwargs):
            compilers.add(threading.get_ident())
            self.assertEqual(launched, [])
            time.sleep(0.2)  # so that one thread does not take all of them
            return as_usual(*args, **kwargs)

        with unittest.mock.patch("triton.compiler.compile", compile_slowly):
            self.region(lambda: fill[(8,)](self.y, 1000))()
        self.assertEqual(len(compilers), min(3, len(os.sched_getaffinity(0))))
        self.assertNotIn(threading.get_ident(), compilers)
        self.assertEqual(launched[:24], 8 * [256] + 8 * [128] + 8 * [64])
        self.assertEqual(fill.best_config.num_warps, 4)
        self.assertEqual([config.num_warps for config in fill.cache.values()], [4])
        fill[(8,)](self.y, 1000)
        self.assertEqual(launched[-1], 128)

    def test_a_config_that_needs_more_shared_memory_than_there_is_is_a_failed_config(self):
        self.region(lambda: turn[(1,)](self.y, 64))()
        self.assertEqual(turn.best_config.all_kwargs()["ROWS"], 16)
        self.assertEqual(turn.best_config.num_warps, 4)
        self.assertTrue(lines("ROWS=256", "OutOfResources: out of resource: shared memory"))

    def test_a_kernel_that_does_not_compile_raises_what_triton_raises(self):
        with self.assertRaisesRegex(triton.compiler.CompilationError, "unknown_name"):
            self.region(lambda: wrong[(8,)](self.y, 1000))()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
