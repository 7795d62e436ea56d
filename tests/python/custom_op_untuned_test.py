"""Custom ops of PyTorch where nothing can be tuned: on the CPU, without the library, switched off."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import contextune

if importlib.util.find_spec("torch") is None:
    print("skipped: there is no PyTorch for this Python")
    sys.exit(4)  # as CTest knows it

HERE = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(contextune.__file__).parent
PROGRAM = """
import sys
import warnings
import contextune
assert "torch" not in sys.modules
import torch
from contextune import CustomOpConfig

warnings.filterwarnings("ignore", message="CUDA initialization")
if sys.argv[1] == "simulated":
    from simulated_torch import TorchGpu
    gpu = TorchGpu()
ran = []

@torch.library.custom_op("untuned::twice", mutates_args=())
def twice(x: torch.Tensor, times: int = 2) -> torch.Tensor:
    ran.append("twice")
    return x * times

@twice.register_fake
def _(x, times=2):
    return torch.empty_like(x)

def other(x, times=2):
    ran.append("other")
    return x * times

tuned = contextune.register_custom_op_autotuning(twice, [CustomOpConfig(other)])
compiled = torch.compile(lambda x: twice(x, 3), backend="aot_eager", fullgraph=True)
x = torch.ones(4)
for call, wanted in (twice, 2), (twice, 2), (compiled, 3), (compiled, 3):
    assert call(x).tolist() == [wanted] * 4
assert ran == ["twice"] * 4, ran
assert tuned.timings(x) == []
"""


class Untuned(unittest.TestCase):
    def run_program(self, how, *paths, **variables):
        """The warnings of this package."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.pathsep.join([*map(str, paths), str(HERE), os.environ.get("PYTHONPATH", "")])
            ended = subprocess.run([sys.executable, "-c", PROGRAM, how], text=True, cwd=folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=os.environ | {"PYTHONPATH": path} | variables)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return [line for line in ended.stderr.splitlines() if "UntunedWarning" in line]

    def test_on_the_cpu_the_default_runs_and_that_is_said_once(self):
        (said,) = self.run_program("real")
        self.assertIn("untuned::twice is not tuned on other devices than a GPU", said)

    def test_without_the_library_the_default_runs_with_one_warning(self):
        with tempfile.TemporaryDirectory() as name:
            shutil.copytree(PACKAGE, pathlib.Path(name) / "contextune", ignore=shutil.ignore_patterns("native"))
            (said,) = self.run_program("simulated", name)
        self.assertIn("pip install", said)

    def test_a_process_in_which_contextune_is_switched_off_runs_the_default(self):
        self.assertEqual(self.run_program("simulated", CONTEXTUNE_DISABLE="1"), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
