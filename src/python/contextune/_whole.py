"""Whole numbers that the C functions are given, which ctypes would cut to what fits."""

import operator
from typing import Any

from contextune._errors import Error


def whole(value: Any, what: str, bits: int = 31) -> int:
    """The number. Raises Error unless it is whole, not below 0, and has that many bits at most."""
    try:
        number = operator.index(value)
    except TypeError:
        raise Error(f"{what} is {value!r}; give a whole number") from None
    if not 0 <= number < 1 << bits:
        raise Error(f"{what} is {number}; it must be at least 0 and less than 2^{bits}")
    return number
