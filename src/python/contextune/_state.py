"""The reach of contextune in this process."""

import enum
from typing import NamedTuple

from contextune import _library


class Reach(enum.IntEnum):
    """How much of the program is seen."""
    OFF = 0  #: nothing: disabled, or there is no usable GPU driver
    TUNABLES = 1  #: functions, choices and regions, but no other launches
    FULL = 2  #: all launches


class State(NamedTuple):
    reach: Reach
    reason: str  #: why it is not FULL


def state() -> State:
    """Says how much contextune can do in this process, and why no more."""
    library = _library.library()
    if library is None:
        return State(Reach.OFF, "there is no libcontextune.so that this package can use")
    return State(Reach(library.contextune_current_state()),
                 _library.decode(library.contextune_state_reason()))
