"""This process's place in its job."""

import ctypes
from typing import NamedTuple

from contextune import _library


class Rank(NamedTuple):
    """A rank, from 0, and how many there are."""
    rank: int
    num_ranks: int


def rank() -> Rank:
    """This process's rank in its job, as far as it is known by now.

    Of the ranks that were joined, else as the launcher says, else as the program's first NCCL
    communicator of several ranks does; 0 of 1 where nobody says. Waits for nobody.
    """
    library = _library.library()
    if library is None:
        return Rank(0, 1)
    own, count = ctypes.c_uint32(), ctypes.c_uint32()
    library.contextune_rank(ctypes.byref(own), ctypes.byref(count))
    return Rank(own.value, count.value)
