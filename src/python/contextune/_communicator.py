"""The ncclComm_t of what stands for a group of ranks."""

import sys
from typing import Any

from contextune._errors import Error


def _of_torch(group: Any) -> Any:
    backend: Any = group._get_backend(sys.modules["torch"].device("cuda"))
    if not hasattr(backend, "_comm_ptr"):
        raise Error("this PyTorch does not say what the ncclComm_t of a group is; take 2.7 or later, or "
                    "give the ncclComm_t as a whole number")
    return backend._comm_ptr() or 0


def communicator_of(group: Any) -> int:
    """The address of an ncclComm_t.

    Takes a process group of PyTorch, a whole number, and what has the address as `ptr`, `comm` or
    `value`, as objects of ctypes do.
    """
    address: Any = group
    if hasattr(group, "_get_backend"):
        address = _of_torch(group)
    for name in ("ptr", "comm", "value"):
        if isinstance(address, int):
            break
        address = getattr(address, name, address)
    if not isinstance(address, int) or isinstance(address, bool):
        raise Error(f"{type(group).__name__} is no group of ranks; give a process group of PyTorch whose "
                    "backend is NCCL, or an ncclComm_t as a whole number")
    if address == 0:
        raise Error("the group has no NCCL communicator yet; do a collective in it first, or give "
                    "device_id to init_process_group()")
    return address
