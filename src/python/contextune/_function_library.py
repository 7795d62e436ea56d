"""The structs and functions of contextune_function.h, by ctypes."""

import ctypes
from typing import Any

UNSETTLED = 0xFFFFFFFF
UNTUNED = 0xFFFFFFFF

FAILED = -2  # what a call comes to that contextune_error() says more of
RULED_OUT_BY_AUTHOR = 3

UNSEEN = {"tune": 0, "nearest": 1, "default": 2}  # as contextune_unseen

_text, _number = ctypes.c_char_p, ctypes.c_uint32


class Options(ctypes.Structure):
    """contextune_function_options"""
    _fields_ = [("size", ctypes.c_size_t), ("configs", ctypes.POINTER(_text)),
                ("num_configs", ctypes.c_size_t), ("version", _text), ("n_warmup", ctypes.c_int),
                ("n_repeat", ctypes.c_int), ("repeatable", ctypes.c_int), ("buckets", _text),
                ("unseen", ctypes.c_int), ("nearest_within", _number),
                ("hints", ctypes.POINTER(ctypes.c_uint64)), ("num_hints", ctypes.c_size_t),
                ("allow_override", ctypes.c_int)]


class Key(ctypes.Structure):
    """contextune_function_key"""
    _fields_ = [("size", ctypes.c_size_t), ("key", _text), ("has_size", ctypes.c_int),
                ("of_size", ctypes.c_uint64), ("communicator", ctypes.c_void_p), ("group", _text)]


RunCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _number, ctypes.c_int)
PruneCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _number)
SpaceCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
BeginCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
HintCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)
RunChangedCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _number, _text)
SayCall = ctypes.CFUNCTYPE(None, ctypes.c_void_p, _text)


class Run(ctypes.Structure):
    """contextune_function_run"""
    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("run", RunCall),
                ("prune", PruneCall), ("space", SpaceCall), ("begin", BeginCall), ("hint", HintCall),
                ("run_changed", RunChangedCall), ("say", SayCall), ("says_runs", ctypes.c_int),
                ("is_untuned", ctypes.c_int), ("set", _text)]


_function = ctypes.c_void_p

PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "contextune_function_create": (_function, [_text, ctypes.POINTER(Options)]),
    "contextune_function_problem": (_number, [_function, ctypes.POINTER(Key)]),
    "contextune_function_call": (ctypes.c_int, [_function, _number, ctypes.POINTER(Run)]),
    "contextune_function_drop": (None, [_function, _number, _number]),
    "contextune_function_default": (_number, [_function, _number]),
    "contextune_space_add": (ctypes.c_int, [ctypes.c_void_p, _text]),
}
# They take no lock and wait for nothing, so the interpreter's lock need not be given away for them.
IMMEDIATE: dict[str, tuple[Any, list[Any]]] = {
    "contextune_function_settled": (_number, [_function, _number]),
}
