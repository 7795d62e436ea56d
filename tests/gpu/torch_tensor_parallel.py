"""A linear layer that ranks share out by the columns of its input: matmul, all_reduce, bias, in an
NVTX range. Each rank prints a checksum of the result's bits, and rank 0 the time of a step. A host takes
up to twice as long for everything in one process as in another. So rank 0 also prints how many times as
long as the call of matmul the host takes for that of all_reduce, which is alike in all processes.

    torchrun --nproc_per_node 2 torch_tensor_parallel.py [STEPS]

All values are small whole numbers, so that no order of additions changes a bit.
"""
import hashlib
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist

TOKENS, WIDTH = 1024, 2048


def whole_numbers(generator, low, high, *shape):
    return torch.randint(low, high + 1, shape, generator=generator).to("cuda", torch.bfloat16)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    rank, ranks = dist.get_rank(), dist.get_world_size()

    # The same on all ranks, of which each keeps its part.
    generator = torch.Generator().manual_seed(7)
    own = slice(rank * WIDTH // ranks, (rank + 1) * WIDTH // ranks)
    x = whole_numbers(generator, -1, 1, TOKENS, WIDTH)
    weight = whole_numbers(generator, -1, 1, WIDTH, WIDTH)[own].contiguous()
    bias = whole_numbers(generator, -8, 8, WIDTH)
    torch.cuda.synchronize()

    last = max(1, steps // 4)  # whose mean time is shown
    calls = []
    for step in range(steps):
        torch.cuda.nvtx.range_push("step")
        start = time.perf_counter()
        y = x[:, own] @ weight
        middle = time.perf_counter()
        dist.all_reduce(y)
        calls.append((time.perf_counter() - middle) / (middle - start))
        y += bias
        x = torch.clamp(torch.floor(y / 32), -1, 1)
        torch.cuda.nvtx.range_pop()
        if step % 8 == 7 or step == steps - last - 1:
            torch.cuda.synchronize()
        if step == steps - last - 1:
            begin = time.perf_counter()
    torch.cuda.synchronize()
    if rank == 0 and steps > last:
        seconds = (time.perf_counter() - begin) / last
        print(f"rank 0 of {ranks}: all_reduce takes {statistics.median(calls[-last:]):.3f} matmuls", file=sys.stderr)
        print(f"rank 0 of {ranks}: {seconds * 1e6:.1f} us a step", file=sys.stderr)

    digest = hashlib.sha256()
    for tensor in (x, y):
        digest.update(tensor.float().cpu().numpy().tobytes())
    # In one call: the ranks write to the same file.
    sys.stdout.write(f"torch_tensor_parallel rank {rank} of {ranks} {digest.hexdigest()[:16]}\n")
    sys.stdout.flush()
    dist.destroy_process_group()


main()
