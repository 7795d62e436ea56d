"""Kernels of `triton.autotune` in a region of two ranks. Skipped where there is no Triton."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import contextune

if importlib.util.find_spec("triton") is None:
    print("skipped: there is no Triton for this Python")
    sys.exit(4)  # as CTest knows it

HERE = pathlib.Path(__file__).parent
LIMIT = 100
# Blocks of 128 are slow on one rank, and 32 is out of resources there.
RANK = """
import os, pathlib, sys
import contextune
from simulated import Gpu
from simulated_triton import Kernel, configs
import triton
from triton.runtime.errors import OutOfResources

rank, gpu = int(os.environ["CONTEXTUNE_RANK"]), Gpu()
y, kernel = gpu.tensor(1000), Kernel(gpu, name="fill")
fill = triton.autotune(configs(256, 32, 128, 64), key=["n"])(kernel.function)
if rank == 1:
    kernel.slow = {128}
    kernel.failing = {32: OutOfResources(1 << 20, 1 << 18, "shared memory")}

@contextune.contextual_autotune(is_dist=True, n_repeat=5, n_warmup=3)
def step():
    return fill[(8,)](y, 2.0, 1000)

(pathlib.Path(sys.argv[1]) / str(rank)).write_text(f"{step()} {fill.best_config.kwargs} {set(y.read())}")
"""


class Ranks(unittest.TestCase):
    def test_ranks_choose_what_is_best_for_the_slowest_and_what_fails_on_one_fails_on_all(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rank.py").write_text(RANK)
            environment = os.environ | {"PYTHONPATH": str(HERE), "SIMCUDA_DEVICES": "2"}
            ended = subprocess.run(
                [sys.executable, "-m", "contextune", "run", "-n", "2", "--quiet", "--log-dir", folder / "logs",
                 "--", sys.executable, "rank.py", name], cwd=folder, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
            self.assertEqual(ended.returncode, 0, ended.stdout)
            self.assertEqual([(folder / rank).read_text() for rank in "01"],
                             2 * ["launched 64 {'BLOCK': 64} {2.0}"])
            for rank in range(2):
                (log,) = [one for one in contextune.read_logs(folder / "logs")["processes"]
                          if one["rank"] == rank]
                (region,) = [one for one in log["regions"] if one["name"] == "step"]
                (site,) = [one for one in region["sites"] if one["name"] == "fill"]
                self.assertIn("BLOCK=64", site["configs"][str(site["winner"]["config"])])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
