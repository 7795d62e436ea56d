"""A choice of two ranks that it names by their numbers, as a launcher like torchrun has started them."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
LIMIT = 100
# Blocks of 128 are slow on rank 1, so that both together prefer 64.
RANK = """
import os
import contextune
from simulated import Gpu

gpu = Gpu()
y = gpu.tensor(1000)
choice = contextune.Choice("named", communicator="0+1", buffers=lambda y: [y], repeatable=True,
                           calls_per_pass=int(os.environ["CALLS"]))

def setting(block):
    def run(y):
        if os.environ["RANK"] == "1" and block == 128:
            gpu.launch("set", 256, y, 1.0)
        gpu.launch("set", block, y, 1.0)
        return block
    return run

for block in 256, 128, 64:
    choice.add(f"of_{block}")(setting(block))
print(choice(y), choice(y), choice.settled())
"""


class NamedRanks(unittest.TestCase):
    def test_ranks_that_are_named_are_found_as_the_launcher_says(self):
        self.run_ranks(1)

    def test_where_launches_are_not_seen_calls_in_a_row_are_timed_one_by_one(self):
        for log in self.run_ranks(4):
            self.assertRegex(log, "event=trial .* launches=4 .* timer=cupti")

    def run_ranks(self, calls):
        """The ranks' logs."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rank.py").write_text(RANK)
            environment = os.environ | {
                "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
                "CONTEXTUNE_LOG_DIR": str(folder / "logs"), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                "TORCHELASTIC_RUN_ID": folder.name, "CALLS": str(calls)}
            ranks = [subprocess.Popen([sys.executable, "rank.py"], cwd=folder, text=True,
                                      env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for rank in range(2)]
            try:
                told = [rank.communicate(timeout=LIMIT) for rank in ranks]
            finally:
                for rank in ranks:
                    rank.kill()
            self.assertEqual([out.strip() for out, _ in told], ["64 64 (2, 0)"] * 2, told)
            return [path.read_text() for path in sorted((folder / "logs").iterdir())]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
