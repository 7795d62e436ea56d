"""Device memory of tensors, for all libraries that have some."""

from typing import Any

from contextune._errors import Error

Span = tuple[int, int]  # address and bytes


def _extent(shape: Any, strides: Any, element_bytes: int) -> int:
    """Bytes from the first to the last element; the strides are in elements."""
    if any(size == 0 for size in shape):
        return 0
    last: int = sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    return (1 + last) * element_bytes


def _span_of_torch(tensor: Any) -> Span:
    if not tensor.is_cuda:
        raise Error(f"a tensor of shape {tuple(tensor.shape)} is on {tensor.device}, and only device "
                    "memory can be copied aside; give a callable that puts it back")
    return tensor.data_ptr(), _extent(tensor.shape, tensor.stride(), tensor.element_size())


def _span_of_array(array: Any) -> Span:
    interface = array.__cuda_array_interface__
    shape, element_bytes = interface["shape"], int(interface["typestr"][2:])
    strides = interface.get("strides")
    if strides is None:
        bytes_of_all = element_bytes
        for size in shape:
            bytes_of_all *= size
        return interface["data"][0], bytes_of_all
    return interface["data"][0], _extent(shape, strides, 1) + (element_bytes - 1 if 0 not in shape else 0)


def span_of(memory: Any) -> Span:
    """Where a tensor's elements lie.

    Takes tensors of PyTorch, whatever has `__cuda_array_interface__` (CuPy, Numba, JAX), and a pair of
    address and bytes.
    """
    if hasattr(memory, "data_ptr") and hasattr(memory, "element_size"):
        return _span_of_torch(memory)
    if hasattr(memory, "__cuda_array_interface__"):
        return _span_of_array(memory)
    match memory:
        case (int(address), int(size)) if size >= 0:
            return address, size
    raise Error(f"{type(memory).__name__} is no device memory; give a tensor, an array with "
                "__cuda_array_interface__, or a pair of address and bytes")


def is_memory(value: Any) -> bool:
    """Whether span_of() knows what to do with it."""
    if hasattr(value, "__cuda_array_interface__") or hasattr(value, "data_ptr"):
        return True
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, int) for part in value)
