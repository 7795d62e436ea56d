"""Errors and warnings of this package."""

import threading
import warnings

_said: set[str] = set()
_lock = threading.Lock()


class Error(RuntimeError):
    """Says what happened, to what, and what to do next."""


class UntunedWarning(UserWarning):
    """Something is not tuned, and the program goes on as it is written."""


def warn_once(text: str) -> None:
    """Warns that something is not tuned, once a process for each text."""
    with _lock:
        if text in _said:
            return
        _said.add(text)
    warnings.warn(text, UntunedWarning, stacklevel=3)


def text_of_failure(error: BaseException) -> str:
    """An exception as the log has it: its type, and its text where it has one."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # its own __str__ is wrong
        return kind
    return f"{kind}: {text}" if text else kind
