"""Names of functions."""

from collections.abc import Callable
from typing import Any

from contextune._code import code_behind


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in logs and in the store: with its module, unless that is the program."""
    function = code_behind(function)
    name = getattr(function, "__qualname__", type(function).__name__).replace("<locals>.", "")
    module = getattr(function, "__module__", None)
    return name if module in (None, "__main__") else f"{module}.{name}"
