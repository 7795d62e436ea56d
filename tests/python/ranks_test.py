"""Two ranks over the simulated NCCL that no launcher has named: join() and groups of ranks."""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import contextune
from contextune._group import Group, communicator_of, group_of

HERE = pathlib.Path(__file__).parent
FRONTEND = pathlib.Path(contextune.__file__).parent / "native" / "lib" / "libcontextune_preload.so"
LIMIT = 100
# Blocks of 128 are slow on one rank, so that both together prefer 64.
RANK = """
import ctypes, os, pathlib, sys, time
import contextune
from simulated import Gpu

how, folder = sys.argv[1], pathlib.Path(sys.argv[2])
rank = int(os.environ["CONTEXTUNE_RANK" if how in ("launched", "part", "single") else "RANK"])
gpu = Gpu()
y = gpu.tensor(1000)
SPACE = [{"block": 256}, {"block": 128}, {"block": 64}]

@contextune.autotune(SPACE, lambda y: y.numel(), name="scale")
def scale(y, block):
    if rank == 1 and block == 128:
        gpu.launch("set", 256, y, 1.0)
    gpu.launch("set", block, y, 1.0)
    return block

@contextune.contextual_autotune(is_dist=True)
def distributed_step():
    return scale(y)

if how == "launched":
    (folder / str(rank)).write_text(f"{distributed_step()} {scale(y, autotune_pg=range(2))}")
    assert contextune.rank() == (rank, 2)
    sys.exit()
if how == "part":
    if rank < 2:
        (folder / str(rank)).write_text(str(scale(y, autotune_pg=range(2))))
    sys.exit()

nccl = ctypes.CDLL("libnccl.so.2")

class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]

unique = UniqueId()
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
communicator = ctypes.c_void_p()
if how == "single":
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    assert nccl.ncclCommInitRank(ctypes.byref(communicator), 1, unique, 0) == 0

    @contextune.contextual_autotune(communicator=[rank])
    def own_step():
        return scale(y)
    told = scale(y, autotune_pg=[rank]), own_step()
    if rank == 1:
        while not (folder / "0").exists():
            time.sleep(0.01)
        time.sleep(0.1)  # in which rank 0 ends
    told = *told, scale(gpu.tensor(500), autotune_pg=communicator)
    (folder / str(rank)).write_text(" ".join(map(str, told)))
    sys.exit()
if rank == 0:
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
    (folder / "id.part").write_bytes(bytes(unique))
    (folder / "id.part").rename(folder / "id")
else:
    while not (folder / "id").exists():
        time.sleep(0.01)
    unique = UniqueId.from_buffer_copy((folder / "id").read_bytes())
assert nccl.ncclCommInitRank(ctypes.byref(communicator), 2, unique, rank) == 0

if how == "join":
    print(contextune.join(communicator), scale(y))
elif how == "group":
    print(scale(y, autotune_pg=communicator.value))
elif how == "region":
    @contextune.contextual_autotune(communicator=communicator)
    def step():
        return scale(y)
    print(step())
"""


class Ranks(unittest.TestCase):
    def run_ranks(self, how, frontend=FRONTEND):
        """What each rank prints."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rank.py").write_text(RANK)
            environment = os.environ | {"PYTHONPATH": str(HERE), "SIMCUDA_DEVICES": "2",
                                        "CONTEXTUNE_LOG_DIR": str(folder / "logs"),
                                        "LD_PRELOAD": str(frontend)}
            ranks = [subprocess.Popen([sys.executable, "rank.py", how, name], cwd=folder,
                                      env=environment | {"RANK": str(rank), "WORLD_SIZE": "2"},
                                      text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for rank in range(2)]
            try:
                told = [rank.communicate(timeout=LIMIT) for rank in ranks]
            finally:
                for rank in ranks:
                    rank.kill()
            self.assertEqual([rank.returncode for rank in ranks], [0, 0], told)
            return [out.strip() for out, _ in told]

    def test_ranks_that_are_joined_choose_what_is_best_for_the_slowest(self):
        self.assertEqual(self.run_ranks("join"), ["True 64", "True 64"])

    def launch_ranks(self, how, num_ranks):
        """What each rank writes, and the logs, under the command."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rank.py").write_text(RANK)
            environment = os.environ | {"PYTHONPATH": str(HERE), "SIMCUDA_DEVICES": str(num_ranks)}
            ended = subprocess.run(
                [sys.executable, "-m", "contextune", "run", "-n", str(num_ranks), "--quiet", "--log-dir",
                 folder / "logs", "--", sys.executable, "rank.py", how, name], cwd=folder, env=environment,
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
            self.assertEqual(ended.returncode, 0, ended.stdout)
            return [(folder / rank).read_text() for rank in "01"], contextune.read_logs(folder / "logs")

    def test_ranks_that_the_command_starts_are_tuned_together_by_is_dist(self):
        told, logs = self.launch_ranks("launched", 2)
        self.assertEqual(told, ["64 64"] * 2)
        self.assertEqual([process["rank"] for process in logs["processes"]], [0, 1])
        (compared,) = logs["comparisons"]
        self.assertEqual(compared["differences"], [])
        self.assertLessEqual({"distributed_step", "scale{key=1000 group=0-1}"},
                             {region["name"] for region in compared["regions"]})

    def test_a_group_of_one_rank_is_tuned_by_it_alone_whatever_becomes_of_others(self):
        told, _ = self.launch_ranks("single", 2)
        self.assertEqual(told, ["128 128 128", "64 64 64"])

    def test_a_part_of_the_ranks_waits_for_no_other(self):
        told, _ = self.launch_ranks("part", 3)
        self.assertEqual(told, ["64", "64"])

    def test_ranks_are_joined_without_the_frontend_too(self):
        self.assertEqual(self.run_ranks("join", frontend=""), ["True 64", "True 64"])

    def test_a_function_that_a_group_calls_is_tuned_by_its_ranks(self):
        self.assertEqual(self.run_ranks("group"), ["64", "64"])

    def test_a_region_of_a_group_is_tuned_by_its_ranks(self):
        self.assertEqual(self.run_ranks("region"), ["64", "64"])

    def test_the_communicator_of_a_process_group_is_found_as_pytorch_tells_it(self):
        class ProcessGroup:
            def __init__(self, **told):
                self.told = types.SimpleNamespace(**told)

            def _get_backend(self, device):
                return self.told if device == "the device cuda" else None

        torch = types.SimpleNamespace(
            device=lambda name: f"the device {name}",
            distributed=types.SimpleNamespace(get_process_group_ranks=lambda group: [3, 1]))
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            self.assertEqual(group_of(ProcessGroup(_comm_ptr=lambda: 4096)), Group(4096))
            for without in ProcessGroup(), ProcessGroup(_comm_ptr=lambda: 0):
                self.assertEqual(group_of(without), Group(ranks="1+3"))
                with self.assertRaisesRegex(contextune.Error, "a collective"):
                    communicator_of(without)
        self.assertEqual(group_of(types.SimpleNamespace(comm=ctypes.c_void_p(4096))), Group(4096))

    def test_what_is_no_group_is_refused(self):
        for group, told in (("world", "str"), (0, "no NCCL communicator"), (True, "bool")):
            with self.assertRaisesRegex(contextune.Error, told):
                contextune.join(group)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
