"""A tensor-parallel linear layer, compiled, whose all_reduce is the custom op of the documentation, with
three implementations.

Needs PyTorch, and the package or a build of this clone (CONTEXTUNE_TEST_BUILD):
    python tests/gpu/torch_custom_all_reduce.py [together | preloaded | late | dead | without]...
Starts two ranks of itself with torchrun for each of these; on one GPU they are two hosts to NCCL. All
values are small whole numbers, so that no order of additions changes a bit. Prints a line for each.

  together   both ranks find the same winner, and all sums are right, in a CUDA graph, too
  preloaded  the same under `contextune run`
  late       rank 1 comes after presync_timeout: both run the default, and all sums are right
  dead       rank 1 ends during the search: rank 0 ends as soon as NCCL gives up, as without a tuner
  without    rank 1 has not the package: both run the default, and all sums are right
"""
import datetime
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import built_package

RANKS = 2
TOKENS, WIDTH = (64, 1024), 1024
MOST_SECONDS = float(os.environ.get("CONTEXTUNE_TEST_SECONDS", "240"))
NCCL_SECONDS = 20
LATE_SECONDS = 4
SETTLED = (["all_reduce"], ["all_gather"], ["reduce_scatter", "all_gather"],
           ["reduce_scatter", "all_gather"] * 2)
PARTS = ("together", "preloaded", "late", "dead", "without")


