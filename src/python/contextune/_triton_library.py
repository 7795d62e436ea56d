"""The functions of contextune.h on tunables, by ctypes, as launches of Triton need them."""

import ctypes
from typing import Any

from contextune import _choice_library
from contextune._library import Library

UNSETTLED = 0xFFFFFFFF
UNTUNED = 0xFFFFFFFF

SEES_LAUNCHES = 2  # contextune_state_full

MEASURED, FAILED = 0, 4  # contextune_timing_state

_text, _handle, _number = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint32
_numbers = ctypes.POINTER(_number)


def wait_for_gpu() -> None:
    """Waits for all work of this thread's context."""
    ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()


class Call(ctypes.Structure):
    """contextune_call"""
    _fields_ = [("opaque", ctypes.c_uint64 * 8)]


class Pruned(ctypes.Structure):
    """contextune_pruned"""
    _fields_ = [("by_device", _number), ("by_kernel", _number), ("by_author", _number),
                ("failed", _number)]


Timing = _choice_library.Timing

_call = ctypes.POINTER(Call)

_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "tunable_create": (_handle, [_text, ctypes.POINTER(_text), ctypes.c_size_t]),
    "tunable_version": (ctypes.c_int, [_handle, _text]),
    "tunable_span": (ctypes.c_int, [_handle]),
    "tunable_key": (_number, [_handle, _text]),
    "tunable_keep": (ctypes.c_int, [_handle, _number, _numbers, ctypes.c_size_t,
                                    ctypes.POINTER(Pruned)]),
    "tunable_begin": (_number, [_handle, _number, _call]),
    "tunable_end": (ctypes.c_int, [_call, ctypes.c_int]),
    "tunable_settled": (_number, [_handle, _number]),
    "tunable_timings": (ctypes.c_size_t, [_handle, _number, ctypes.POINTER(Timing), ctypes.c_size_t]),
    "note_failure": (None, [_text]),
    "current_state": (ctypes.c_int, []),
    "current_place": (ctypes.c_int, []),
}


class Tunables:
    """Those functions, without the prefix of their names."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.error = library.error
        functions = ctypes.CDLL(library.path)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = functions["contextune_" + name]  # an object of its own, with types of its own
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # only what __init__ has not set
        raise AttributeError(name)
