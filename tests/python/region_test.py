"""Regions and contextual_autotune over kernels of the simulated driver, without the frontend: they are
repeated, undone and left as C++ does it."""

import signal
import sys
import time
import unittest

import contextune
from contextune._library import PLACE_FREE, library
from simulated import Gpu, clear_logs, field, lines

clear_logs()
gpu = Gpu()
BLOCKS = [256, 128, 64]


class Paced:
    """A launch whose block is tuned."""

    def __init__(self, name):
        @contextune.autotune({"block": BLOCKS}, name=name)
        def launch(y, value, kernel, block):
            gpu.launch(kernel, block, y, value)
            return block

        self.launch = launch

    def __call__(self, y, value=1.0, kernel="add"):
        return self.launch(y, value, kernel)


class ContextualAutotune(unittest.TestCase):
    def setUp(self):
        self.y = gpu.tensor(1000)
        self.add = Paced(self.id().rsplit(".", 1)[-1])

    def test_it_has_the_arguments_and_defaults_of_the_ancestor(self):
        contextune.contextual_autotune(is_dist=False, n_repeat=5, n_warmup=3)
        contextune.contextual_autotune(False, 5, 3)

    def test_a_call_runs_the_function_until_it_is_tuned_and_gives_the_value_of_a_run_with_the_winner(self):
        blocks = []

        @contextune.contextual_autotune()
        def step(value):
            blocks.append(self.add(self.y, value, "set"))
            return len(blocks), blocks[-1]

        runs, block = step(3.0)
        self.assertEqual(runs, len(blocks))
        self.assertGreaterEqual(runs, 3 * 8 + 1)
        self.assertEqual(block, 128)
        self.assertEqual(set(self.y.read()), {3.0})
        self.assertEqual(step(4.0), (runs + 1, 128))

    def test_n_warmup_and_n_repeat_say_how_many_passes_a_config_gets(self):
        @contextune.contextual_autotune(n_repeat=2, n_warmup=1, name="few_passes", confirm=False,
                                        refine=False)
        def step():
            return self.add(self.y, 1.0, "set")

        self.assertEqual(step(), 128)
        self.assertTrue(lines("event=winner", "region=few_passes"))  # which comes after them
        trials = lines("event=trial", "region=few_passes")
        self.assertEqual([(field(line, "config"), field(line, "iter")) for line in trials if
                          " iter=" in line],
                         [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")])

    def test_a_tensor_that_is_restored_has_one_run_in_it(self):
        @contextune.contextual_autotune(restore=self.y)
        def step():
            self.add(self.y)

        step()
        self.assertEqual(set(self.y.read()), {1.0})
        step()
        self.assertEqual(set(self.y.read()), {2.0})

    def test_a_parameter_that_is_restored_by_name_is_the_tensor_of_that_call(self):
        @contextune.contextual_autotune(restore="cache")
        def step(other, cache=None):
            self.add(cache)

        step(1, self.y)
        self.assertEqual(set(self.y.read()), {1.0})

    def test_a_callable_restores_with_the_arguments_of_the_call(self):
        undone = []

        def undo(y, value):
            undone.append(value)
            gpu.launch("set", 128, y, 0.0)

        @contextune.contextual_autotune(restore=undo)
        def step(y, value):
            self.add(y, value)

        step(self.y, value=2.0)
        self.assertEqual(set(self.y.read()), {2.0})
        self.assertEqual(set(undone), {2.0})
        self.assertGreater(len(undone), 20)

    def test_an_exception_of_the_function_ends_the_search_and_reaches_the_caller(self):
        calls = []

        @contextune.contextual_autotune()
        def step():
            calls.append(self.add(self.y, 1.0, "set"))
            if len(calls) == 3:
                raise KeyError("third")
            return calls[-1]

        with self.assertRaisesRegex(KeyError, "third"):
            step()
        self.assertEqual(len(calls), 3)
        self.assertEqual(step(), 256)
        self.assertEqual(len(calls), 4)

    def test_an_exception_of_restore_reaches_the_caller(self):
        def undo():
            raise ValueError("cannot be undone")

        @contextune.contextual_autotune(restore=undo)
        def step():
            self.add(self.y)

        with self.assertRaisesRegex(ValueError, "cannot be undone"):
            step()

    def test_a_value_of_an_earlier_run_is_gone_before_the_next_one(self):
        class Large:
            alive = 0

            def __init__(self):
                Large.alive += 1
                self.seen = Large.alive

            def __del__(self):
                Large.alive -= 1

        @contextune.contextual_autotune()
        def step():
            self.add(self.y, 1.0, "set")
            return Large()

        self.assertEqual(step().seen, 1)

    def test_a_method_is_tuned_with_its_object(self):
        test = self

        class Model:
            @contextune.contextual_autotune()
            def step(self):
                """Adds."""
                return self, test.add(test.y, 1.0, "set")

        model = Model()
        self.assertEqual(model.step(), (model, 128))
        self.assertEqual(Model.step.__doc__, "Adds.")

    def test_what_cannot_be_tuned_is_refused_where_it_is_declared(self):
        async def coroutine():
            pass

        class Generator:
            def __call__(self):
                yield

        for mistake, told in ((lambda: contextune.contextual_autotune(len), r"@contextual_autotune\(\)"),
                              (lambda: contextune.contextual_autotune()(coroutine), "coroutine"),
                              (lambda: contextune.contextual_autotune()(Generator()), "generator"),
                              (lambda: contextune.contextual_autotune()(7), "int"),
                              (lambda: contextune.contextual_autotune(restore="z")(lambda x: x), "'z'")):
            with self.assertRaisesRegex(contextune.Error, told):
                mistake()

    def test_an_option_that_is_not_one_is_named(self):
        @contextune.contextual_autotune(n_repeats=3)
        def step():
            self.fail("it ran")

        with self.assertRaisesRegex(contextune.Error, "n_repeats"):
            step()

    def test_memory_that_is_not_on_the_device_is_named(self):
        for given, told in (([b"bytes"], "bytes"), (7, "int"), (["text"], "str")):
            with self.assertRaisesRegex(contextune.Error, told):
                for _ in contextune.region(f"restores_{told}", restore=given):
                    self.fail("it ran")


class Region(unittest.TestCase):
    def setUp(self):
        self.y = gpu.tensor(100, 10)
        self.name = self.id().rsplit(".", 1)[-1]
        self.add = Paced(self.name)

    def test_a_loop_runs_until_the_region_is_tuned(self):
        blocks = []
        for _ in contextune.region(self.name, repeatable=True):
            blocks.append(self.add(self.y, 2.0, "set"))
        self.assertGreater(len(blocks), 24)
        self.assertEqual(blocks[-1], 128)

    def test_a_loop_that_is_left_early_is_undone_and_runs_once_the_next_time(self):
        runs = 0
        for _ in contextune.region(self.name, restore=[self.y]):
            self.add(self.y)
            runs += 1
            if runs == 3:
                break
        self.assertEqual(set(self.y.read()), {0.0})
        for _ in contextune.region(self.name, restore=[self.y]):
            self.add(self.y)
        self.assertEqual(set(self.y.read()), {1.0})

    def test_an_exception_leaves_a_loop(self):
        with self.assertRaises(ZeroDivisionError):
            for _ in contextune.region(self.name, restore=[(self.y.data_ptr(), 4000)]):
                self.add(self.y)
                1 // 0
        self.assertEqual(set(self.y.read()), {0.0})
        # In an entry that is still open this one could not be repeated.
        self.assertEqual(contextune.region(self.name + "_next", repeatable=True)(
            lambda: self.add(self.y, 1.0, "set"))(), 128)

    def test_an_entry_by_with_is_one_pass_of_a_program_that_repeats_itself(self):
        entries = 0
        blocks = []
        while entries < 2000 and blocks[-50:] != [128] * 50:
            with contextune.region(self.name, max_slowdown=0):
                blocks.append(self.add(self.y))
            entries += 1
        self.assertEqual(set(self.y.read()), {float(entries)})
        self.assertEqual(blocks[-1], 128)

    def test_an_exception_leaves_an_entry_by_with(self):
        with self.assertRaises(KeyError):
            with contextune.region(self.name):
                raise KeyError
        with contextune.region(self.name):
            with contextune.region(self.name + "_inner"):
                self.add(self.y)

    def test_an_interruption_leaves_an_entry_wherever_it_arrives(self):
        tuned = contextune.region(self.name)(lambda: None)
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM,
                                                                     signal.default_int_handler))

        def call_until_interrupted(seconds):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            until = time.monotonic() + 5
            while time.monotonic() < until:
                tuned()

        for delay in range(200):
            self.assertRaises(KeyboardInterrupt, call_until_interrupted, 5e-4 + delay * 1e-6)
            self.assertEqual(library().contextune_current_place(), PLACE_FREE)

    def test_with_refuses_what_it_could_not_repeat(self):
        with self.assertRaisesRegex(contextune.Error, "for _ in region"):
            with contextune.region(self.name, repeatable=True):
                self.fail("it ran")

    def test_a_function_in_a_region_gives_its_value(self):
        @contextune.region(self.name, restore="y")
        def step(y):
            return self.add(y)

        self.assertEqual(step(self.y), 128)
        self.assertEqual(set(self.y.read()), {1.0})

    def test_a_name_that_is_none_is_refused(self):
        for name in ("", None, 7):
            with self.assertRaisesRegex(contextune.Error, "name"):
                contextune.region(name)

    def test_the_state_says_why_launches_are_not_seen(self):
        reach, reason = contextune.state()
        self.assertEqual(reach, contextune.Reach.TUNABLES)
        self.assertIn("loaded", reason)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
