"""Kernels that Triton compiles for a GPU that is not there: its own JIT functions, compilers and Autotuner,
over a driver whose launches go to the simulated one. Skipped where there is no Triton."""

import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from concurrent.futures import ThreadPoolExecutor

import contextune
from simulated import Gpu, clear_logs, lines

_compiled = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = _compiled.name  # an earlier run has left nothing
try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.runtime import _async_compile
    from triton.runtime.driver import driver
except ImportError:
    print("skipped: there is no Triton for this Python")
    sys.exit(4)  # as CTest knows it

clear_logs()
gpu = Gpu()
launched = []
LARGEST_SHARED = 48 << 10
LIMIT = 60  # seconds, of what would hang


class Utils:
    """Loads nothing. A block has 48 KiB of shared memory."""

    def get_device_properties(self, device):
        return {"max_shared_mem": LARGEST_SHARED, "multiprocessor_count": 132}

    def load_binary(self, name, binary, shared, device):
        return 1, name, 32, 0, 1024

    def unload_module(self, module):
        pass


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


def fill(y, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + index, 1.0, mask=index < n)


def fill_too(y, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + index, 2.0, mask=index < n)


def autotuned(function, *warps):
    """Anew, as nothing of it is compiled."""
    return triton.autotune(configs(*warps), key=["n"])(triton.jit(function))


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

    def compilers(self, before):
        """Compilers of kernels that are new, each of which calls this with its kernel's name and threads."""
        as_usual = triton.compiler.compile

        def compile_after(source, *args, **kwargs):
            before(source.name, 32 * kwargs["options"]["num_warps"])
            return as_usual(source, *args, **kwargs)

        return unittest.mock.patch("triton.compiler.compile", compile_after)

    def test_all_configs_are_compiled_in_parallel_before_the_second_launch(self):
        threads, tuner = set(), autotuned(fill, 8, 4, 2)

        def compile_slowly(name, config):
            threads.add(threading.get_ident())
            self.assertEqual(launched, [])
            time.sleep(0.2)  # so that one thread does not take all of them

        with self.compilers(compile_slowly):
            self.region(lambda: tuner[(8,)](self.y, 1000))()
        self.assertGreaterEqual(len(threads), min(3, len(os.sched_getaffinity(0))))
        self.assertEqual(launched[:24], 8 * [256] + 8 * [128] + 8 * [64])
        self.assertEqual(tuner.best_config.num_warps, 4)
        self.assertEqual([config.num_warps for config in tuner.cache.values()], [4])
        tuner[(8,)](self.y, 1000)
        self.assertEqual(launched[-1], 128)
        for thread in threading.enumerate():  # they are threads of the program, for others who count those
            if thread.name.startswith("contextune"):
                thread.join(LIMIT)
                self.assertFalse(thread.is_alive())

    def test_what_triton_has_on_disk_is_loaded_by_the_thread_that_launches(self):
        def threads_of_compilers():
            threads, tuner = [], autotuned(fill, 8, 4, 2)
            with self.compilers(lambda *_: threads.append(threading.get_ident())):
                self.region(lambda: tuner[(8,)](self.y, 1000))()
            return threads

        # Others come where one takes 5 ms, as it may on a busy machine.
        self.assertIn(3 * [threading.get_ident()], [threads_of_compilers() for _ in range(5)])

    def test_kernels_of_a_region_are_compiled_beside_each_other(self):
        first, second = autotuned(fill, 8, 4, 2), autotuned(fill_too, 8, 4, 2)
        is_second_begun, compiled = threading.Event(), []

        def compile_in_turn(name, config):
            if name == "fill_too":
                is_second_begun.set()
            elif config != 256:  # of the first kernel all but its default
                self.assertTrue(is_second_begun.wait(LIMIT))
                compiled.append(len(launched))

        def body():
            first[(8,)](self.y, 1000)
            second[(8,)](self.y, 1000)

        with self.compilers(compile_in_turn):
            self.region(body)()
        self.assertEqual(len(compiled), 2)
        self.assertGreaterEqual(min(compiled), 1)  # the first kernel's first launch has waited for neither
        self.assertEqual([one.best_config.num_warps for one in (first, second)], [4, 4])

    def test_a_second_launch_in_one_run_waits_for_all(self):
        tuner, compiled = autotuned(fill, 8, 4, 2), []

        def body():
            tuner[(8,)](self.y, 1000)
            tuner[(8,)](self.y, 1000)
            self.assertEqual(sorted(compiled), [64, 128, 256])

        with self.compilers(lambda name, config: (time.sleep(0.1), compiled.append(config))):
            self.region(body)()

    def test_a_default_that_cannot_run_leaves_its_place_to_the_next_in_order_not_in_time(self):
        tuner, is_last_compiled = autotuned(fill, 16, 8, 4), threading.Event()

        def compile_backwards(name, config):
            if config == 512:
                raise ValueError("no such layout")
            if config == 128:
                is_last_compiled.set()
            elif len(os.sched_getaffinity(0)) > 1:
                is_last_compiled.wait(LIMIT)

        with self.compilers(compile_backwards):
            self.region(lambda: tuner[(8,)](self.y, 1000))()
        self.assertEqual(list(dict.fromkeys(launched)), [256, 128])
        self.assertTrue(lines("num_warps=16", "ValueError: no such layout"))

    def test_a_config_that_needs_more_shared_memory_than_there_is_is_a_failed_config(self):
        self.region(lambda: turn[(1,)](self.y, 64))()
        self.assertEqual(turn.best_config.all_kwargs()["ROWS"], 16)
        self.assertEqual(turn.best_config.num_warps, 4)
        self.assertTrue(lines("ROWS=256", "OutOfResources: out of resource: shared memory"))

    def test_a_kernel_that_does_not_compile_raises_what_triton_raises(self):
        with self.assertRaisesRegex(triton.compiler.CompilationError, "unknown_name"):
            self.region(lambda: wrong[(8,)](self.y, 1000))()

    def test_a_failure_that_triton_was_told_of_first_is_told_of_here_too(self):
        tuner = autotuned(fill, 8, 4)

        def fail(name, config):
            if config == 128:
                raise ValueError("no such layout")

        def body():
            tuner[(8,)](self.y, 1000)
            if len(launched) == 1:
                with self.assertRaisesRegex(ValueError, "no such layout"):
                    tuner.fn[(8,)](self.y, 1000, BLOCK=1024, num_warps=4)

        with self.compilers(fail):
            self.region(body)()
        self.assertEqual(set(launched), {256})
        self.assertTrue(lines(self.id().rsplit(".", 1)[-1], "ValueError: no such layout"))

    def test_who_compiles_in_parallel_by_triton_s_own_means_does_so_in_a_region_too(self):
        tuner, names = autotuned(fill, 8, 4, 2), []
        with ThreadPoolExecutor(2, thread_name_prefix="caller") as threads, \
                self.compilers(lambda *_: names.append(threading.current_thread().name)), \
                _async_compile.AsyncCompileMode(threads):
            self.region(lambda: tuner[(8,)](self.y, 1000))()
        self.assertEqual([name.partition("_")[0] for name in names], 3 * ["caller"])
        self.assertEqual(tuner.best_config.num_warps, 4)

    def test_a_triton_that_compiles_one_at_a_time_does_so_before_the_first_launch(self):
        tuner, threads = autotuned(fill, 8, 4, 2), []

        def compile_here(name, config):
            self.assertEqual(launched, [])
            threads.append(threading.get_ident())

        with unittest.mock.patch.dict(sys.modules, {_async_compile.__name__: None}), \
                self.compilers(compile_here):
            self.region(lambda: tuner[(8,)](self.y, 1000))()
        self.assertEqual(threads, 3 * [threading.get_ident()])
        self.assertEqual(tuner.best_config.num_warps, 4)

    def test_the_end_of_the_process_waits_for_what_is_being_compiled_only(self):
        program = """
import atexit, os, threading, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # so that one thread compiles
import triton_compile_test as test

def compile_at_the_end(name, config):
    os.write(1, b"%d " % config)
    while config == 64 and threading.main_thread().is_alive():
        time.sleep(0.01)

tuner, y = test.autotuned(test.fill, 4, 2, 8, 1), test.gpu.tensor(1000)

def body():
    tuner[(8,)](y, 1000)
    raise KeyError("body")

test.Compile().compilers(compile_at_the_end).start()
try:
    test.Compile().region(body)()
except KeyError:
    # By Triton itself: a config that no thread will compile any more.
    atexit.register(lambda: tuner.fn[(8,)](y, 1000, BLOCK=1024, num_warps=1))
"""
        with tempfile.TemporaryDirectory() as logs:
            environment = os.environ | {"CONTEXTUNE_LOG_DIR": logs, "PYTHONPATH": os.pathsep.join(
                filter(None, (sys.path[0], os.environ.get("PYTHONPATH"))))}
            ended = subprocess.run([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE,
                                   timeout=LIMIT, env=environment)
        self.assertEqual(ended.returncode, 0)
        compiled = ended.stdout.split()
        self.assertEqual(compiled[-1], "32")
        self.assertLessEqual(set(compiled), {"128", "64", "32"})

    def run_with_store(self, folder, *warps, body="one", fails=0):
        """Threads of the configs that a process has launched, and of those that it has compiled until then.

        Only the default, the winner and one more can be compiled before all launches have returned.
        """
        program = """
import os, sys, threading, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # so that one thread compiles
import triton_compile_test as test

body, fails, *warps = sys.argv[1:]
tuner, y = test.autotuned(test.fill, *map(int, warps)), test.gpu.tensor(1000)
compiled, is_over = [], threading.Event()

def compile_slowly(name, config):
    compiled.append(config)
    if config == int(fails):
        raise ValueError("no such layout")
    if config == 64 and body != "search":
        is_over.wait(test.LIMIT)

def step():
    for _ in range(2 if body == "two" else 1):
        tuner[(8,)](y, 1000)

test.Compile().compilers(compile_slowly).start()
step = test.contextune.contextual_autotune(name="step")(step)
step()
if body != "search":
    step()
print(*test.launched, "|", *compiled)
is_over.set()
"""
        environment = os.environ | {
            "CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": f"{folder}/store",
            "CONTEXTUNE_LOG_DIR": f"{folder}/logs", "PYTHONPATH": os.pathsep.join(
                filter(None, (sys.path[0], os.environ.get("PYTHONPATH"))))}
        ended = subprocess.run([sys.executable, "-c", program, body, str(fails), *map(str, warps)], text=True,
                               stdout=subprocess.PIPE, timeout=LIMIT, env=environment)
        self.assertEqual(ended.returncode, 0)
        return [list(map(int, part.split())) for part in ended.stdout.split("|")]

    def test_a_stored_winner_is_compiled_without_the_configs_that_do_not_run(self):
        for warps in (8, 2, 1, 4), (4, 2, 1, 8):  # the winner is another one, and the default
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(set(self.run_with_store(folder, *warps, body="search")[1]), {256, 128, 64, 32})
                for body in "one", "two":
                    launched, compiled = self.run_with_store(folder, *warps, body=body)
                    self.assertEqual(set(launched), {128})
                    self.assertLessEqual(set(compiled), {32 * warps[0], 64, 128})

    def test_a_stored_winner_that_does_not_compile_leaves_its_place_to_the_default(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_with_store(folder, 8, 2, 1, 4, body="search")
            launched, _ = self.run_with_store(folder, 8, 2, 1, 4, fails=128)
            self.assertEqual(set(launched), {256})

    def test_a_config_that_is_new_beside_a_stored_winner_is_searched(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_with_store(folder, 8, 2, body="search")
            for _ in range(2):
                launched, _ = self.run_with_store(folder, 8, 2, 1, 4, body="search")
            self.assertIn(128, launched)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
