"""Functions with configs over kernels of the simulated driver: tuned by key, pruned, set by hand and
failing, as C++ has it."""

import contextlib
import copy
import enum
import fractions
import functools
import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import contextune
from contextune import autotune, to_hashable
from contextune._code import version_of
from simulated import Gpu, clear_logs, field, lines

clear_logs()
gpu = Gpu()
SPACE = [{"block": 256}, {"block": 128}, {"block": 64}]


@autotune(SPACE)
def at_module(y, block):
    return block


class TritonConfig:
    """As Triton's: parameters, and how many warps."""

    def __init__(self, num_warps, **parameters):
        self.parameters, self.num_warps = parameters, num_warps

    def all_kwargs(self):
        return {**self.parameters, "num_warps": self.num_warps}


class Autotune(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1]
        self.y = gpu.tensor(1000)
        self.runs = []

    def set(self, y, value, block):
        self.runs.append(block)
        gpu.launch("set", block, y, value)
        return block

    def tuned(self, space=SPACE, key=lambda y, *_: y.numel(), prune=None, function=None, **more):
        more = {"name": self.name} | more

        @autotune(space, key, prune, **more)
        def set_all(y, value=1.0, *, block):
            return self.set(y, value, block)

        return set_all if function is None else autotune(space, key, prune, **more)(function)

    def test_each_new_key_is_tuned_at_its_first_call_and_runs_its_winner_from_then_on(self):
        tuned = self.tuned()
        self.assertEqual(tuned(self.y, 2.0), 128)
        self.assertEqual(set(self.y.read()), {2.0})
        first = len(self.runs)
        self.assertGreaterEqual(first, 3 * 15)
        self.assertEqual(tuned(self.y, 3.0), 128)
        self.assertEqual(len(self.runs), first + 1)
        self.assertEqual(tuned(gpu.tensor(10), 3.0), 128)
        self.assertGreater(len(self.runs), 2 * first - 20)

    def test_n_warmup_and_n_repeat_are_those_of_the_ancestor_unless_said(self):
        self.tuned(confirm=False)(self.y)
        self.assertTrue(lines("event=winner", f"site={self.name} "))  # which comes after them
        trials = lines("event=trial", f"site={self.name} ")
        self.assertEqual(sum(" iter=" in line for line in trials), 3 * 10)
        self.assertEqual(sum(" warmup=" in line for line in trials), 3 * 5)

    def test_the_space_may_be_a_product_or_come_from_a_callable_that_may_ask_for_the_device(self):
        self.assertEqual(self.tuned({"block": [256, 128, 64]})(self.y), 128)
        self.name += "_called"
        self.assertEqual(self.tuned(lambda: SPACE)(self.y), 128)
        self.name += "_with_device"
        self.assertEqual(self.tuned(lambda device: [{"block": 2 * device.num_sms - 8}] + SPACE[1:])(
            self.y), 128)
        self.assertIn(2 * 132 - 8, self.runs)

    def test_configs_of_triton_and_objects_are_given_as_they_are_and_named_in_the_log(self):
        def run(y, config):
            return self.set(y, 1.0, config.parameters["BLOCK"])

        tuned = self.tuned([{"config": TritonConfig(warps, BLOCK=32 * warps)} for warps in (8, 4)],
                           function=run)
        self.assertEqual(tuned(self.y), 128)
        (winner,) = lines("event=winner", f"site={self.name} ")
        self.assertIn("BLOCK:128 num_warps:4", winner)

    def test_prune_fn_keeps_what_it_answers_true_for(self):
        asked = []

        def prune(config, y, value):
            asked.append((config["block"], value))
            return config["block"] != 128

        self.assertEqual(self.tuned(prune=prune)(self.y, 5.0), 64)
        self.assertEqual(asked, [(256, 5.0), (128, 5.0), (64, 5.0)])
        self.assertNotIn(128, self.runs)

    def test_a_prune_fn_that_takes_its_config_apart_leaves_it_as_it_is(self):
        self.assertEqual(self.tuned(prune=lambda config, *_: config.pop("block") > 64)(self.y), 128)

    def test_sizes_in_one_bucket_are_one_problem_and_near_ones_may_run_its_winner(self):
        tuned = self.tuned(key=None, size=lambda y, *_: y.numel(), buckets="100,1000,4000", unseen="nearest")
        self.assertEqual(tuned(self.y), 128)
        count = len(self.runs)
        self.assertEqual(tuned(gpu.tensor(500)), 128)
        self.assertEqual(tuned(gpu.tensor(3000)), 128)
        self.assertEqual(len(self.runs), count + 2)
        self.assertEqual(tuned(gpu.tensor(20)), 128)
        self.assertGreater(len(self.runs), count + 40)

    def test_a_size_that_is_no_whole_number_or_below_0_is_refused(self):
        for size in -4, 1 << 80, 1.5, "large":
            with self.assertRaisesRegex(contextune.Error, "size of a call"):
                self.tuned(size=lambda *_: size)(self.y)

    def test_without_autotune_the_default_runs_and_nothing_is_measured(self):
        tuned = self.tuned()
        self.assertEqual(tuned(self.y, autotune=False), 256)
        self.assertEqual(self.runs, [256])

    def test_a_verbose_call_says_what_was_found_and_what_runs(self):
        tuned, said = self.tuned(), io.StringIO()
        with contextlib.redirect_stderr(said):
            tuned(self.y, autotune_verbose=True)
            tuned(self.y, autotune_verbose=True)
            tuned(self.y)
        first, second = said.getvalue().splitlines()
        self.assertEqual(first, f"contextune: {self.name}{{key=1000}}: was tuned, and runs block=128")
        self.assertEqual(second, f"contextune: {self.name}{{key=1000}}: runs block=128")

    def test_a_tuned_parameter_that_the_caller_sets_is_refused_unless_that_is_allowed(self):
        tuned = self.tuned()
        for call in (lambda: tuned(self.y, block=32), lambda: tuned(self.y, autotune=False, block=32)):
            with self.assertRaisesRegex(contextune.Error, "'block'.*autotune_allow_arg_overwrite"):
                call()
        self.assertEqual(self.runs, [])
        self.assertEqual(tuned(self.y, block=32, autotune_allow_arg_overwrite=True), 32)
        self.assertEqual(self.runs, [32])
        self.assertEqual(self.tuned(allow_override=True)(self.y, block=32), 32)

    def test_a_tuned_parameter_that_is_set_by_position_is_refused(self):
        tuned = self.tuned(key=lambda *_: 0, function=lambda y, block: self.set(y, 1.0, block))
        with self.assertRaisesRegex(contextune.Error, "by position"):
            tuned(self.y, 64)
        self.assertEqual(tuned(self.y), 128)

    def test_a_config_that_cannot_run_is_given_up_and_the_default_runs_in_its_place(self):
        def run(y, block):
            if block == 128:
                raise RuntimeError("out of resources")
            return self.set(y, 1.0, block)

        self.assertEqual(self.tuned(function=run)(self.y), 64)
        self.assertTrue(lines("RuntimeError: out of resources"))

    def test_an_exception_that_has_no_text_is_an_exception(self):
        class Textless(Exception):
            def __str__(self):
                raise ValueError("no text")

        def run(y, block):
            if block == 128:
                raise Textless
            return self.set(y, 1.0, block)

        self.assertEqual(self.tuned(function=run)(self.y), 64)

    def test_a_default_that_cannot_run_leaves_its_place_to_the_next_config(self):
        def run(y, block):
            if block == 256:
                raise RuntimeError("out of resources")
            return self.set(y, 1.0, block)

        tuned = self.tuned(SPACE[:1] + SPACE[:0:-1], function=run)
        self.assertEqual(tuned(self.y), 128)
        count = len(self.runs)
        self.assertEqual(tuned(self.y), 128)
        self.assertEqual(len(self.runs), count + 1)

    def test_where_no_config_can_run_the_error_names_each_with_its_reason(self):
        def run(y, block):
            raise RuntimeError(f"no {block}")

        with self.assertRaisesRegex(contextune.Error, "(?s)block=256: RuntimeError: no 256.*no 64") as told:
            self.tuned(function=run)(self.y)
        self.assertEqual(str(told.exception.__cause__), "no 64")

    def test_a_winner_that_cannot_run_any_more_is_dropped_and_what_the_caller_did_wrong_is_not_its_fault(
            self):
        broken = set()

        def run(y, block):
            if block in broken:
                raise RuntimeError("broken")
            return self.set(y, 1.0, block)

        tuned = self.tuned(function=run)
        self.assertEqual(tuned(self.y), 128)
        broken |= {64, 128, 256}
        with self.assertRaisesRegex(RuntimeError, "broken"):
            tuned(self.y)
        broken -= {256, 64}
        self.assertEqual(tuned(self.y), 256)
        broken.clear()
        self.assertEqual(tuned(self.y), 256)

    def test_an_interruption_leaves_the_search_and_reaches_the_caller(self):
        def run(y, block):
            self.set(y, 1.0, block)
            if len(self.runs) == 20:
                raise KeyboardInterrupt
            return block

        tuned = self.tuned(function=run)
        with self.assertRaises(KeyboardInterrupt):
            tuned(self.y)
        self.assertEqual(len(self.runs), 20)
        self.assertEqual(tuned(self.y), 256)

    def test_an_interruption_reaches_the_caller_wherever_it_arrives(self):
        for delay in range(20):
            tuned = self.tuned(key=lambda y, *_: delay, n_repeat=500)
            signaller = threading.Timer(0.001 + delay * 1e-4, os.kill, (os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                signaller.start()
                tuned(self.y)
            signaller.join()

    def test_a_space_that_is_none_is_refused_where_it_is_given(self):
        for more, told in (({"name": 7}, "named 7"), ({"n_repeat": 0}, "n_repeat"), ({"n_repeat": 1 << 40}, "n_repeat"),
                           ({"n_warmup": -1}, "n_warmup"), ({"n_warmup": 1.5}, "n_warmup"),
                           ({"nearest_within": -1}, "nearest_within"), ({"unseen": "guess"}, "nearest")):
            with self.assertRaisesRegex(contextune.Error, told):
                self.tuned(**more)
        for space, told in (([], "empty"), (SPACE + SPACE[:1], "twice"), ([7], "no dict"), (7, "int"),
                            ([{1: 2}], "no dict"), ([{"x": object()}], "__repr__"),
                            ([{"x": [object()]}], "__repr__"), ({"block": 64}, r"\[64\]"),
                            ({"block": SPACE[0].values(), "mode": "fast"}, r"\['fast'\]")):
            with self.assertRaisesRegex(contextune.Error, told):
                self.tuned(space)

    def test_a_prune_fn_that_keeps_nothing_is_named(self):
        with self.assertRaisesRegex(contextune.Error, "(?s)no config can run for .*block=64: prune_fn rules it out"):
            self.tuned(prune=lambda *_: False)(self.y)

    def test_keys_may_be_all_that_a_call_is_told_by(self):
        class Kind(enum.Enum):
            FAST = 1

        for key, text in ((None, ""), (4, "key=4"), ("f16", "key=f16"), (True, "key=1"),
                          (1.5, 'key="1.5"'), (Kind.FAST, "key=FAST"), ("a b", 'key="a b"'),
                          (fractions.Fraction(1, 2), 'key="0.5"'), (1 << 70, f'key="{1 << 70}"'),
                          ([4, 8], "key1=4 key2=8"), ((1, "f16", None, 2), "key1=1 key2=f16 key4=2"),
                          (((2, 3), [None, "x"]), r'key1=(2:3) key2="(none:\"x\")"'),
                          (to_hashable(self.y), "key1=(1000) key2=(1) key3=torch.float32 key4=cuda")):
            self.name += "k"
            self.assertEqual(self.tuned(key=lambda *_: key, n_repeat=3)(self.y), 128)
            (winner,) = lines("event=winner", f"site={self.name} ")
            self.assertEqual(field(winner, " key"), text)

    def test_a_function_with_arguments_is_told_by_both(self):
        key = functools.partial(functools.partial(print, 1), "x", end=gpu.launch)
        tuned = self.tuned(key=lambda *_: key)
        self.assertEqual(tuned(self.y), 128)
        (winner,) = lines("event=winner", f"site={self.name} ")
        self.assertEqual(field(winner, " key"), 'key="print(1, x, end=Gpu.launch)"')

    def test_a_key_that_is_no_key_is_refused(self):
        for key, told in ((self.y, "to_hashable"), (object(), "__repr__"),
                          (iter("x"), "__repr__"), (bytearray(b"x"), "hashed"),
                          ([1, [bytearray()]], "hashed")):
            with self.assertRaisesRegex(contextune.Error, told):
                self.tuned(key=lambda *_: key)(self.y)

    def test_inside_a_region_a_function_takes_part_in_its_passes(self):
        tuned = self.tuned(n_repeat=99)

        @contextune.contextual_autotune(name=self.name + "_region", confirm=False, refine=False)
        def step():
            return tuned(self.y)

        self.assertEqual(step(), 128)
        self.assertLess(len(self.runs), 60)
        self.assertTrue(lines("event=winner", f"region={self.name}_region"))

    def test_what_a_run_changes_is_put_back_before_the_next(self):
        def run(y, block):
            gpu.launch("add", block, y, 1.0)
            return block

        tuned = self.tuned(function=run, restore="y")
        self.assertEqual(tuned(self.y), 128)
        self.assertEqual(set(self.y.read()), {1.0})
        tuned(self.y)
        self.assertEqual(set(self.y.read()), {2.0})

    def test_a_function_that_does_not_leave_the_same_keeps_its_default_and_its_result(self):
        def run(y, block):
            gpu.launch("add", block, y, 1.0)
            return block

        with self.assertWarnsRegex(contextune.UntunedWarning, "(?s)repeatable=True.*restore="):
            self.assertEqual(self.tuned(function=run, repeatable=False)(self.y), 256)
        self.assertEqual(set(self.y.read()), {1.0})

    def test_without_the_frontend_no_memory_is_seen_and_a_function_that_is_not_repeatable_keeps_its_default(self):
        with self.assertWarnsRegex(contextune.UntunedWarning, "memory is not seen"):
            self.assertEqual(self.tuned(repeatable=False)(self.y), 256)
        self.assertEqual(self.runs, [256])

    def test_a_function_that_returns_new_memory_is_tuned_where_it_is_repeatable(self):
        def run(y, block):
            new = gpu.tensor(*y.shape)
            gpu.launch("set", block, new, 1.0)
            return new, block

        with self.assertWarns(contextune.UntunedWarning):
            new, block = self.tuned(function=run, repeatable=False)(self.y)
        self.assertEqual((set(new.read()), block), ({1.0}, 256))
        self.name += "_repeatable"
        new, block = self.tuned(function=run)(self.y)
        self.assertEqual((set(new.read()), block), ({1.0}, 128))

    def test_a_method_is_tuned_with_its_object(self):
        test = self

        class Model:
            @autotune(SPACE, lambda self, y: y.numel(), name=test.name)
            def step(self, y, block):
                return self, test.set(y, 1.0, block)

        model = Model()
        self.assertEqual(model.step(test.y), (model, 128))
        self.assertEqual(Model.step.__name__, "step")

    def test_a_parameter_may_be_named_as_the_object_of_a_method(self):
        self.assertEqual(self.tuned(key=None, function=lambda self, block: block)(self=1), 256)

    def test_a_function_of_partial_is_the_function_that_it_gives_arguments_to(self):
        def one(y, block):
            return 1

        def other(y, block):
            return 2

        functions = [autotune(SPACE)(functools.partial(function, self.y)) for function in (one, other)]
        self.assertEqual([one.name for one in functions],
                         [f"Autotune.{self.name}.one", f"Autotune.{self.name}.other"])
        versions = {version_of(functools.partial(function, self.y)) for function in (one, other)}
        self.assertEqual(versions, {version_of(one), version_of(other)})
        with self.assertRaisesRegex(contextune.Error, "'z', which is no parameter"):
            autotune(SPACE, restore="z")(functools.partial(one, self.y))

    def test_the_version_of_an_object_that_is_called_is_that_of_its_class(self):
        self.assertNotIn(version_of(TritonConfig(4)), ("", version_of(version_of)))
        self.assertEqual(version_of(TritonConfig(4)), version_of(TritonConfig(8)))

    def test_a_source_that_was_changed_since_it_was_imported_may_be_none(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write('"""A text that does not end')
            file.flush()
            names = {}
            exec(compile("def run(y, block): return block", file.name, "exec"), names)
            self.assertEqual(version_of(names["run"]), "")

    def test_a_function_is_copied_and_pickled_as_functions_are(self):
        for tuned in (self.tuned(), at_module):
            tuned(self.y)
            self.assertIs(copy.copy(tuned), tuned)
            self.assertIs(copy.deepcopy([tuned])[0], tuned)
        self.assertIs(pickle.loads(pickle.dumps(at_module)), at_module)
        with self.assertRaises((pickle.PicklingError, AttributeError)):
            pickle.dumps(self.tuned())
        unnamed = autotune(SPACE)(functools.partial(self.set, self.y))
        self.assertIs(copy.deepcopy(unnamed), unnamed)

    def test_an_object_that_has_a_choice_or_a_region_may_be_copied(self):
        has = {"choice": contextune.Choice(self.name), "region": contextune.region(self.name)}
        self.assertEqual(copy.deepcopy(has), has)

    def test_threads_that_meet_a_new_key_at_once_all_get_a_right_value(self):
        def run(y, block):
            gpu.launch("set", block, y, 7.0)
            return block

        tuned, blocks = self.tuned(function=run), []

        def call():
            gpu.cuda.cuCtxSetCurrent(gpu.context)
            blocks.append(tuned(self.y))

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(blocks), 4)
        self.assertEqual(tuned.name, self.name)
        self.assertIn(tuned(self.y), (128, 256))

    def test_a_process_may_end_while_a_daemon_thread_tunes(self):
        program = """if True:
            import threading, time
            import contextune
            from simulated import Gpu

            gpu = Gpu()
            y = gpu.tensor(1000)

            def run(y, block):
                time.sleep(0.001)
                gpu.launch("set", block, y, 1.0)

            tuned = contextune.autotune({"block": [256, 128]}, n_repeat=10000)(run)
            choice = contextune.Choice("choice", buffers=lambda y: y)
            choice.add("one")(lambda y: run(y, 64))
            choice.add("other")(lambda y: run(y, 128))

            def call(function):
                gpu.cuda.cuCtxSetCurrent(gpu.context)
                while True:
                    function(y)

            for function in tuned, choice:
                threading.Thread(target=call, args=(function,), daemon=True).start()
            time.sleep(0.1)
            """
        ended = subprocess.run([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE,
                               env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))})
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_a_group_that_is_none_is_refused(self):
        for group, told in (("world", "str"), (0, "no NCCL communicator")):
            with self.assertRaisesRegex(contextune.Error, told):
                self.tuned()(self.y, autotune_pg=group)


