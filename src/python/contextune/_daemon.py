"""Daemon threads in calls of C functions that call Python back.

Python ends a daemon thread where it next wants the interpreter's lock after the program's end: in a callback,
below frames of C++, which abort the process.
"""

import atexit
import os
import threading
import time

_SECONDS = 2.0  # for which the end of the process waits for them

_inside: dict[int, int] = {}  # how many calls each daemon thread is in; each has its own place in it
_is_ending = False
_is_registered = False


def _end() -> None:
    global _is_ending
    _is_ending = True
    until = time.monotonic() + _SECONDS
    while _inside and time.monotonic() < until:
        time.sleep(0.001)


class DaemonCall:
    """A call that ends early where the process ends meanwhile; only those of daemon threads count."""

    def __init__(self) -> None:
        self._thread = threading.get_ident() if threading.current_thread().daemon else None

    def __enter__(self) -> None:
        global _is_registered
        if self._thread is not None:
            if not _is_registered:
                _is_registered = True
                atexit.register(_end)
                os.register_at_fork(after_in_child=_inside.clear)
            _inside[self._thread] = _inside.get(self._thread, 0) + 1

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            calls = _inside.pop(self._thread, 1) - 1
            if calls:
                _inside[self._thread] = calls


def interruption() -> SystemExit | None:
    """The exception that ends a daemon thread, once the process ends."""
    return SystemExit() if _is_ending and threading.current_thread().daemon else None
