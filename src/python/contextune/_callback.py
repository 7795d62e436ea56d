"""Python functions that C functions call, and the exceptions that leave them.

A signal that arrives while C runs is handled at the first instruction of the Python function that C calls
next, where no `try` stands yet. ctypes hands what leaves such a function to sys.unraisablehook and goes on.
"""

import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_codes: set[CodeType] = set()
_hook: Any = None


class _Left(threading.local):
    """The exception that left a callback of this thread, until someone takes it."""
    failure: BaseException | None = None


_left = _Left()


def callback(function: F) -> F:
    """Marks a function whose exceptions take_failure() gives."""
    _codes.add(function.__code__)
    return function


def watch() -> None:
    """Begins to keep what leaves callbacks. Everything else that is unraisable goes where it went."""
    global _hook
    if sys.unraisablehook is _hook:
        return
    others = sys.unraisablehook

    def keep(unraisable: Any) -> None:
        trace = unraisable.exc_traceback
        code = trace.tb_frame.f_code if trace else getattr(unraisable.object, "__code__", None)
        if code not in _codes or unraisable.exc_value is None:
            others(unraisable)
        elif _left.failure is None:
            _left.failure = unraisable.exc_value

    sys.unraisablehook = _hook = keep


def take_failure() -> BaseException | None:
    """The exception that left a callback of this thread since the last call; None if there was none."""
    failure = _left.failure
    if failure is not None:
        _left.failure = None
    return failure
