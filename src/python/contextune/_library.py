"""libcontextune.so, by ctypes: the functions of contextune.h, under the names that they have there."""

import ctypes
import threading
from typing import Any

from contextune import _choice_library, _function_library, _native
from contextune._errors import warn_once

PLACE_UNTUNED, PLACE_REGION, PLACE_CAPTURE, PLACE_FREE = range(4)


class Entry(ctypes.Structure):
    """contextune_entry"""
    _fields_ = [("opaque", ctypes.c_uint64 * 8)]


class DeviceFacts(ctypes.Structure):
    """contextune_device"""
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char * 128), ("num_sms", ctypes.c_int),
                ("compute_capability", ctypes.c_int), ("max_threads_per_block", ctypes.c_int),
                ("registers_per_sm", ctypes.c_int), ("max_shared_bytes", ctypes.c_size_t)]


RestoreCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

EntryPointer = ctypes.POINTER(Entry)

_entry, _text, _number = EntryPointer, ctypes.c_char_p, ctypes.c_uint32

_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "contextune_version": (_text, []),
    "contextune_error": (_text, []),
    "contextune_current_state": (ctypes.c_int, []),
    "contextune_state_reason": (_text, []),
    "contextune_join": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_double]),
    "contextune_rank": (None, [ctypes.POINTER(_number), ctypes.POINTER(_number)]),
    "contextune_region_begin": (None, [_entry, _text]),
    "contextune_region_tunes": (ctypes.c_int, [_entry]),
    "contextune_region_option": (ctypes.c_int, [_entry, _text, _text]),
    "contextune_region_restore_buffer": (ctypes.c_int, [_entry, ctypes.c_void_p, ctypes.c_size_t]),
    "contextune_region_restore_call": (ctypes.c_int, [_entry, RestoreCall, ctypes.c_void_p]),
    "contextune_region_communicator": (ctypes.c_int, [_entry, ctypes.c_void_p]),
    "contextune_region_group": (ctypes.c_int, [_entry, _text]),
    "contextune_region_next": (ctypes.c_int, [_entry]),
    "contextune_region_end": (None, [_entry]),
    "contextune_note_failure": (None, [_text]),
    "contextune_current_place": (ctypes.c_int, []),
    "contextune_note_capture": (None, [ctypes.c_void_p]),
    "contextune_current_device": (ctypes.c_int, [ctypes.POINTER(DeviceFacts)]),
}


class Library:
    """The functions that the library exports, with their types."""

    def __init__(self, path: str) -> None:
        self.path = path
        waiting, immediate = ctypes.CDLL(path), ctypes.PyDLL(path)
        for functions, prototypes in ((waiting, _PROTOTYPES), (waiting, _choice_library.PROTOTYPES),
                                      (waiting, _function_library.PROTOTYPES),
                                      (immediate, _function_library.IMMEDIATE)):
            for name, (result, arguments) in prototypes.items():
                function = getattr(functions, name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # only what __init__ has not set
        raise AttributeError(name)

    def error(self) -> str:
        """Why this thread's last failed call failed."""
        return decode(self.contextune_error())


def encode(text: str) -> bytes:
    """A text as the C functions take it, which ends at its first zero byte."""
    return text.replace("\0", "?").encode(errors="replace")


def decode(text: bytes | None) -> str:
    return (text or b"").decode(errors="replace")


def encode_all(texts: list[str]) -> Any:
    return (ctypes.c_char_p * len(texts))(*map(encode, texts))


_lock = threading.Lock()
_tried = False
_loaded: Library | None = None


def _load() -> Library | None:
    path = _native.find_library()
    if path is None:
        warn_once(f"contextune: there is no libcontextune.so in {_native.FOLDER / 'lib'}, so nothing is "
                  "tuned; install the package with `pip install ./src/python` from a clone")
        return None
    try:
        return Library(str(path))
    except (OSError, AttributeError) as error:
        warn_once(f"contextune: {path} cannot be used, so nothing is tuned: {error}; install one "
                  "version of contextune, package and command alike")
        return None


def library() -> Library | None:
    """The library; None, with a warning at the first time, where there is none to be used."""
    global _tried, _loaded
    if not _tried:
        with _lock:
            if not _tried:
                _loaded = _load()
                _tried = True
    return _loaded
