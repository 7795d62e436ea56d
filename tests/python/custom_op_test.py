"""Custom ops of PyTorch over kernels of the simulated driver: in eager mode, in compiled models, in regions."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings
from typing import List, Optional

import contextune
from contextune import CustomOpConfig, TimingState, register_custom_op_autotuning
from simulated import clear_logs, field, lines

clear_logs()
if importlib.util.find_spec("torch") is None:
    print("skipped: there is no PyTorch for this Python")
    sys.exit(4)  # as CTest knows it
assert "torch" not in sys.modules, "importing contextune has imported PyTorch"

import torch  # noqa: E402
from contextune._custom_op_call import OpCall  # noqa: E402
from simulated_torch import TorchGpu  # noqa: E402

warnings.filterwarnings("ignore", message="CUDA initialization")
gpu = TorchGpu()
HERE = pathlib.Path(__file__).parent
STORED = """
import torch
from contextune import CustomOpConfig, register_custom_op_autotuning
from simulated_torch import TorchGpu

gpu, ran = TorchGpu(), []

def fill(name, block, x, value):
    ran.append(name)
    out = gpu.empty(tuple(x.shape))
    gpu.run("set", block, out, value)
    return out

@torch.library.custom_op("stored::fill", mutates_args=())
def slow(x: torch.Tensor) -> torch.Tensor:
    return fill("slow", 256, x, 7.0)

slow.register_fake(torch.empty_like)

def fast(x):
    return fill("fast", 128, x, VALUE)

