"""Winners of Triton's kernels in the store. Skipped where there is no Triton."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("triton") is None:
    print("skipped: there is no Triton for this Python")
    sys.exit(4)  # as CTest knows it

HERE = pathlib.Path(__file__).parent
PROGRAM = """
import sys
import contextune
from simulated import Gpu
from simulated_triton import Kernel, configs
import triton

gpu = Gpu()
y, kernel = gpu.tensor(1000), Kernel(gpu, name="fill", body=sys.argv[1])
fill = triton.autotune(configs(*map(int, sys.argv[2:])), key=["n"])(kernel.function)

@contextune.contextual_autotune()
def step():
    return fill[(8,)](y, 2.0, 1000)

assert step() == "launched 128"
assert [config.kwargs for config in fill.cache.values()] == [{"BLOCK": 128}]
print(*kernel.launched)
"""


class Store(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "program.py").write_text(PROGRAM)

    def run_program(self, *arguments):
        """The configs that were launched."""
        ended = subprocess.run([sys.executable, "program.py", *map(str, arguments)], text=True, cwd=self.folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=os.environ | {"PYTHONPATH": str(HERE), "CONTEXTUNE_STORE": "tune",
                                                 "CONTEXTUNE_CACHE_DIR": str(self.folder / "store"),
                                                 "CONTEXTUNE_LOG_DIR": str(self.folder / "logs")})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return list(map(int, ended.stdout.split()))

    def test_a_second_run_starts_with_the_winner_of_the_first(self):
        self.assertGreaterEqual(self.run_program("pass", 256, 128, 64).count(64), 8)
        self.assertEqual(self.run_program("pass", 256, 128, 64), [128])

    def test_other_code_is_searched_again(self):
        self.run_program("pass", 256, 128, 64)
        self.assertGreaterEqual(self.run_program("return", 256, 128, 64).count(64), 8)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