def rank_main(part, folder):
    import torch
    import torch.distributed as dist

    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    if torch.cuda.device_count() < RANKS:
        local_rank = 0
        os.environ |= {"NCCL_HOSTID": f"host{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device, timeout=datetime.timedelta(seconds=NCCL_SECONDS))
    ran = []

    def noted(name, function):
        def call(*args, **kwargs):
            ran.append(name)
            if part == "dead" and rank == 1 and ran.count("all_gather") == 3:
                os._exit(0)
            return function(*args, **kwargs)

        return call

    dist.all_reduce = noted("all_reduce", dist.all_reduce)
    dist.all_gather_into_tensor = noted("all_gather", dist.all_gather_into_tensor)
    dist.reduce_scatter_tensor = noted("reduce_scatter", dist.reduce_scatter_tensor)
    if part == "without" and rank == 1:
        sys.modules["contextune"] = types.SimpleNamespace(
            CustomOpConfig=lambda *_, **__: None, register_custom_op_autotuning=lambda *_, **__: None)
    from all_reduce_op import all_reduce, tuned

    generator = torch.Generator().manual_seed(7)
    share = WIDTH // RANKS
    weight = torch.randint(-1, 2, (WIDTH, WIDTH), generator=generator).to(device, torch.bfloat16)
    bias = torch.randint(-8, 9, (WIDTH,), generator=generator).to(device, torch.bfloat16)
    inputs = [torch.randint(-1, 2, (tokens, WIDTH), generator=generator).to(device, torch.bfloat16)
              for tokens in TOKENS]
    own = slice(rank * share, (rank + 1) * share)
    own_weight, name = weight[own].contiguous(), dist.group.WORLD.group_name

    @torch.compile(fullgraph=True, dynamic=False)
    def layer(x):
        return all_reduce(x @ own_weight, name) + bias

    def wanted(x):
        # As the layer rounds: products of each rank, their sum, and with the bias.
        total = sum((x[:, one * share:(one + 1) * share] @ weight[one * share:(one + 1) * share]).double()
                    for one in range(RANKS))
        return total.to(torch.bfloat16) + bias

    dist.barrier()
    if part == "late" and rank == 1:
        time.sleep(LATE_SECONDS)
    told = {"winners": [], "ran": [], "right": True, "timings": []}
    for x in inputs:
        told["right"] &= torch.equal(layer(x[:, own].contiguous()), wanted(x))
    for x in inputs:
        del ran[:]
        told["right"] &= torch.equal(layer(x[:, own].contiguous()), wanted(x))
        told["ran"].append(list(ran))
        if tuned is not None:
            timings = tuned.timings(x[:, own] @ own_weight, name)
            told["winners"] += [[one.implementation, one.config] for one in timings if one.is_winner]
            told["timings"].append({f"{one.implementation} {one.config}": round(one.seconds * 1e6, 1)
                                    for one in timings})
    if part in ("together", "preloaded"):
        x = inputs[0][:, own].contiguous()
        y = x @ own_weight
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            result = all_reduce(y, name)
        del ran[:]
        graph.replay()
        told["right"] &= torch.equal(result + bias, wanted(inputs[0]))
        torch.cuda.synchronize()
        del graph, result  # NCCL waits for graphs that hold its work when a communicator is destroyed
    (folder / f"rank-{rank}.json").write_text(json.dumps(told))
    torch.cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()


def run(part, folder, **variables):
    """Ends both ranks' run; the launcher's status, and what each rank has written."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(RANKS)]
    command = [sys.executable, *launcher, __file__, part, str(folder)]
    if part == "preloaded":
        command = [sys.executable, "-m", "contextune", "run", "--quiet", "--distributed", "on", "--region",
                   "nvtx:none", "--log-dir", str(folder / "logs"), "--", *command]
    environment = os.environ | {"CONTEXTUNE_LOG_DIR": str(folder / "logs"), "CONTEXTUNE_STORE": "off",
                                "OMP_NUM_THREADS": "1"} | variables
    with open(folder / "output.txt", "w") as output:
        status = subprocess.run(command, env=environment, stdout=output, stderr=subprocess.STDOUT,
                                timeout=MOST_SECONDS).returncode
    told = [json.loads(file.read_text()) for file in sorted(folder.glob("rank-*.json"))]
    return status, told


def log_of(folder):
    return "".join(file.read_text() for file in sorted((folder / "logs").glob("rank-*.log")))


def judge(part, folder):
    """A remark on a part that has done what it is to do; AssertionError if not."""
    short = {"CONTEXTUNE_PRESYNC_TIMEOUT": "1", "CONTEXTUNE_TRIAL_TIMEOUT": "5"}
    begin = time.monotonic()
    # One rank may take longer to compile than the other.
    status, told = run(part, folder, **(short if part in ("late", "dead", "without") else
                                        {"CONTEXTUNE_PRESYNC_TIMEOUT": "60"}))
    if part == "dead":
        seconds = time.monotonic() - begin
        assert len(told) == 0 and status != 0, f"status {status}"
        assert "reason=no_agreement" in log_of(folder), "no rank has said that the other is lost"
        return f"ended after {seconds:.0f} s"
    assert status == 0 and len(told) == RANKS, f"status {status}"
    assert all(one["right"] for one in told), "a sum is wrong"
    assert told[0]["ran"] == told[1]["ran"], told
    if part in ("late", "without"):
        assert told[0]["ran"] == [["all_reduce"]] * len(TOKENS), told[0]["ran"]
        return "the default on both ranks"
    assert all(one in SETTLED for one in told[0]["ran"]), told[0]["ran"]
    assert told[0]["winners"] == told[1]["winners"] and len(told[0]["winners"]) == len(TOKENS), told
    return f"{told[0]['winners']} of {told[0]['timings']}"


def main():
    if "RANK" in os.environ:
        rank_main(sys.argv[1], pathlib.Path(sys.argv[2]))
        return
    if importlib.util.find_spec("torch") is None:
        sys.exit("there is no PyTorch")
    parts = sys.argv[1:] or PARTS
    if not set(parts) <= set(PARTS):
        sys.exit(__doc__)
    built_package.use()
    failed = 0
    for part in parts:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            try:
                print(f"{part:10} {judge(part, folder)}", flush=True)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed += 1
                output = (folder / "output.txt").read_text()[-4000:]
                print(f"{part:10} FAILED: {error}\n{output}\n{log_of(folder)[-4000:]}", flush=True)
    sys.exit(failed > 0)


main()
