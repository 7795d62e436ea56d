"""The example of the page on custom ops: an all_reduce with three implementations."""

# The README shows what follows; tests of both pages compare the two.
import contextune
import torch
import torch.distributed as dist
from contextune import CustomOpConfig


def group_of(name):
    return dist.distributed_c10d._resolve_process_group(name)


@torch.library.custom_op("mylib::all_reduce", mutates_args=())
def all_reduce(x: torch.Tensor, group_name: str) -> torch.Tensor:  # the default
    out = x.clone()
    dist.all_reduce(out, group=group_of(group_name))
    return out


@all_reduce.register_fake
def _(x, group_name):
    return torch.empty_like(x)


def one_shot(x, group_name):  # each rank adds what all have
    group = group_of(group_name)
    parts = x.new_empty(group.size() * x.shape[0], *x.shape[1:])
    dist.all_gather_into_tensor(parts, x, group=group)
    return parts.view(group.size(), *x.shape).sum(0)


def two_shot(x, group_name, pieces):  # each adds a part, and gathers the others' sums
    group = group_of(group_name)
    out = torch.empty_like(x)
    for piece, to in zip(x.chunk(pieces), out.chunk(pieces)):
        own = piece.new_empty(piece.shape[0] // group.size(), *piece.shape[1:])
        dist.reduce_scatter_tensor(own, piece, group=group)
        dist.all_gather_into_tensor(to, own, group=group)
    return out


tuned = contextune.register_custom_op_autotuning(all_reduce, [
    CustomOpConfig(one_shot),
    CustomOpConfig(two_shot, pieces=1),
    CustomOpConfig(two_shot, pieces=2),
], tolerance="bf16:1e-2")  # sums in another order
