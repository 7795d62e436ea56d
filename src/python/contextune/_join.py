"""Ranks that no launcher has named."""

from typing import Any

from contextune import _library
from contextune._group import communicator_of
from contextune._errors import warn_once


def join(group: Any, seconds: float = 30) -> bool:
    """Tunes the regions of this process together with those of a group's other ranks.

    For programs whose launcher does not say which ranks there are, or whose ranks are on several hosts.
    Each rank calls it once, before its first region, with nothing else under way in the group.

    Args:
        group: A process group of PyTorch whose backend is NCCL, or an ncclComm_t.
        seconds: For which the others are waited for.

    Returns False, with a warning, where they do not meet; the program goes on untuned.
    """
    communicator = communicator_of(group)
    library = _library.library()
    if library is None:
        return False
    if library.contextune_join(communicator, seconds) == 0:
        return True
    warn_once(f"contextune: the ranks are not tuned together: {library.error()}")
    return False
