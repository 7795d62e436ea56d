"""Groups of ranks, as the library takes them."""

import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from contextune._errors import Error


_RANKS = re.compile(r"\d+(-\d+(/\d+)?)?(\+\d+(-\d+(/\d+)?)?)*")


class Group(NamedTuple):
    """Ranks of the job: those of a communicator, or by name. Neither: all of the job."""
    communicator: int | None = None  #: the address of an ncclComm_t
    ranks: str = ""  #: "0-3+6"


def _of_torch(group: Any) -> Group:
    torch = sys.modules["torch"]
    backend: Any = group._get_backend(torch.device("cuda"))
    # Null before the group's first collective, and absent before PyTorch 2.7 and in other backends.
    communicator = backend._comm_ptr() if hasattr(backend, "_comm_ptr") else 0
    if communicator:
        return Group(communicator)
    return _of_ranks(torch.distributed.get_process_group_ranks(group))


def _of_ranks(ranks: Iterable[int]) -> Group:
    named = sorted(ranks)
    if not named or not all(isinstance(rank, int) and rank >= 0 for rank in named):
        raise Error(f"a group has the ranks {named}; give numbers of ranks in the job")
    return Group(ranks="+".join(map(str, named)))


def group_of(given: Any) -> Group:
    """Takes a process group of PyTorch, numbers of ranks in the job, "0-3+6", and an ncclComm_t: as a
    whole number, or as what has it as `ptr`, `comm` or `value`, as objects of ctypes do.
    """
    if given is None:
        return Group()
    if hasattr(given, "_get_backend"):
        return _of_torch(given)
    if isinstance(given, str) and _RANKS.fullmatch(given):
        return Group(ranks=given)
    if isinstance(given, (list, tuple, range, set, frozenset)):
        return _of_ranks(given)
    return Group(communicator_of(given))


def communicator_of(given: Any) -> int:
    """The address of an ncclComm_t. Raises Error where there is none."""
    address = given
    if hasattr(given, "_get_backend"):
        address = _of_torch(given).communicator or 0
    for name in ("ptr", "comm", "value"):
        if isinstance(address, int):
            break
        address = getattr(address, name, address)
    if not isinstance(address, int) or isinstance(address, bool):
        raise Error(f"{type(given).__name__} {given!r} is no communicator; give a process group of PyTorch "
                    "whose backend is NCCL, or an ncclComm_t as a whole number")
    if address == 0:
        raise Error("the group has no NCCL communicator yet; do a collective in it first, or give "
                    "device_id to init_process_group()")
    return address
