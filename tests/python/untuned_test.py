"""Where nothing can be tuned everything runs once, as it is written: without the library, without a
driver, and with a library that is none."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import contextune

PACKAGE = pathlib.Path(contextune.__file__).parent
PROGRAM = """
import contextune
from contextune import autotune, contextual_autotune, region

runs = []

@autotune([{"block": 64}, {"block": 128}], lambda x: x, lambda config, x: config["block"] > x)
def scale(x, block):
    runs.append(block)
    return block

@contextual_autotune(restore=lambda x: 1 / 0)
def step(x):
    runs.append("step")
    return scale(x)

@region("decorated", restore="x")
def decorated(x):
    runs.append("decorated")

assert (scale(1), scale(100), step(2)) == (64, 128, 64)
assert scale(1, block=7, autotune_allow_arg_overwrite=True) == 7
decorated([])
with region("entered"):
    runs.append("entered")
for _ in region("repeated", repeatable=True):
    runs.append("repeated")
assert runs == [64, 128, "step", 64, 7, "decorated", "entered", "repeated"], runs
choice = contextune.Choice("sum", buffers=lambda x: 1 / 0, make_inputs=lambda problem: 1 / 0)
choice.add("first", {"block": [64, 128]})(lambda x, block: (x, block))
choice.add("second")(lambda x: 1 / 0)
assert choice(5) == (5, 64)
assert choice.timings(1024) == []
assert contextune.rank() == (0, 1)
for call in (lambda: scale(1, block=7), lambda: scale(1000)):
    try:
        call()
    except contextune.Error as error:
        print("refused:", error)
print(contextune.state().reach.name, contextune.state().reason)
print(contextune.current_device())
"""


class Untuned(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, **variables):
        ended = subprocess.run([sys.executable, "-c", PROGRAM], text=True, cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=os.environ | {"PYTHONPATH": str(self.folder)} | variables)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("refused: function 'scale': a call sets 'block'", ended.stdout)
        self.assertIn("refused: function 'scale': no config can run", ended.stdout)
        self.assertIn("OFF", ended.stdout)
        self.assertIn("num_sms=0", ended.stdout)
        return ended

    def test_without_the_library_everything_runs_once_with_one_warning(self):
        shutil.copytree(PACKAGE, self.folder / "contextune", ignore=shutil.ignore_patterns("native"))
        ended = self.run_program()
        self.assertEqual(ended.stderr.count("UntunedWarning"), 1, ended.stderr)
        self.assertIn("pip install", ended.stderr)

    def test_a_library_that_cannot_be_used_is_named_in_the_warning(self):
        shutil.copytree(PACKAGE, self.folder / "contextune", ignore=shutil.ignore_patterns("native"))
        library = self.folder / "contextune" / "native" / "lib" / "libcontextune.so"
        library.parent.mkdir(parents=True)
        library.write_text("no library")
        ended = self.run_program()
        self.assertEqual(ended.stderr.count("UntunedWarning"), 1, ended.stderr)
        self.assertIn(str(library), ended.stderr)

    def test_without_a_driver_everything_runs_once_without_a_word(self):
        self.assertEqual(self.run_program(LD_LIBRARY_PATH="").stderr, "")

    def test_before_cuda_is_initialised_everything_runs_once(self):
        ended = self.run_program()
        self.assertEqual(ended.stderr, "")
        self.assertIn("initialised", ended.stdout)

    def test_a_process_in_which_contextune_is_switched_off_runs_everything_once(self):
        self.assertEqual(self.run_program(CONTEXTUNE_DISABLE="1").stderr, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
