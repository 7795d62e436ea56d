"""Kernels of `triton.autotune` in regions: Triton's own Autotuner over JIT functions whose launches go to
the simulated driver. Skipped where there is no Triton."""

import copy
import ctypes
import os
import subprocess
import sys
import threading
import types
import unittest
import unittest.mock

import contextune
from contextune import _triton
from simulated import Gpu, Tensor, clear_logs, field, lines, require

try:
    import triton
    from simulated_triton import Kernel, configs
    from triton.runtime.errors import OutOfResources
except ImportError:
    print("skipped: there is no Triton for this Python")
    sys.exit(4)  # as CTest knows it

clear_logs()
gpu = Gpu()
FAST = {"confirm": False, "refine": False}  # the table alone: each config has its 8 passes


class TorchTensor(Tensor):
    """With what Triton's hooks do to tensors."""

    def copy_(self, other):
        require(gpu.cuda.cuMemcpyDtoD_v2(ctypes.c_uint64(self.address), ctypes.c_uint64(other.address),
                                         ctypes.c_size_t(4 * self.numel())), "cuMemcpyDtoD")

    def clone(self):
        copy = TorchTensor(gpu, self.shape)
        copy.copy_(self)
        return copy

    def zero_(self):
        gpu.launch("set", 128, self, 0.0)