register_custom_op_autotuning(slow, [CustomOpConfig(fast)])
slow(gpu.full((10, 100), 0.0))
runs = len(ran)
slow(gpu.full((10, 100), 0.0))
print(ran[-1], "few" if runs < 12 else "several")
"""


class CustomOps(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1][:60]
        self.x = gpu.full((10, 100), 2.0)
        self.ran = []

    def filled(self, fake=True, device_types=None):
        """An op that makes a tensor of one value, slowly."""
        def slow(x: torch.Tensor, value: float = 1.0) -> torch.Tensor:
            return self.fill("slow", 256, x, value)

        op = torch.library.custom_op(f"tests::{self.name}", slow, mutates_args=(),
                                     device_types=device_types)
        if fake:
            op.register_fake(lambda x, value=1.0: torch.empty_like(x))
        return op

    def fill(self, name, block, x, value):
        self.ran.append(name)
        out = gpu.empty(tuple(x.shape))
        gpu.run("set", block, out, value)
        return out

    def fast(self, x, value=1.0):
        return self.fill("fast", 128, x, value)

    def blocked(self, x, value=1.0, block=256):
        return self.fill(block, block, x, value)

    def runs(self, op, *args):
        """What one call runs, and its result."""
        count = len(self.ran)
        result = op(*args)
        return self.ran[count:], set(result.flatten().tolist())

    def test_the_fastest_implementation_is_found_at_the_first_call_and_then_called_once_a_call(self):
        op = self.filled()
        tuned = register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        ran, values = self.runs(op, self.x, 3.0)
        self.assertEqual(values, {3.0})
        self.assertEqual(set(ran), {"slow", "fast"})
        self.assertEqual(self.runs(op, self.x, 4.0), (["fast"], {4.0}))
        slow, fast = tuned.timings(self.x)
        self.assertEqual((slow.implementation, fast.implementation), (self.name, "fast"))
        self.assertTrue(fast.is_winner)
        self.assertLess(fast.seconds, slow.seconds)

    def test_what_is_timed_is_the_implementation_and_no_copy(self):
        op = self.filled()
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        copies = []
        keep = OpCall._keep
        with unittest.mock.patch.object(OpCall, "_keep", lambda call, value: copies.append(keep(call, value))):
            ran, _ = self.runs(op, self.x)
        self.assertGreater(len(ran), 20)
        self.assertLess(len(copies), 6)

    def test_each_size_and_order_of_elements_is_a_problem_of_its_own(self):
        op = self.filled()
        tuned = register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        for x in self.x, gpu.full((20, 100), 0.0), self.x.t():
            self.assertGreater(len(self.runs(op, x)[0]), 10)
            self.assertEqual(self.runs(op, x), (["fast"], {1.0}))
        self.assertTrue(lines("event=winner", f"site=tests::{self.name}", "x=[100,10]"))  # the last
        winners = lines("event=winner", f"site=tests::{self.name}")
        for part in "x=[10,100]float32", "x=[20,100]float32", "x=[100,10]/[1,100]float32":
            self.assertEqual(sum(part in winner for winner in winners), 1, winners)
        self.assertEqual(len(tuned.timings(self.x)), 2)

    def test_sizes_between_split_points_are_one_problem(self):
        op = self.filled()
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)], split_points=[16, 64],
                                      dispatch_on={"tensor_name": "x", "dim": 0})
        self.assertGreater(len(self.runs(op, self.x)[0]), 10)
        self.assertEqual(self.runs(op, gpu.full((16, 100), 0.0)), (["fast"], {1.0}))
        self.assertGreater(len(self.runs(op, gpu.full((17, 100), 0.0))[0]), 10)
        self.assertTrue(lines("event=winner", "x=[17-64,100]float32"))

    def test_sizes_in_one_bucket_are_one_problem(self):
        op = self.filled()
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)], buckets="pow2",
                                      dispatch_on={"tensor_name": "x", "dim": 0})
        self.assertGreater(len(self.runs(op, self.x)[0]), 10)
        self.assertEqual(self.runs(op, gpu.full((9, 100), 0.0)), (["fast"], {1.0}))

    def test_parameters_of_one_function_are_its_configs(self):
        op = self.filled()
        tuned = register_custom_op_autotuning(
            op, [CustomOpConfig(self.blocked, block=block) for block in (256, 128, 64)])
        op(self.x, 1.0)
        self.assertEqual(self.runs(op, self.x, 2.0), ([128], {2.0}))
        self.assertEqual([one.config for one in tuned.timings(self.x)],
                         [{}, {"block": 256}, {"block": 128}, {"block": 64}])

    def test_a_config_without_a_function_is_the_ops_own_with_parameters_that_calls_may_set(self):
        def slow(x: torch.Tensor, block: int = 256) -> torch.Tensor:
            return self.fill(block, block, x, 1.0)

        op = torch.library.custom_op(f"tests::{self.name}", slow, mutates_args=())
        op.register_fake(lambda x, block=256: torch.empty_like(x))
        register_custom_op_autotuning(op, [CustomOpConfig(block=128), CustomOpConfig(op, block=64)])
        op(self.x)
        self.assertEqual(self.runs(op, self.x), ([128], {1.0}))
        op(self.x, 64)
        self.assertEqual(self.runs(op, self.x, 64), ([64], {1.0}))

    def test_an_implementation_that_computes_something_else_is_never_chosen(self):
        op = self.filled()

        def wrong(x, value=1.0):
            return self.fill("wrong", 128, x, 9.0)

        def of_another_shape(x, value=1.0):
            return self.fill("shape", 128, x[:5], value)

        def raises(x, value=1.0):
            raise ValueError("no such kernel")

        tuned = register_custom_op_autotuning(op, map(CustomOpConfig, (wrong, of_another_shape, raises)))
        self.assertEqual(self.runs(op, self.x)[1], {1.0})
        self.assertEqual(self.runs(op, self.x), (["slow"], {1.0}))
        self.assertEqual([one.state for one in tuned.timings(self.x)[1:]],
                         [TimingState.WRONG, TimingState.FAILED, TimingState.FAILED])
        self.assertTrue(lines("a result is (5, 100)"))
        self.assertTrue(lines("ValueError: no such kernel"))

    def test_an_op_that_changes_its_argument_changes_it_once_a_call(self):
        def slow(x: torch.Tensor, value: float) -> None:
            self.ran.append("slow")
            gpu.run("add", 256, x, value)

        def fast(x, value):
            self.ran.append("fast")
            gpu.run("add", 128, x, value)

        op = torch.library.custom_op(f"tests::{self.name}", slow, mutates_args=("x",))
        register_custom_op_autotuning(op, [CustomOpConfig(fast)])
        op(self.x, 3.0)
        self.assertIn("fast", self.ran)
        self.assertEqual(set(self.x.flatten().tolist()), {5.0})
        self.ran.clear()
        op(self.x, 1.0)
        self.assertEqual((self.ran, set(self.x.flatten().tolist())), (["fast"], {6.0}))

    def test_a_compiled_model_of_an_op_that_changes_its_argument_is_right(self):
        def slow(x: torch.Tensor, out: torch.Tensor) -> None:
            self.ran.append("slow")
            gpu.run("set", 256, out, 5.0)

        def fast(x, out):
            self.ran.append("fast")
            gpu.run("set", 128, out, 5.0)

        op = torch.library.custom_op(f"tests::{self.name}", slow, mutates_args=("out",))
        register_custom_op_autotuning(op, [CustomOpConfig(fast)])
        out = gpu.full((10, 100), 0.0)

        def model(x, out):
            op(x, out)
            return out + 1

        compiled = torch.compile(model, backend="eager", fullgraph=True)
        self.assertEqual(set(compiled(self.x, out).flatten().tolist()), {6.0})
        self.assertIn("fast", self.ran)
        self.assertEqual(self.runs(compiled, self.x, out), (["fast"], {6.0}))

    def test_arguments_may_be_lists_and_optional_and_given_by_name(self):
        def slow(xs: List[torch.Tensor], bias: Optional[torch.Tensor] = None, *, rows: int = 1,
                 scale: float = 1.0) -> torch.Tensor:
            return self.fill("slow", 256, xs[0], scale)

        def fast(xs, bias=None, *, rows=1, scale=1.0):
            return self.fill("fast", 128, xs[0], scale)

        op = torch.library.custom_op(f"tests::{self.name}", slow, mutates_args=())
        op.register_fake(lambda xs, bias=None, *, rows=1, scale=1.0: torch.empty_like(xs[0]))
        register_custom_op_autotuning(op, [CustomOpConfig(fast)])
        calls = (lambda scale: op([self.x, self.x], scale=scale),
                 lambda scale: op([self.x], bias=self.x, scale=scale),
                 lambda scale: op([self.x], rows=3, scale=scale))
        for call in calls:
            self.assertGreater(len(self.runs(call, 1.0)[0]), 10)
            self.assertEqual(self.runs(call, 4.0), (["fast"], {4.0}))
        self.assertTrue(lines("event=winner", "rows=3"))

    def test_parameters_may_have_any_name(self):
        def slow(_at: torch.Tensor, _settled: float) -> torch.Tensor:
            return self.fill("slow", 256, _at, _settled)

        op = torch.library.custom_op(f"tests::{self.name}", slow, mutates_args=())
        op.register_fake(lambda _at, _settled: torch.empty_like(_at))
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        self.runs(op, self.x, 1.0)
        self.assertEqual(self.runs(op, self.x, 4.0), (["fast"], {4.0}))

    def test_without_a_fake_implementation_a_run_says_how_large_results_are(self):
        op = self.filled(fake=False)
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        self.assertEqual(self.runs(op, self.x, 3.0)[1], {3.0})
        self.assertEqual(self.runs(op, self.x, 4.0), (["fast"], {4.0}))

    def test_a_fake_implementation_that_is_wrong_leaves_the_default(self):
        op = self.filled(fake=False)
        op.register_fake(lambda x, value=1.0: x.new_empty(3))
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        for value in 3.0, 4.0:
            self.assertEqual(self.runs(op, self.x, value)[1], {value})
        self.assertEqual(self.runs(op, self.x), (["slow"], {1.0}))
        self.assertTrue(lines("as its fake implementation is wrong"))

    def test_inputs_of_its_own_leave_the_callers_tensors_alone(self):
        op = self.filled()
        seen = []

        def fast(x, value=1.0):
            seen.append(x.data_ptr())
            return self.fast(x, value)

        made = []
        register_custom_op_autotuning(op, [CustomOpConfig(fast)], input_gen_fns={
            "x": lambda fake: made.append(fake) or gpu.full(tuple(fake.shape), 0.0)})
        self.assertEqual(self.runs(op, self.x, 3.0)[1], {3.0})
        self.assertEqual([tuple(one.shape) for one in made], [(10, 100)])
        self.assertEqual(seen[-1], self.x.data_ptr())
        self.assertNotIn(self.x.data_ptr(), seen[:-1])

    def test_a_choice_of_fused_implementations_is_the_operators(self):
        for fusion, wanted in ("auto", "fused"), ("off", "middle"), ("on", "fused"):
            self.name = f"fused_{fusion}"
            op = self.filled()

            def fused(x, value=1.0):
                return self.fill("fused", 128, x, value)

            def middle(x, value=1.0):
                return self.fill("middle", 64, x, value)

            register_custom_op_autotuning(
                op, [CustomOpConfig(fused=False), CustomOpConfig(middle, fused=False),
                     CustomOpConfig(fused, fused=True)], fusion=fusion)
            op(self.x)
            self.assertEqual(self.runs(op, self.x)[0], [wanted])

    def test_a_compiled_model_keeps_the_op_and_runs_what_was_chosen(self):
        op = self.filled()
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        called = []

        def backend(graph, _):
            called.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
            return graph.forward

        def model(x):
            return op(x, 3.0) + 1

        for one in backend, "eager", "aot_eager":
            torch.compiler.reset()
            compiled = torch.compile(model, backend=one, fullgraph=True)
            self.assertEqual(set(compiled(self.x).flatten().tolist()), {4.0})
            self.assertEqual(self.runs(compiled, self.x), (["fast"], {4.0}))
        self.assertTrue(any(self.name in target for target in called), called)

    def test_derivatives_are_still_the_ops(self):
        op = self.filled()
        op.register_autograd(lambda context, gradient: (gradient * 7, None))
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        self.x.requires_grad_()
        op(self.x).sum().backward()
        self.assertEqual(set(self.x.grad.flatten().tolist()), {7.0})
        with torch.inference_mode():
            self.assertEqual(self.runs(op, self.x.detach()), (["fast"], {1.0}))
            other = gpu.full((30, 100), 0.0)
            self.assertGreater(len(self.runs(op, other)[0]), 10)
            self.assertEqual(self.runs(op, other), (["fast"], {1.0}))

    def test_several_ops_in_a_region_are_searched_in_its_passes_together(self):
        ops = []
        for number in 1, 2:
            self.name = f"of_region_{number}"
            ops.append(self.filled())
            register_custom_op_autotuning(ops[-1], [CustomOpConfig(self.fast)])

        @contextune.contextual_autotune(name="two_ops", confirm=False)
        def step(x):
            return ops[0](ops[1](x, 2.0), 3.0)

        self.assertEqual(set(step(self.x).flatten().tolist()), {3.0})
        winners = lines("event=winner", "region=two_ops", count=2)
        self.assertEqual({field(one, "site"): field(one, "implementation") for one in winners},
                         {"tests::of_region_1": "fast", "tests::of_region_2": "fast"})
        self.assertFalse(lines("event=winner", 'region="choice tests::of_region_1', seconds=0))
        self.ran.clear()
        step(self.x)
        self.assertEqual(self.ran, ["fast", "fast"])
        self.assertEqual(self.runs(ops[0], self.x)[0], ["fast"])

    def test_a_winner_that_can_not_run_any_more_gives_way_to_the_default(self):
        op = self.filled()
        is_broken = []

        def fragile(x, value=1.0):
            if is_broken:
                raise RuntimeError("it broke")
            return self.fast(x, value)

        register_custom_op_autotuning(op, [CustomOpConfig(fragile)])
        op(self.x)
        self.assertEqual(self.runs(op, self.x)[0], ["fast"])
        is_broken.append(True)
        self.assertEqual(self.runs(op, self.x, 3.0), (["slow"], {3.0}))
        self.assertEqual(self.runs(op, self.x, 4.0), (["slow"], {4.0}))
        self.assertTrue(lines("reason=winner_failed", "it broke"))

    def test_a_winner_of_an_earlier_run_counts_if_its_code_is_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            for value, count in ("7.0", "several"), ("7.0", "few"), ("6.0 + 1.0", "several"):
                program = STORED.replace("VALUE", value)
                path = pathlib.Path(folder) / "program.py"
                path.write_text(program)
                ended = subprocess.run([sys.executable, path], text=True, stdout=subprocess.PIPE, check=True,
                                       env=os.environ | {
                                           "PYTHONPATH": os.pathsep.join(sys.path[1:] + [str(HERE)]),
                                           "CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": folder})
                self.assertEqual(ended.stdout.strip(), f"fast {count}")

    def test_what_the_default_raises_is_the_callers(self):
        def slow(x: torch.Tensor) -> torch.Tensor:
            raise KeyError("of the caller")

        op = torch.library.custom_op(f"tests::{self.name}", slow, mutates_args=())
        op.register_fake(torch.empty_like)
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        for _ in range(2):
            with self.assertRaisesRegex(KeyError, "of the caller"):
                op(self.x)

    def test_a_kernel_of_one_type_of_device_is_the_default_there(self):
        op = self.filled(device_types="cuda")
        op.register_kernel("cpu")(lambda x, value=1.0: self.fill("cpu", 64, x, value))
        register_custom_op_autotuning(op, [CustomOpConfig(self.fast)])
        self.assertEqual(set(self.runs(op, self.x)[0]), {"cpu", "fast"})
        self.assertEqual(self.runs(op, self.x), (["fast"], {1.0}))

    @unittest.skipUnless(hasattr(torch.library, "get_kernel"), "this PyTorch does not give kernels away")
    def test_an_operator_of_a_library_is_tuned_too(self):
        library = torch.library.Library("tests_of_operators", "DEF")
        library.define("filled(Tensor x, float value=1.0) -> Tensor")
        library.impl("filled", lambda x, value=1.0: self.fill("slow", 256, x, value), "CPU")
        library.impl("filled", lambda x, value=1.0: torch.empty_like(x), "Meta")
        op = torch.ops.tests_of_operators.filled
        register_custom_op_autotuning(op.default, [CustomOpConfig(self.fast)])
        self.assertEqual(self.runs(op, self.x, 3.0)[1], {3.0})
        self.assertEqual(self.runs(op, self.x, 4.0), (["fast"], {4.0}))

    def test_what_cannot_be_is_refused(self):
        op = self.filled()
        config = CustomOpConfig(self.fast)
        mistakes = ((lambda: register_custom_op_autotuning(len, [config]), "no custom op"),
                    (lambda: register_custom_op_autotuning(op, config), "a list of CustomOpConfig"),
                    (lambda: register_custom_op_autotuning(op, [self.fast]), "CustomOpConfig\\(function"),
                    (lambda: CustomOpConfig(7), "int"),
                    (lambda: register_custom_op_autotuning(op, [config], split_points=[4]), "dispatch_on"),
                    (lambda: register_custom_op_autotuning(op, [config], input_gen_fns={"z": len}), "x, value"),
                    (lambda: register_custom_op_autotuning(
                        op, [config], dispatch_on={"tensor_name": "z", "dim": 0}), "one of x, value"),
                    (lambda: register_custom_op_autotuning(
                        op, [config], split_points=[4, 2],
                        dispatch_on={"tensor_name": "x", "dim": 0}), "ascending"),
                    (lambda: register_custom_op_autotuning(op, [config], select="now"), "deferred"),
                    (lambda: register_custom_op_autotuning(op, [config], config_generator=len), "supports"),
                    (lambda: [register_custom_op_autotuning(op, [config]) for _ in range(2)], "already"))
        for mistake, told in mistakes:
            with self.assertRaisesRegex(contextune.Error, told):
                mistake()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + [one for one in sys.argv[1:] if one.startswith("Custom")], verbosity=2)