class Pruned(unittest.TestCase):
    TILE = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "num_stages": 3,
            "GROUP_SIZE_M": 1}

    def test_tiles_that_do_not_fit_into_shared_memory_are_pruned(self):
        a = gpu.tensor(64, 64)
        self.assertTrue(contextune.prune_fn_by_shared_memory(self.TILE, a))
        self.assertFalse(contextune.prune_fn_by_shared_memory(self.TILE | {"num_stages": 4}, a))
        self.assertTrue(contextune.prune_fn_by_shared_memory(
            {"config": TritonConfig(4, **self.TILE)}, a, 1, other=2))
        with self.assertRaisesRegex(contextune.Error, "BLOCK_SIZE_M"):
            contextune.prune_fn_by_shared_memory({"block": 64}, a)

    def test_groups_of_one_row_are_pruned_where_a_product_computes_more_than_it_moves(self):
        small, large = gpu.tensor(16, 2048), gpu.tensor(4096, 4096)
        wide = gpu.tensor(2048, 4096)
        prune = contextune.prune_fn_by_group_size_m
        self.assertTrue(prune(self.TILE, small, wide))
        self.assertFalse(prune(self.TILE, large, large))
        self.assertTrue(prune(self.TILE | {"GROUP_SIZE_M": 8}, large, large))

    def test_tensors_are_told_by_shape_strides_type_and_kind_of_device(self):
        self.assertEqual(to_hashable(gpu.tensor(4, 8)), ((4, 8), (8, 1), "torch.float32", "cuda"))
        self.assertEqual(to_hashable([gpu.tensor(2), {"n": 3}]),
                         (((2,), (1,), "torch.float32", "cuda"), (("n", 3),)))
        self.assertEqual(to_hashable("text"), "text")

    def test_the_device_is_known(self):
        device = contextune.current_device()
        self.assertEqual((device.num_sms, device.compute_capability), (132, 90))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
