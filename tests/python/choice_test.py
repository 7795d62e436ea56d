"""Choices over kernels of the simulated driver: compared, searched in regions and alone, and failing."""

import sys
import unittest

import contextune
from contextune import Choice, ChoiceMemory, TimingState
from simulated import Gpu, clear_logs, field, lines

clear_logs()
gpu = Gpu()


class Choices(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1]
        self.y = gpu.tensor(1000)
        self.ran = []

    def choice(self, **options):
        """Adds a value to each number of y."""
        settings = {"size": lambda y, *_, **__: 4 * y.numel(),
                    "type": lambda y, *_, **__: y.dtype,
                    "buffers": lambda y, *_, **__: ChoiceMemory(outputs=[y])} | options
        return Choice(self.name, **settings)

    def adding(self, name, block, value=None):
        def add(y, number=1.0):
            self.ran.append(name)
            gpu.launch("add", block, y, number if value is None else value)
            return name
        return add

    def test_the_fastest_implementation_is_found_at_the_first_call_and_then_called_once_a_call(self):
        choice = self.choice()
        choice.add("slow")(self.adding("slow", 256))
        choice.add("fast")(self.adding("fast", 128))
        self.assertEqual(self.ran, [])
        self.assertEqual(choice(self.y, 2.0), "fast")
        self.assertEqual(set(self.y.read()), {2.0})
        count = len(self.ran)
        self.assertEqual(choice(self.y, number=3.0), "fast")
        self.assertEqual(set(self.y.read()), {5.0})
        self.assertEqual(self.ran[count:], ["fast"])

    def test_configs_of_an_implementation_are_its_parameters(self):
        choice = self.choice()
        blocks = []

        @choice.add("plain")
        def plain(y):
            gpu.launch("add", 256, y, 1.0)

        @choice.add("blocked", {"block": [256, 128, 64]})
        def blocked(y, block):
            blocks.append(block)
            gpu.launch("add", block, y, 1.0)
            return block

        self.assertEqual(choice(self.y), 128)
        self.assertEqual(set(blocks), {64, 128, 256})
        self.assertEqual(set(self.y.read()), {1.0})
        timings = choice.timings(4000, "float32")
        self.assertEqual([(one.implementation, one.config) for one in timings],
                         [("plain", {}), ("blocked", {"block": 256}), ("blocked", {"block": 128}),
                          ("blocked", {"block": 64})])
        self.assertEqual([one.is_winner for one in timings], [False, False, True, False])
        self.assertTrue(all(one.state == TimingState.MEASURED for one in timings))
        self.assertLess(timings[2].seconds, timings[0].seconds)

    def test_an_implementation_that_computes_something_else_is_never_chosen(self):
        choice = self.choice()
        choice.add("right")(self.adding("right", 256))
        choice.add("wrong")(self.adding("wrong", 128, value=9.0))
        self.assertEqual(choice(self.y, 1.0), "right")
        self.assertEqual(set(self.y.read()), {1.0})
        self.assertEqual([one.state for one in choice.timings(4000, "float32")][1], TimingState.WRONG)

    def test_an_implementation_that_raises_is_never_chosen_and_the_log_says_why(self):
        choice = self.choice()
        choice.add("right")(self.adding("right", 256))

        @choice.add("broken")
        def broken(y, number):
            raise ValueError("no such kernel")

        self.assertEqual(choice(self.y, 1.0), "right")
        self.assertTrue(lines("ValueError: no such kernel"))

    def test_what_the_default_raises_is_the_callers(self):
        choice = self.choice()

        @choice.add("default")
        def default(y):
            raise KeyError("of the caller")

        with self.assertRaisesRegex(KeyError, "of the caller"):
            choice(self.y)

    def test_an_interruption_reaches_the_caller_and_nothing_runs_after_it(self):
        choice = self.choice()

        def interrupted(y):
            self.ran.append("interrupted")
            raise KeyboardInterrupt

        choice.add("default")(interrupted)
        choice.add("other")(interrupted)
        with self.assertRaises(KeyboardInterrupt):
            choice(self.y)
        self.assertEqual(self.ran, ["interrupted"])

    def test_in_a_region_a_choice_is_searched_in_its_passes(self):
        choice = self.choice()
        choice.add("slow")(self.adding("slow", 256))
        choice.add("fast")(self.adding("fast", 128))

        @contextune.contextual_autotune(restore="y", name=self.name + "_region", confirm=False)
        def step(y):
            return choice(y)

        self.assertEqual(step(self.y), "fast")
        self.assertEqual(set(self.y.read()), {1.0})
        (winner,) = lines("event=winner", f"region={self.name}_region")
        self.assertEqual(field(winner, "implementation"), "fast")

    def test_what_is_settled_is_told_outside_of_regions_and_in_one_that_has_finished(self):
        choice = self.choice()
        choice.add("slow")(self.adding("slow", 256))
        choice.add("blocked", {"block": [64, 128]})(lambda y, block: gpu.launch("add", block, y, 1.0))
        told = []

        @contextune.contextual_autotune(restore="y", name=self.name + "_region", confirm=False)
        def step(y):
            told.append(choice.settled(4000, "float32"))
            choice(y)

        self.assertIsNone(choice.settled(4000, "float32"))
        step(self.y)
        self.assertEqual((told[1], told[-1]), (None, (1, 1)))
        step(self.y)
        self.assertEqual(told[-1], (1, 1))
        self.assertEqual(choice.settled(4000, "float32"), (1, 1))
        self.assertIsNone(choice.settled(8000, "float32"))

    def test_inputs_of_its_own_leave_the_callers_memory_alone(self):
        made = []

        def make(problem):
            made.append((problem.bytes, problem.type, problem.key))
            return gpu.tensor(problem.bytes // 4), 1.0

        choice = self.choice(make_inputs=make, key=lambda y, number: ("sum", 4), buckets="exact")
        choice.add("slow")(self.adding("slow", 256))
        choice.add("fast")(self.adding("fast", 128))
        self.assertEqual(choice(self.y, 1.0), "fast")
        self.assertEqual(set(self.y.read()), {1.0})
        self.assertEqual(made, [(4000, "float32", "key1=sum key2=4")])
        self.assertEqual(len(choice.timings(8000, "float32", ("sum", 4))), 2)
        self.assertEqual(made[1], (8000, "float32", "key1=sum key2=4"))

    def test_an_implementation_that_does_not_support_a_problem_is_not_tried(self):
        choice = self.choice()
        choice.add("slow")(self.adding("slow", 256))
        choice.add("fast", supports=lambda problem: problem.bytes > 1 << 20)(self.adding("fast", 128))

        @choice.add("asks_wrongly", supports=lambda problem: 1 // 0)
        def asks_wrongly(y):
            self.fail("it ran")

        self.assertEqual(choice(self.y), "slow")
        self.assertEqual(set(self.ran), {"slow"})

    def test_only_the_implementations_that_are_named_may_run(self):
        choice = self.choice(implementations="slow,middle", repeatable=True)
        for name, block in (("slow", 256), ("fast", 128), ("middle", 64)):
            choice.add(name)(self.adding(name, block))
        self.assertEqual(choice(self.y), "middle")

    def test_what_cannot_be_is_refused(self):
        choice = self.choice()
        choice.add("one")(self.adding("one", 256))
        mistakes = ((lambda: Choice(""), "not empty"), (lambda: Choice("x", select="now"), "deferred"),
                    (lambda: choice.add("one"), "a name of its own"),
                    (lambda: choice.add("two")(7), "int"), (lambda: choice.add("two", [])(len), "empty"),
                    (lambda: Choice("none")(1), "no implementation"),
                    (lambda: Choice("x", ranks=-1), "ranks"), (lambda: Choice("x", n_repeat=1 << 40), "n_repeat"),
                    (lambda: self.of_size(-4), "size of a call"), (lambda: self.of_size(1 << 80), "size of a call"),
                    (lambda: choice.timings(-1), "bytes"),
                    (lambda: self.late(choice), "first call"),
                    (lambda: self.bad_tolerance(), "f9"))
        for mistake, told in mistakes:
            with self.assertRaisesRegex(contextune.Error, told):
                mistake()

    def late(self, choice):
        choice(self.y)
        choice.add("late")

    def of_size(self, size):
        choice = self.choice(size=lambda y: size)
        choice.add("one")(self.adding("one", 256))
        choice(self.y)

    def bad_tolerance(self):
        choice = Choice(self.name + "_tolerance", tolerance="f9:1")
        choice.add("one")(lambda: None)
        choice()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
