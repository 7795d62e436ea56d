"""Python programs under `contextune run`: kernels that a space file declares are tuned in a function that
contextual_autotune repeats, functions that say nothing are run again where that leaves the same, the package
uses the copy of the library that the frontend attaches, and read_logs() tells what was found."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import contextune

HERE = pathlib.Path(__file__).parent
SPACE = """
kernel "set" {
  space = { block = { 128, 64 } },
  apply = function(config, launch) launch.block.x = config.block end,
}
"""
PROGRAM = """
import contextune
from simulated import Gpu

gpu = Gpu()
y = gpu.tensor(1000)
runs = 0

@contextune.contextual_autotune(n_repeat=3, n_warmup=1)
def decode():
    global runs
    runs += 1
    gpu.launch("set", 256, y, 4.0)
    gpu.launch("add", 256, y, 1.0)
    return runs

print(decode() > 3 * 4, set(y.read()), contextune.state().reach.name)

choice = contextune.Choice("sum", buffers=lambda y: y)
choice.add("slow")(lambda y: gpu.launch("set", 256, y, 1.0))
choice.add("fast")(lambda y: gpu.launch("set", 128, y, 1.0))
choice(y)
print([one.implementation for one in choice.timings() if one.is_winner])

@contextune.autotune([{"block": 256}, {"block": 128}], lambda y: y.numel(), restore="y")
def scale(y, block):
    gpu.launch("add", block, y, 1.0)
    return block

print(scale(y))

@contextune.autotune([{"block": 256}, {"block": 128}], repeatable=False)
def recorded(y, block):
    gpu.launch("set", block, y, 1.0)
    return block

print(recorded(y))
"""

THREADED = """
import threading
from contextune import autotune, to_hashable
from simulated import Gpu

gpu, ends = Gpu(), threading.Event()
thread = threading.Thread(target=ends.wait)  # PyTorch has such threads, too
thread.start()
x = gpu.tensor(1000)

def of_blocks(**options):
    @autotune([{"block": b} for b in (256, 128, 64)], lambda x: to_hashable(x), **options)
    def scale(x, block):
        gpu.launch("set", block, x, 1.0)
        return block

    return scale

print(of_blocks()(x), of_blocks(name="recorded", repeatable=False)(x))
ends.set()
"""


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "space.lua").write_text(SPACE)
        (self.folder / "program.py").write_text(PROGRAM)
        self.environment = {name: value for name, value in os.environ.items()
                            if name != "CONTEXTUNE_LOG_DIR"} | {
            "PYTHONPATH": str(HERE), "CONTEXTUNE_LOG_DIR": str(self.folder / "logs")}

    def run_program(self, *command):
        ended = subprocess.run([*map(str, command), sys.executable, "program.py"], text=True,
                               cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout.splitlines()

    def test_a_declared_kernel_is_tuned_in_the_function_and_read_logs_tells_its_winner(self):
        lines = self.run_program(sys.executable, "-m", "contextune", "run", "--space", "space.lua",
                                 "--region", "nvtx:none", "--quiet", "--")
        self.assertEqual(lines, ["True {5.0} FULL", "['fast']", "128", "128"])
        logs = contextune.read_logs(self.folder / "logs")
        (process,) = logs["processes"]
        (region,) = [one for one in process["regions"] if one["name"] == "decode"]
        (site,) = [one for one in region["sites"] if one["name"] == "set"]
        self.assertIn("block=128", site["configs"][str(site["winner"]["config"])])

    def test_a_function_is_tuned_in_a_process_with_other_threads(self):
        (self.folder / "program.py").write_text(THREADED)
        lines = self.run_program(sys.executable, "-m", "contextune", "run", "--quiet", "--")
        self.assertEqual(lines, ["128 256"])

    def test_the_same_program_without_the_command_tunes_what_it_declares_itself(self):
        self.assertEqual(self.run_program(), ["False {5.0} TUNABLES", "['fast']", "128", "256"])

    def test_the_copy_beside_another_frontend_is_used(self):
        native = pathlib.Path(contextune.__file__).parent / "native" / "lib"
        other = self.folder / "other"
        other.mkdir()
        for name in ("libcontextune.so", "libcontextune_preload.so"):
            (other / name).write_bytes((native / name).read_bytes())
        self.environment |= {"LD_PRELOAD": str(other / "libcontextune_preload.so"),
                             "CONTEXTUNE_SPACE": str(self.folder / "space.lua")}
        self.assertEqual(self.run_program(), ["True {5.0} FULL", "['fast']", "128", "128"])

    def test_a_second_run_starts_with_the_winners_of_the_first(self):
        self.environment |= {"CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": str(self.folder / "store")}
        first, second = self.trials("first"), self.trials("second")
        for name in "decode", "choice sum", "recorded{}":
            self.assertGreater(first[name], second.get(name, 0), name)

    def test_a_function_whose_code_has_changed_is_tuned_again(self):
        self.environment |= {"CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": str(self.folder / "store")}
        first = self.trials("first")
        program = self.folder / "program.py"
        program.write_text(program.read_text().replace('gpu.launch("set", block, y, 1.0)\n',
                                                       'gpu.launch("set", block, y, 2.0)\n'))
        second = self.trials("second")
        self.assertEqual(first["recorded{}"], second["recorded{}"])
        self.assertGreater(first["scale{key=1000}"], second.get("scale{key=1000}", 0))

    def trials(self, folder):
        """How many there are in each region of a run."""
        lines = self.run_program(sys.executable, "-m", "contextune", "run", "--space", "space.lua", "--quiet",
                                 "--log-dir", folder, "--")
        self.assertEqual(lines[1:], ["['fast']", "128", "128"])
        (process,) = contextune.read_logs(self.folder / folder)["processes"]
        return {region["name"]: sum(len(site["trials"]) for site in region["sites"])
                for region in process["regions"]}

    def test_a_folder_that_is_named_like_a_flag_is_a_folder(self):
        with self.assertRaisesRegex(contextune.Error, "no log folder --help"):
            contextune.read_logs("--help")

    def test_a_folder_without_logs_is_named_by_read_logs(self):
        with self.assertRaisesRegex(contextune.Error, "no log folder .*nowhere"):
            contextune.read_logs(self.folder / "nowhere")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
