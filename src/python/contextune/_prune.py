"""Ready-made answers to whether a config can be any good, for autotune()'s prune_fn."""

from collections.abc import Mapping
from typing import Any

from contextune._device import current_device
from contextune._errors import Error

# Multiplications and additions of 16-bit numbers for each byte that is moved, where a GPU of that
# generation is as busy with the one as with the other.
_OPERATIONS_PER_BYTE = {7: 140, 8: 200, 9: 300}
_OPERATIONS_PER_BYTE_OF_LATER = 300


def _parameters(config: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters, those inside configs of Triton included."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if hasattr(value, "all_kwargs"):
            found.update(value.all_kwargs())
        elif isinstance(value, Mapping):
            found.update(value)
        else:
            found[name] = value
    return found


def _of(config: Mapping[str, Any], *names: str) -> list[int]:
    parameters = _parameters(config)
    for name in names:
        if name not in parameters:
            raise Error(f"the config {dict(config)} has no {name}, by which it is to be pruned; name its "
                        "tiles BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, and GROUP_SIZE_M")
    return [parameters[name] for name in names]


def _element_bytes(tensor: Any) -> int:
    size: int = tensor.element_size() if hasattr(tensor, "element_size") else tensor.itemsize
    return size


def prune_fn_by_shared_memory(config: Mapping[str, Any], A: Any, *args: Any, **kwargs: Any) -> bool:
    """Keeps a tile whose operands fit into a block's shared memory, in all stages.

    The first argument says how large an element is. Keeps everything where no device is known.
    """
    m, n, k = _of(config, "BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K")
    stages = _parameters(config).get("num_stages") or 1
    available = current_device().max_shared_bytes
    return available == 0 or (m + n) * k * _element_bytes(A) * stages <= available


def prune_fn_by_group_size_m(config: Mapping[str, Any], A: Any, B: Any, *args: Any,
                             **kwargs: Any) -> bool:
    """Keeps tiles in groups of one row (GROUP_SIZE_M of 1) only where memory matters more.

    A product of (M, K) and (K, N) that computes more than twice as long as it moves data gains by
    groups, in which tiles share what is in the cache.
    """
    (group,) = _of(config, "GROUP_SIZE_M")
    if group != 1:
        return True
    (m, k), n = A.shape, B.shape[1]
    element_bytes = _element_bytes(A)
    moved = (m * k + k * n + m * n) * element_bytes
    per_byte = _OPERATIONS_PER_BYTE.get(current_device().compute_capability // 10,
                                        _OPERATIONS_PER_BYTE_OF_LATER)
    balance: float = per_byte * 2 / element_bytes
    return moved == 0 or bool(2 * m * n * k / moved <= 2 * balance)
