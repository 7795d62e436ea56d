"""The GPU that configs are made for."""

import ctypes
from dataclasses import dataclass

from contextune import _library


@dataclass(frozen=True)
class Device:
    """Facts about a GPU; zeros, and no name, where nothing is known."""
    name: str = ""
    num_sms: int = 0
    compute_capability: int = 0  #: 90 for 9.0
    max_threads_per_block: int = 0
    registers_per_sm: int = 0
    max_shared_bytes: int = 0  #: of a block, if it opts in

    @property
    def is_known(self) -> bool:
        return self.num_sms > 0


def current_device() -> Device:
    """The device of this thread's context. Nothing is known before the program initialises CUDA."""
    library = _library.library()
    facts = _library.DeviceFacts(size=ctypes.sizeof(_library.DeviceFacts))
    if library is None or library.contextune_current_device(ctypes.byref(facts)) != 0:
        return Device()
    return Device(_library.decode(facts.name), facts.num_sms, facts.compute_capability,
                  facts.max_threads_per_block, facts.registers_per_sm, facts.max_shared_bytes)
