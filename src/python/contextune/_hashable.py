"""Parts of keys, by which two arguments are the same problem or not."""

from collections.abc import Mapping, Set
from typing import Any


def to_hashable(value: Any) -> Any:
    """A part of a key: of a tensor its shape, strides, type and kind of device.

    Not the number of the device: winners belong to a device anyhow, and ranks that tune a function
    together have to agree on its key. Lists, sets and dicts become tuples; other values stay.
    """
    if hasattr(value, "data_ptr") and hasattr(value, "stride"):
        return tuple(value.shape), tuple(value.stride()), value.dtype, value.device.type
    if hasattr(value, "__cuda_array_interface__"):
        interface = value.__cuda_array_interface__
        return tuple(interface["shape"]), interface.get("strides"), interface["typestr"], "cuda"
    if isinstance(value, Mapping):
        return tuple((name, to_hashable(part)) for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(to_hashable, value))
    if isinstance(value, Set):
        return frozenset(map(to_hashable, value))
    return value


def hashable_key(key: Any) -> Any:
    """A key as it is looked up, also where it has lists in it."""
    try:
        hash(key)
        return key
    except TypeError:
        return to_hashable(key)
