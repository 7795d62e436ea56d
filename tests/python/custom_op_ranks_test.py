"""A collective that is a custom op, done by two ranks over gloo, whose kernels the simulated driver times."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

if importlib.util.find_spec("torch") is None:
    print("skipped: there is no PyTorch for this Python")
    sys.exit(4)  # as CTest knows it

HERE = pathlib.Path(__file__).parent
LIMIT = 100
# Blocks of 128 are slow on rank 1, so that both together prefer 64.
RANK = """
import os, pathlib, sys, time, warnings
import torch
import torch.distributed as dist
from simulated_torch import TorchGpu

how, folder = sys.argv[1], pathlib.Path(sys.argv[2])
rank = int(os.environ["RANK"])
is_without = how == "without" and rank == 1
warnings.filterwarnings("ignore", message="CUDA initialization")
gpu = TorchGpu()
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
ran = []

def reduced(x, block):
    ran.append(block)
    out = gpu.empty(tuple(x.shape))
    out.copy_(x)
    if rank == 1 and block == 128:
        gpu.run("add", 256, out, 0.0)
    gpu.run("add", block, out, 0.0)
    dist.all_reduce(out)
    return out

@torch.library.custom_op("ranks::all_reduce", mutates_args=())
def all_reduce(x: torch.Tensor, group_name: str) -> torch.Tensor:
    return reduced(x, 256)

@all_reduce.register_fake
def _(x, group_name):
    return torch.empty_like(x)

def blocked(x, group_name, block):
    if how == "dies" and rank == 1 and ran.count(128) == 3:
        os._exit(0)
    return reduced(x, block)

def fails_on_one(x, group_name):
    out = reduced(x, 128)
    if rank == 1:  # where the other does not wait for it any more
        raise ValueError("not on this rank")
    return out

if not is_without:
    import contextune
    from contextune import CustomOpConfig
    contextune.register_custom_op_autotuning(
        all_reduce, [CustomOpConfig(blocked, block=128), CustomOpConfig(blocked, block=64)] +
        [CustomOpConfig(fails_on_one)] * (how == "fails"),
        select="immediate" if how == "immediate" else "deferred")

group = dist.group.WORLD.group_name
x = gpu.full((4, 100), 1.0 + rank)
call = lambda x: all_reduce(x, group) + 1
if how == "compiled":
    call = torch.compile(call, backend="aot_eager", fullgraph=True)
if how in ("live", "immediate"):
    def call(x):
        with contextune.region("step", distributed="on"):
            return all_reduce(x, group) + 1
if how == "late" and rank == 1:
    time.sleep(2)
try:
    first = set(call(x).flatten().tolist())
    del ran[:]
    second = set(call(x).flatten().tolist())
    print(first, second, ran)
    dist.barrier()
    dist.destroy_process_group()
except RuntimeError:  # as gloo says of a rank that has gone
    print("the other has gone")
sys.stdout.flush()
os._exit(0)  # some versions of gloo abort where threads are left
"""


TOGETHER = RANK.split("if how == \"late\"")[0] + """
@torch.library.custom_op("ranks::second_all_reduce", mutates_args=())
def second(x: torch.Tensor, group_name: str) -> torch.Tensor:
    return reduced(x, 256)

@second.register_fake
def _(x, group_name):
    return torch.empty_like(x)

contextune.register_custom_op_autotuning(second, [CustomOpConfig(blocked, block=64)])

@contextune.contextual_autotune(is_dist=True, name="both", confirm=False)
def step():
    return second(all_reduce(x, group), group)

values = [set(step().flatten().tolist())]
del ran[:]
values.append(set(step().flatten().tolist()))
print(*values, ran)
sys.stdout.flush()
dist.barrier()
os._exit(0)
"""
# On plain tensors, which no simulated kernel changes: all ways take the same time.
EXAMPLE = """
import contextune._custom_op_torch as custom_op_torch
import os, pathlib, sys
import torch
import torch.distributed as dist
from simulated_torch import TorchGpu

folder, rank = pathlib.Path(sys.argv[2]), int(os.environ["RANK"])
gpu = TorchGpu()
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
from all_reduce_op import all_reduce, tuned

