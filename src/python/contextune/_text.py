"""Values as the C functions, the log and the store have them."""

import enum
import functools
import inspect
import numbers
import re
from collections.abc import Mapping, Set
from typing import Any

from contextune._device_memory import is_memory
from contextune._errors import Error

_WHOLE = range(-(1 << 63), 1 << 63)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/+-]*")
_READ_AS_OTHERS = re.compile(r"true|false|nan.*|inf.*", re.IGNORECASE)


def quoted(text: str) -> str:
    """A text as it stands behind name=; in quotes unless it reads as itself without."""
    if _PLAIN.fullmatch(text) and not _READ_AS_OTHERS.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def described(value: Any) -> str:
    """The name of a value. Raises Error for one that says only where in memory it lies."""
    if isinstance(value, str):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if hasattr(value, "all_kwargs"):  # a Config of Triton
        return " ".join(f"{name}:{part}" for name, part in value.all_kwargs().items())
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__qualname__)
    if isinstance(value, functools.partial):
        given = [*map(described, value.args),
                 *(f"{name}={described(part)}" for name, part in value.keywords.items())]
        return f"{described(value.func)}({', '.join(given)})"
    kind: Any = type(value)
    if is_memory(value) and not isinstance(value, tuple):
        raise Error(f"{kind.__name__} is a tensor, of which two are never equal; take to_hashable() of it")
    text = str(value)
    if _ADDRESS.search(text):
        raise Error(f"{kind.__name__} has no text that is the same in the next run, only {text!r}; give it "
                    "a __repr__")
    return text.removeprefix("torch.")


def _is_number(value: Any) -> bool:
    """Those of NumPy included."""
    return isinstance(value, numbers.Real) and not isinstance(value, enum.Enum)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and isinstance(value, numbers.Integral) and int(value) in _WHOLE


def value_text(value: Any) -> str:
    """A parameter's value, as "64", "0.5", "true" or a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if _is_whole(value):
        return str(int(value))
    if _is_number(value):
        return repr(float(value)) if abs(value) < float("inf") else quoted(repr(float(value)))
    return quoted(described(value))


def config_text(config: Mapping[str, Any]) -> str:
    """A config, as "block=64 stages=3"; "default" if it sets nothing."""
    return " ".join(f"{name}={value_text(value)}" for name, value in config.items()) or "default"


def _nested(part: Any) -> str:
    if part is None:
        return "none"
    if isinstance(part, Mapping):
        return "[" + ":".join(_nested(pair) for pair in part.items()) + "]"
    if isinstance(part, tuple):
        return "(" + ":".join(map(_nested, part)) + ")"
    if isinstance(part, list):
        return "[" + ":".join(map(_nested, part)) + "]"
    if isinstance(part, Set):
        return "[" + ":".join(sorted(map(_nested, part))) + "]"
    if _is_number(part):
        return str(int(part)) if isinstance(part, numbers.Integral) else repr(float(part))
    return '"' + described(part).replace("\\", "\\\\").replace('"', '\\"') + '"'


def part_text(part: Any) -> str:
    """A part of a key, as it stands behind name=."""
    if _is_whole(part):
        return str(int(part))
    if isinstance(part, (Mapping, tuple, list, Set)):
        return quoted(_nested(part))
    if _is_number(part):
        return quoted(_nested(part))
    return quoted(described(part))


def key_text(key: Any) -> str:
    """A key function's result as text: "key=5" of one part, "key1=5 key2=f16" of several.

    None adds nothing.
    """
    if not isinstance(key, tuple):
        return "" if key is None else f"key={part_text(key)}"
    return " ".join(f"key{number}={part_text(part)}" for number, part in enumerate(key, 1)
                    if part is not None)
