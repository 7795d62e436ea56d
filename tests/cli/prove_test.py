"""`contextune run --prove N`: bare and tuned runs in turns, and what is said of them."""

import re
import unittest

from harness import CommandTest

# Notes which run it is, and writes what a core would of a search.
PROGRAM = '''
import os, pathlib, sys
bare = os.environ.get("CONTEXTUNE_DISABLE") == "1"
notes = pathlib.Path(os.environ["NOTES"])
with notes.open("a") as file:
    file.write("b" if bare else "t")
runs = notes.read_text()
if not bare:
    folder = pathlib.Path(os.environ["CONTEXTUNE_LOG_DIR"])
    folder.mkdir(exist_ok=True)
    open_search = runs.count("t") <= int(os.environ.get("OPEN_RUNS", "0"))
    line = ("event=fallback reason=%s region=auto site=launches text=x"
            % os.environ.get("REASON", "not_settled") if open_search
            else "event=confirm region=auto verdict=kept gain=0.2 bound=0.1 pairs=4 tries=1")
    with (folder / "rank-0.log").open("a") as log:
        for pid, line in ((os.getpid(), line), (os.getpid() + 1, os.environ.get("HELPER"))):
            if line is not None:
                log.write("2026-11-20T20:33:53.120Z run=%s pid=%d rank=0 level=info %s\\n"
                          % (os.environ["CONTEXTUNE_RUN_ID"], pid, line))
exec(os.environ.get("THEN", "print('sum 42')"))
'''