class Launches(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1]
        self.y = TorchTensor(gpu, (1000,))
        self.benched = 0
        with contextune.region("first"):  # so that there is a hook
            self.hook = _triton._hook
        self.hook._num_changes = 0

    def bench(self, call, quantiles):
        """In the place of Triton's own measurement, which would need a GPU: the last one is fastest."""
        self.benched += 1
        call()
        return [1.0 / self.benched] * 3

    def tuned(self, kernel, given=(256, 128, 64), own_bench=False, **more):
        space = given if isinstance(given[0], triton.Config) else configs(*given)
        tuner = triton.autotune(space, key=["n"], **more)(kernel.function)
        tuner.do_bench = self.bench  # a cached property, so that the tuner has none of its user's
        return tuner

    def region(self, body, **more):
        return contextune.contextual_autotune(**{"name": self.name, **FAST, **more})(body)

    def test_in_a_region_a_kernel_is_a_site_and_triton_gets_its_winner(self):
        kernel = Kernel(gpu, name="filled")
        tuner = self.tuned(kernel)

        def body(value):
            return tuner[(8,)](self.y, value, 1000)

        step = self.region(body)
        self.assertEqual(step(2.0), "launched 128")
        self.assertEqual(set(self.y.read()), {2.0})
        self.assertEqual(self.benched, 0)
        self.assertEqual(kernel.launched[:24], 8 * [256] + 8 * [128] + 8 * [64])
        (winner,) = lines("event=winner", f"region={self.name} ")
        self.assertEqual((field(winner, "site"), field(winner, " key"), field(winner, "BLOCK")),
                         ("filled", "n=1000 dtypes=float32", "128"))
        self.assertEqual(tuner.best_config.kwargs, {"BLOCK": 128})
        self.assertEqual([config.kwargs for config in tuner.cache.values()], [{"BLOCK": 128}])
        self.assertEqual(len(tuner.configs_timings), 3)
        count = len(kernel.launched)
        self.assertEqual(tuner[(8,)](self.y, 3.0, 1000), "launched 128")  # outside, by Triton's own cache
        self.assertEqual(step(4.0), "launched 128")
        self.assertEqual((len(kernel.launched), self.benched), (count + 2, 0))
        self.assertEqual(set(self.y.read()), {4.0})

    def test_outside_of_regions_triton_does_what_it_did(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)
        self.region(lambda: None)()
        self.assertEqual(tuner[(8,)](self.y, 2.0, 1000), "launched 64")
        self.assertEqual((self.benched, kernel.compiled), (3, []))

    def test_each_launch_has_its_own_arguments_and_each_key_its_own_winner(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)
        other = TorchTensor(gpu, (10,))

        def body():
            tuner[(8,)](self.y, 2.0, 1000)
            tuner[(8,)](other, 3.0, 10)
            tuner[(8,)](self.y, 4.0, 1000)

        self.region(body)()
        self.assertEqual((set(self.y.read()), set(other.read())), ({4.0}, {3.0}))
        self.assertEqual(kernel.seen[:3], [(self.y.data_ptr(), 2.0), (other.data_ptr(), 3.0),
                                           (self.y.data_ptr(), 4.0)])
        self.assertEqual(len(lines("event=winner", f"region={self.name} ", count=2)), 2)
        self.assertEqual(kernel.launched[:24], 24 * [256])
        self.assertEqual(len(tuner.cache), 2)

    def test_all_configs_are_compiled_before_the_first_is_launched(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)

        def body():
            self.assertEqual(sorted(kernel.compiled), [] if not kernel.launched else [64, 128, 256])
            tuner[(8,)](self.y, 2.0, 1000)

        self.region(body)()

    def test_a_config_that_is_out_of_resources_is_a_failed_config(self):
        kernel = Kernel(gpu)
        kernel.failing = {128: OutOfResources(1 << 20, 1 << 18, "shared memory")}
        tuner = self.tuned(kernel)
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 64")
        self.assertTrue(lines("BLOCK=128", "OutOfResources: out of resource: shared memory"))
        self.assertEqual(set(self.y.read()), {2.0})

    def test_one_that_does_not_compile_and_one_that_cannot_be_launched_are_too(self):
        kernel = Kernel(gpu)
        kernel.failing = {128: SyntaxError("no such tile"), 64: RuntimeError("invalid argument")}
        tuner = self.tuned(kernel)
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 256")
        self.assertTrue(lines("SyntaxError: no such tile"))
        self.assertTrue(lines("RuntimeError: invalid argument"))

    def test_a_default_that_cannot_run_leaves_its_place_to_the_next(self):
        kernel = Kernel(gpu)
        kernel.failing = {256: OutOfResources(1 << 20, 1 << 18, "shared memory")}
        tuner = self.tuned(kernel, (256, 64, 128))
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 128")
        self.assertEqual(kernel.launched[0], 64)

    def test_where_no_config_can_run_the_launch_raises_why(self):
        kernel = Kernel(gpu)
        kernel.failing = {block: OutOfResources(1 << 20, 1 << 18, "shared memory")
                          for block in (64, 128, 256)}
        tuner = self.tuned(kernel)
        with self.assertRaises(OutOfResources):
            self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))()

    def test_configs_are_pruned_as_triton_does_and_the_best_by_the_model_is_the_default(self):
        kernel = Kernel(gpu)
        asked = []

        def early(given, nargs, **kwargs):
            asked.append((nargs["n"], kwargs["grid"]))
            return [config for config in given if config.kwargs["BLOCK"] != 32]

        tuner = self.tuned(kernel, (32, 256, 128, 64), prune_configs_by={
            "early_config_prune": early, "top_k": 2,
            "perf_model": lambda BLOCK, n, **_: {256: 3.0, 128: 2.0, 64: 1.0}[BLOCK]})
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 128")
        self.assertEqual(kernel.launched[:9], 8 * [64] + [128])
        self.assertEqual(set(kernel.launched), {64, 128})
        self.assertEqual(asked, [(1000, (8,))])

    def test_pruning_may_make_configs_of_its_own(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel, prune_configs_by={
            "early_config_prune": lambda given, nargs, **_: given[:1] + configs(512, 128)})
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 128")

    def test_a_pre_hook_of_a_config_runs_before_each_of_its_launches(self):
        kernel = Kernel(gpu, "add")
        hooked = []

        def clear(named):
            hooked.append(named["BLOCK"])
            named["y"].zero_()

        tuner = self.tuned(kernel, configs(256, pre_hook=clear) + configs(128, pre_hook=clear))
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 128")
        self.assertEqual(set(self.y.read()), {2.0})
        self.assertEqual(hooked[2:], kernel.launched)

    def test_what_a_kernel_says_it_changes_is_put_back_before_the_body_runs_again(self):
        for more in ({"restore_value": ["y"]}, {"reset_to_zero": ["y"]}):
            kernel = Kernel(gpu, "add")
            tuner = self.tuned(kernel, **more)
            gpu.launch("set", 128, self.y, 5.0)
            step = self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))
            self.name += "_reset"
            step()
            # As with Triton: what is reset is so before the launch that meets a new key.
            first = 7.0 if "restore_value" in more else 2.0
            self.assertEqual(set(self.y.read()), {first})
            step()
            self.assertEqual(set(self.y.read()), {first + 2.0})

    def test_a_region_that_is_not_repeated_resets_before_the_first_launch_only(self):
        kernel = Kernel(gpu, "add")
        tuner = self.tuned(kernel, reset_to_zero=["y"])
        gpu.launch("set", 128, self.y, 5.0)
        for runs in range(1, 30):
            with contextune.region(self.name, **FAST):
                tuner[(8,)](self.y, 1.0, 1000)
            self.assertEqual(set(self.y.read()), {float(runs)})
        self.assertEqual(kernel.launched[-1], 128)
        self.assertEqual(set(kernel.launched), {64, 128, 256})

    def test_hooks_of_the_user_are_called_around_each_run_of_the_body(self):
        kernel = Kernel(gpu, "add")
        kept = []
        tuner = self.tuned(kernel, pre_hook=lambda named, reset_only=False: kept.append(named["y"].clone()),
                           post_hook=lambda named, exception: named["y"].copy_(kept[-1]))
        self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))()
        self.assertEqual(set(self.y.read()), {2.0})
        self.assertGreaterEqual(len(kept), 24)

    def test_heuristics_are_asked_at_each_launch(self):
        kernel = Kernel(gpu)
        inner = triton.heuristics({"num_stages": lambda named: 1 if named["BLOCK"] > 64 else 2})
        tuner = triton.autotune(configs(256, 128), key=["n"])(inner(kernel.function))
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 128")
        outer = triton.heuristics({"n": lambda named: 7})(self.tuned(Kernel(gpu, name="outer")))
        self.assertEqual(self.region(lambda: outer[(8,)](self.y, 2.0), name="outer_region")(),
                         "launched 128")
        self.assertTrue(lines("event=winner", "site=outer ", "n=7"))

    def test_a_do_bench_of_the_user_is_named_as_not_supported(self):
        kernel = Kernel(gpu, name="benched")
        tuner = triton.autotune(configs(256, 128), key=["n"], do_bench=self.bench)(kernel.function)
        with self.assertWarnsRegex(contextune.UntunedWarning, "'benched'.*do_bench.*not supported"):
            self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 128")
        self.assertEqual(self.benched, 0)
        tuner[(8,)](self.y, 2.0, 1001)
        self.assertEqual(self.benched, 2)

    def test_kernels_of_one_name_and_other_code_are_other_sites(self):
        first, second = Kernel(gpu, name="same"), Kernel(gpu, "add", name="same")
        second.function.hash = "other"
        tuners = [self.tuned(first), self.tuned(second)]

        def body():
            for tuner in tuners:
                tuner[(8,)](self.y, 2.0, 1000)

        self.region(body)()
        sites = {field(line, "site") for line in lines("event=winner", f"region={self.name} ", count=2)}
        self.assertEqual(len(sites), 2)
        self.assertEqual(len(tuners[0].cache) + len(tuners[1].cache), 2)

    def test_regions_in_regions_tell_triton_at_the_end_of_the_outermost(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)
        inner = self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))
        with contextune.region(self.name + "_outer"):
            inner()
        self.assertEqual([config.kwargs for config in tuner.cache.values()], [{"BLOCK": 128}])

    def test_within_a_function_or_a_choice_whose_call_is_timed_as_a_whole_triton_does_what_it_did(self):
        first, second = Kernel(gpu), Kernel(gpu)
        tuners = [self.tuned(first), self.tuned(second)]

        @contextune.autotune([{"times": 2}, {"times": 1}], name=self.name + "_function")
        def fill(y, times):
            for _ in range(times):
                tuners[0][(8,)](y, 2.0, 1000)

        choice = contextune.Choice(self.name + "_choice", buffers=lambda y: [y])
        choice.add("only")(lambda y: tuners[1][(8,)](y, 2.0, 1000))
        choice.add("other")(lambda y: tuners[1][(8,)](y, 2.0, 1000))
        self.region(lambda: (fill(self.y), choice(self.y)))()
        self.assertEqual(self.benched, 6)
        self.assertEqual(set(first.launched[3:]) | set(second.launched[3:]), {64})

    def test_other_threads_and_warm_ups_are_triton_s_own(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)
        kernel.compiled.clear()
        results = []

        def elsewhere():
            gpu.cuda.cuCtxSetCurrent(gpu.context)
            results.append(tuner[(8,)](self.y, 2.0, 1000))

        with contextune.region(self.name, **FAST):
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            self.assertEqual((results, self.benched), (["launched 64"], 3))
            tuner.run(self.y, 2.0, 1000, grid=(8,), warmup=True)
        self.assertEqual(kernel.compiled, [64])

    def test_an_exception_of_the_body_leaves_triton_as_it_was(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)

        def body():
            tuner[(8,)](self.y, 2.0, 1000)
            raise KeyError("body")

        with self.assertRaises(KeyError):
            self.region(body)()
        self.assertEqual(tuner.cache, {})
        self.assertEqual(tuner[(8,)](self.y, 2.0, 1000), "launched 64")
        self.assertEqual(self.benched, 3)

    def test_a_launch_that_a_graph_captures_is_no_trial(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)
        captures = [True]
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(
            is_initialized=lambda: True, is_current_stream_capturing=lambda: captures[0],
            current_stream=lambda: types.SimpleNamespace(cuda_stream=0)))
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            with contextune.region(self.name, **FAST):
                self.assertEqual(tuner[(8,)](self.y, 2.0, 1000), "launched 256")
                self.assertEqual((kernel.compiled, self.benched), ([], 0))
                captures[0] = False
                tuner[(8,)](self.y, 2.0, 1000)
                self.assertEqual(kernel.compiled, [256, 128, 64])

    def test_a_key_that_comes_when_a_region_is_tuned_is_tuned_in_it_from_then_on(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)
        sizes = [1000]

        def body():
            for size in sizes:
                result = tuner[(8,)](self.y, 2.0, size)
            return result

        step = self.region(body)
        self.assertEqual(step(), "launched 128")
        sizes.append(10)
        results = [step() for _ in range(80)]
        self.assertLess(results.index("launched 128"), 5)  # a key that comes once is not worth a search
        self.assertEqual(results[-1], "launched 128")
        self.assertEqual(self.benched, 0)
        self.assertEqual([config.kwargs for config in tuner.cache.values()], 2 * [{"BLOCK": 128}])

    def test_who_else_replaces_the_launch_of_triton_is_called_outside_of_regions(self):
        called = []

        def of_another(self, *args, **kwargs):
            called.append(args)
            return as_usual(self, *args, **kwargs)

        tuner = self.tuned(Kernel(gpu))
        Autotuner = type(tuner)
        as_usual = Autotuner.run
        with unittest.mock.patch.object(Autotuner, "run", of_another):
            self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))()
            self.assertEqual(called, [])
            self.assertIs(Autotuner.run, of_another)
            tuner[(8,)](self.y, 2.0, 1000)
            self.assertEqual(len(called), 1)
        self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))()
        self.assertIs(Autotuner.run, as_usual)

    def test_outside_of_regions_the_launch_is_triton_s_own(self):
        tuner = self.tuned(Kernel(gpu))
        Autotuner = type(tuner)
        run = Autotuner.run
        self.assertFalse(hasattr(run, "__wrapped__"))
        with contextune.region(self.name):
            self.assertIsNot(Autotuner.run, run)
            with contextune.region(self.name + "_inner"):
                pass
            self.assertIsNot(Autotuner.run, run)
        self.assertIs(Autotuner.run, run)
        self.hook._num_changes = 1000  # of the class, which its interpreter does not like
        with contextune.region(self.name):
            pass
        self.assertIsNot(Autotuner.run, run)
        self.assertEqual((tuner[(8,)](self.y, 2.0, 1000), self.benched), ("launched 64", 3))
        self.hook._num_changes = 0
        with contextune.region(self.name):
            pass
        self.assertIs(Autotuner.run, run)

    def test_a_triton_that_is_imported_in_a_region_is_found(self):
        program = """
import sys
import contextune
from contextune import _triton
from simulated import Gpu
gpu = Gpu()
y = gpu.tensor(1000)

@contextune.contextual_autotune()
def step():
    global tuner
    if "simulated_triton" not in sys.modules:
        assert "triton" not in sys.modules
        import simulated_triton
        tuner = simulated_triton.triton.autotune(simulated_triton.configs(256, 128), key=["n"])(
            simulated_triton.Kernel(gpu).function)
    return tuner[(8,)](y, 2.0, 1000)

print(step())
loader = sys.modules["triton.runtime.autotuner"].__spec__.loader
assert type(loader).__module__.startswith("_frozen_importlib"), loader
"""
        ended = subprocess.run([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE,
                               env=os.environ | {"PYTHONPATH": os.pathsep.join(
                                   filter(None, (sys.path[0], os.environ.get("PYTHONPATH"))))})
        self.assertEqual(ended.stdout, "launched 128\n", ended.stderr)

    def test_a_copy_of_a_kernel_is_a_kernel_of_its_own(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel)
        self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))()
        other = copy.copy(tuner)
        other.cache = {}
        self.region(lambda: other[(8,)](self.y, 2.0, 1000), name=self.name + "_copied")()
        self.assertEqual([config.kwargs for config in other.cache.values()], [{"BLOCK": 128}])
        self.assertIsNone(copy.deepcopy(tuner._contextune))

    def test_a_kernel_with_one_config_is_launched_as_usual(self):
        kernel = Kernel(gpu)
        tuner = self.tuned(kernel, (64,))
        self.assertEqual(self.region(lambda: tuner[(8,)](self.y, 2.0, 1000))(), "launched 64")
        self.assertEqual(set(kernel.launched), {64})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