x = torch.full((8, 4), 1.0 + rank)
group = dist.group.WORLD.group_name
values = [set(all_reduce(x, group).flatten().tolist()) for _ in range(2)]
print(*values, len(tuned.timings(x, group)))
dist.barrier()
sys.stdout.flush()
os._exit(0)
"""


class Ranks(unittest.TestCase):
    def run_ranks(self, how, program=RANK, **variables):
        """What each rank prints, and the log of the first."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        (path / "rank.py").write_text(program)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            "CONTEXTUNE_LOG_DIR": str(path / "logs"), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
            "TORCHELASTIC_RUN_ID": path.name} | variables  # as torchrun says
        ranks = [subprocess.Popen([sys.executable, "rank.py", how, folder.name], cwd=path,
                                  env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for rank in range(2)]
        try:
            told = [rank.communicate(timeout=LIMIT) for rank in ranks]
        except subprocess.TimeoutExpired:
            for rank in ranks:
                rank.kill()
            told = [rank.communicate() for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], told)
        self.log = "".join(log.read_text() for log in (path / "logs").glob("rank-*.log"))
        return [out.strip() for out, _ in told]

    def test_ranks_choose_what_is_best_for_the_slowest(self):
        for how in "eager", "compiled":
            self.assertEqual(self.run_ranks(how), ["{4.0} {4.0} [64]"] * 2, self.log)
            winners = [line for line in self.log.splitlines() if "event=winner" in line]
            self.assertEqual(len(winners), 2, self.log)
            self.assertTrue(all("block=64" in winner and "ranks=2" in winner for winner in winners), winners)

    def test_in_a_region_that_is_not_repeated_ranks_search_what_is_to_be_searched_at_once(self):
        for how, ran in ("live", 256), ("immediate", 64):
            self.assertEqual(self.run_ranks(how), [f"{{4.0}} {{4.0}} [{ran}]"] * 2, self.log)

    def test_ranks_search_several_ops_of_a_region_in_the_same_passes(self):
        told = self.run_ranks("region", TOGETHER)
        self.assertEqual(told, ["{6.0} {6.0} [64, 64]"] * 2, self.log)
        lines = self.log.splitlines()
        winners = [line for line in lines if "event=winner" in line and "region=both" in line]
        self.assertEqual(len(winners), 4, winners)
        # One a stage for both ops.
        agreed = [line for line in lines if "event=sync" in line and "region=both" in line]
        self.assertTrue(0 < len(agreed) <= 12 and all("committed" in line for line in agreed), agreed)

    def test_an_implementation_that_fails_on_one_rank_is_chosen_on_none(self):
        self.assertEqual(self.run_ranks("fails"), ["{4.0} {4.0} [64]"] * 2, self.log)
        self.assertIn("not on this rank", self.log)

    def test_where_a_rank_is_late_both_run_the_default(self):
        told = self.run_ranks("late", CONTEXTUNE_PRESYNC_TIMEOUT="300ms")
        self.assertEqual(told, ["{4.0} {4.0} [256]"] * 2, self.log)
        self.assertIn("reason=no_agreement", self.log)

    def test_where_a_rank_has_not_the_package_both_run_the_default(self):
        told = self.run_ranks("without", CONTEXTUNE_PRESYNC_TIMEOUT="300ms")
        self.assertEqual(told, ["{4.0} {4.0} [256]"] * 2, self.log)

    def test_where_a_rank_dies_the_other_hears_of_it_as_without_tuning(self):
        begin = time.monotonic()
        told = self.run_ranks("dies", CONTEXTUNE_PRESYNC_TIMEOUT="1")
        self.assertEqual(told, ["the other has gone", ""], self.log)
        self.assertLess(time.monotonic() - begin, 60)

    def test_the_three_implementations_of_the_documentation_compute_the_same(self):
        self.assertEqual(self.run_ranks("example", EXAMPLE), ["{3.0} {3.0} 4"] * 2, self.log)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + [one for one in sys.argv[1:] if one.startswith("Ranks")], verbosity=2)