class Prove(CommandTest):
    def setUp(self):
        super().setUp()
        self.program = self.script("program.py", PROGRAM)
        self.notes = self.folder / "notes"

    def prove(self, *flags, status=0, rounds="2", **changes):
        self.notes.write_text("")
        environment = self.environment | {"NOTES": str(self.notes)} | changes
        result = self.run_program(*self.program, flags=["--prove", rounds, *flags], env=environment)
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def test_bare_and_tuned_runs_alternate_and_the_order_is_swapped(self):
        result = self.prove(rounds="3")
        self.assertEqual(self.notes.read_text(), "bt" + "bt" + "tb" + "bt")
        self.assertEqual(result.stdout, "sum 42\n")
        self.assertRegex(result.stderr, r"search +settled after 1 run of [\d.]+ m?s\n")
        self.assertRegex(result.stderr, r"output +the same in every byte\n +end +status 0 each time\n")
        self.assertRegex(result.stderr,
                         r"wall time +[\d.]+ m?s bare, [\d.]+ m?s tuned \(medians\): [\d.]+ times as fast "
                         r"\(median of 3 pairs, 95 % interval [\d.]+ to [\d.]+\): ")

    def test_what_is_measured_is_settled(self):
        result = self.prove(OPEN_RUNS="2")
        self.assertEqual(self.notes.read_text(), "b" + "ttt" + "bt" + "tb")
        self.assertRegex(result.stderr, r"search +settled after 3 runs of [\d.]+ m?s, [\d.]+ m?s, [\d.]+ m?s\n")
        result = self.prove(OPEN_RUNS="9")
        self.assertEqual(self.notes.read_text(), "b" + "ttttt" + "bt" + "tb")
        self.assertRegex(result.stderr, r"search +not settled after 5 runs")
        result = self.prove(OPEN_RUNS="9", REASON="nothing_repeats")
        self.assertEqual(self.notes.read_text(), "b" + "t" + "bt" + "tb")
        self.assertRegex(result.stderr, r"search +nothing was found that repeats\n")

    def test_a_helper_process_that_finds_nothing_does_not_speak_for_the_program(self):
        nothing = "event=fallback reason=nothing_repeats region=auto site=launches text=x"
        self.assertRegex(self.prove(HELPER=nothing).stderr, r"search +nothing was found that repeats\n")
        result = self.prove(OPEN_RUNS="9", REASON="nothing_repeats", HELPER="event=submission region=auto state=settled")
        self.assertRegex(result.stderr, r"search +settled after 1 run of ")

    def test_launches_that_are_left_to_nccl_are_not_said_to_be_settled(self):
        left = "event=submission region=auto state=nccl"
        self.assertRegex(self.prove(HELPER=left).stderr, r"search +nothing was searched: most launches are NCCL's\n")

    def test_times_may_differ_and_results_may_not(self):
        times = self.prove(THEN="print(f'took {10 ** (len(runs) % 4):6} us, x = a')")
        self.assertRegex(times.stderr, r"output +the same but for numbers, of which lines with times may")
        self.assertIn("bare runs differ among themselves as well", times.stderr)
        number = self.prove(THEN="print('x =', 1 if bare else 2)")
        self.assertIn("the same but for numbers", number.stderr)
        self.assertIn("bare runs agree in every byte", number.stderr)
        wrong = self.prove(status=1, THEN="print('x =', 'a' if bare else 'b')")
        self.assertEqual(wrong.stdout, "x = a\n")
        self.assertIn("DIFFERS between bare and tuned runs", wrong.stderr)
        random = self.prove(THEN="print('x =', 'abcdefghijkl'[len(runs)])")
        self.assertIn("differs between bare runs as well", random.stderr)

    def test_another_end_is_told(self):
        result = self.prove(status=1, THEN="sys.exit(0 if bare else 3)")
        self.assertIn("DIFFERS: status 0 in the first bare run, status 3 in a tuned one", result.stderr)
        self.assertIn("status 7 each time", self.prove(status=7, THEN="sys.exit(7)").stderr)

    def test_a_program_is_compared_by_its_own_clock_too(self):
        timed = {"THEN": "print('warm-up took 9 us')\nprint(f'took {1200 if bare else 1000:,} us')"}
        result = self.prove("--clock", r"took ([\d,.]+) us", rounds="3", **timed)
        self.assertRegex(result.stderr, r"wall time .*\n +own clock +1200 bare, 1000 tuned \(medians\): 1\.200 times as "
                         r"fast \(median of 3 pairs, 95 % interval 1\.200 to 1\.200\): tuned is faster\n")
        without = self.prove("--clock", r"took ([\d,.]+) us", THEN="print('took 1 us' if bare else 'sum')", status=1)
        self.assertIn("own clock  NOT in the output of every run", without.stderr)

    def test_outputs_are_compared_in_all_but_the_clock(self):
        says = "print(f'rate {len(runs)} GB/s\\nstep {len(runs)} us of {x}')"
        clock = r"step ([\d.]+) us|rate .*"
        same = self.prove("--clock", clock, THEN="x = 7; " + says)
        self.assertIn("the same in every byte but for what --clock matches", same.stderr)
        self.assertIn("step 1 us of 7", same.stdout)
        other = self.prove("--clock", clock, THEN="x = 7 if bare else 8; " + says)
        self.assertIn("the same but for numbers", other.stderr)

        no_number = self.prove("--clock", r"took (\w+)", THEN="print('took', 1 if bare else 'x')")
        self.assertIn("the same in every byte but for what --clock matches", no_number.stderr)
        self.assertIn("own clock  NOT in the output of every run", no_number.stderr)

    def test_a_clock_that_cannot_be_read_is_refused(self):
        for clock, why in (("(", "--clock (: "), ("took", "there is no group in it"),
                           ("(sum)", "no line of the output has a time there")):
            self.assertIn(why, self.prove("--clock", clock, status=125).stderr)
        result = self.contextune("run", "--clock", "(x)", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("--clock is read by --prove", result.stderr)

    def test_each_run_reads_the_input_anew(self):
        (self.work / "input").write_text("hello\n")
        with open(self.work / "input") as file:
            self.notes.write_text("")
            result = self.run_program(
                *self.program, flags=["--prove", "2"], stdin=file,
                env=self.environment | {"NOTES": str(self.notes), "THEN": "print(sys.stdin.read())"})
        self.assertEqual(result.stdout, "hello\n\n")
        self.assertIn("the same in every byte", result.stderr)

    def test_a_program_that_is_not_tuned_is_named(self):
        result = self.contextune("run", "--prove", "2", "--", "true")
        self.assertEqual(result.returncode, 0)
        self.assertIn("nothing was tuned", result.stderr)

    def test_what_cannot_be_proved_is_refused(self):
        for flags, why in ((["--prove", "1"], "2 to 1000"), (["--prove", "many"], "many"),
                           (["--prove", "2", "-n", "2"], "-n starts several at once"),
                           (["--prove", "2", "--discover"], "tune nothing")):
            result = self.contextune("run", *flags, "--", "true")
            self.assertEqual((result.returncode, result.stdout), (125, ""), flags)
            self.assertIn(why, result.stderr)
        missing = self.contextune("run", "--prove", "2", "--", "/no/such/program")
        self.assertEqual(missing.returncode, 125)
        self.assertIn("/no/such/program: No such file", missing.stderr)


if __name__ == "__main__":
    unittest.main()
