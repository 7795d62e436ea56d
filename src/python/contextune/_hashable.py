"""Parts of keys, by which two arguments are the same problem or not."""

from collections.abc import Mapping, Set
from typing import Any

from contextune._errors import Error


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
    """A key as it is looked up, also where it has lists in it. Raises Error for one that cannot be."""
    if _has_hash(key):
        return key
    hashable = to_hashable(key)
    if _has_hash(hashable):
        return hashable
    raise Error(f"the key {key!r} has a part that cannot be hashed; give numbers, texts, tuples of these, "
                "and to_hashable() of tensors")


def _has_hash(key: Any) -> bool:
    try:
        hash(key)
        return True
    except TypeError:
        return False
