"""The structs and functions of contextune_choice.h, by ctypes."""

import ctypes
from typing import Any

WANT_CALL, WANT_MEMORY, WANT_ALONE = range(3)

_text = ctypes.c_char_p


class Problem(ctypes.Structure):
    """contextune_problem"""
    _fields_ = [("size", ctypes.c_size_t), ("bytes", ctypes.c_uint64), ("type", _text),
                ("ranks", ctypes.c_int), ("key", _text)]


RunCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
SupportsCall = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Problem))
AbandonCall = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Options(ctypes.Structure):
    """contextune_choice_options"""
    _fields_ = [("size", ctypes.c_size_t), ("select", ctypes.c_int), ("fusion", ctypes.c_int),
                ("ranks", ctypes.c_int), ("tolerance", _text), ("repeatable", ctypes.c_int),
                ("n_warmup", ctypes.c_int), ("n_repeat", ctypes.c_int),
                ("communicator", ctypes.c_void_p), ("buckets", _text), ("unseen", ctypes.c_int),
                ("nearest_within", ctypes.c_uint32), ("calls_per_pass", ctypes.c_int),
                ("implementations", _text), ("version", _text), ("group", _text)]


class Implementation(ctypes.Structure):
    """contextune_implementation"""
    _fields_ = [("size", ctypes.c_size_t), ("name", _text), ("configs", ctypes.POINTER(_text)),
                ("num_configs", ctypes.c_size_t), ("fusion", ctypes.c_int), ("user", ctypes.c_void_p),
                ("supports", SupportsCall), ("abandon", AbandonCall), ("version", _text)]


class Memory(ctypes.Structure):
    """contextune_memory"""
    _fields_ = [("pointer", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t),
                ("is_output", ctypes.c_int)]


class Run(ctypes.Structure):
    """contextune_choice_run"""
    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("run", RunCall),
                ("memory", ctypes.POINTER(Memory)), ("num_memory", ctypes.c_size_t)]


class Timing(ctypes.Structure):
    """contextune_timing"""
    _fields_ = [("implementation", ctypes.c_size_t), ("config", ctypes.c_size_t),
                ("seconds", ctypes.c_double), ("samples", ctypes.c_size_t), ("state", ctypes.c_int),
                ("is_winner", ctypes.c_int)]


_choice, _number = ctypes.c_void_p, ctypes.c_uint32
_run, _size = ctypes.POINTER(Run), ctypes.POINTER(ctypes.c_size_t)

PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "contextune_choice_create": (_choice, [_text, ctypes.POINTER(Options)]),
    "contextune_choice_add": (ctypes.c_int, [_choice, ctypes.POINTER(Implementation)]),
    "contextune_choice_problem": (_number, [_choice, ctypes.POINTER(Problem)]),
    "contextune_choice_call": (ctypes.c_int, [_choice, _number, _run, _run]),
    "contextune_choice_wants": (ctypes.c_int, [_choice, _number]),
    "contextune_choice_settled": (ctypes.c_int, [_choice, _number, _size, _size]),
    "contextune_choice_measure": (ctypes.c_int, [_choice, _number, _run]),
    "contextune_choice_timings": (ctypes.c_size_t, [_choice, _number, ctypes.POINTER(Timing),
                                                    ctypes.c_size_t]),
}
