"""The ranks that do a custom op together."""

import ctypes
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from contextune._errors import Error
from contextune._group import communicator_of
from contextune._library import Library

_COLLECTIVES = ("allreduce", "allgather", "reducescatter", "alltoall")
_GROUP_PARAMETERS = ("group_name", "group", "process_group")


class OpRanks(NamedTuple):
    """Ranks of the job, as a choice is told of them."""
    group: str = ""  #: "0+1"; empty: the communicator's, or this process alone
    communicator: int = 0

    @property
    def are_several(self) -> bool:
        return bool(self.group or self.communicator)


def is_collective(names: Iterable[str]) -> bool:
    """Whether one of these names is that of a collective, as "fused_all_reduce_norm" and "allgather"."""
    return any(word in name.replace("_", "").lower() for name in names for word in _COLLECTIVES)


def group_parameter(names: Iterable[str]) -> str | None:
    """The parameter by which an op is given the name of its process group."""
    return next((name for name in names if name in _GROUP_PARAMETERS), None)


def job() -> Any:
    """The class whose `WORLD` is the process group of the whole job; None: there are none."""
    dist: Any = getattr(sys.modules.get("torch"), "distributed", None)
    return dist.distributed_c10d.GroupMember if dist is not None and dist.is_available() else None


def process_group(given: Any) -> Any:
    """A process group, by its name, by itself, or the whole job's for None; None: there is none."""
    dist: Any = getattr(sys.modules.get("torch"), "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    if isinstance(given, str) and given:
        try:
            return dist.distributed_c10d._resolve_process_group(given)
        except Exception:  # by another name than PyTorch's
            return None
    return given or dist.group.WORLD


def ranks_of(library: Library, group: Any) -> OpRanks:
    """The ranks of a process group.

    By their numbers where the job's are PyTorch's, which holds for torchrun; else by the group's NCCL
    communicator.
    """
    dist: Any = sys.modules["torch"].distributed
    ranks = sorted(dist.get_process_group_ranks(group))
    if len(ranks) == 1:
        return OpRanks()
    rank, num_ranks = ctypes.c_uint32(), ctypes.c_uint32()
    library.contextune_rank(ctypes.byref(rank), ctypes.byref(num_ranks))
    if (rank.value, num_ranks.value) == (dist.get_rank(), dist.get_world_size()):
        return OpRanks(group="+".join(map(str, ranks)))
    if dist.get_backend(group) != "nccl":
        raise Error("the launcher does not say which ranks there are, and the group has no NCCL "
                    "communicator; start the ranks with torchrun, or call contextune.join()")
    return OpRanks(communicator=communicator_of(group))
