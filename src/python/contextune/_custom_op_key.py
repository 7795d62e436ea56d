"""Sizes of an op's calls: by which a settled one is looked up, and the problem that they are."""

import bisect
import keyword
from collections.abc import Callable, Mapping
from typing import Any

from contextune._custom_op_torch import CustomOp, Kernel
from contextune._errors import Error

#: Types in a schema whose values change nothing about what is best.
_NO_SIZES = ("float", "Optional[float]", "number", "Optional[number]", "complex")


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "stride")


def _part(value: Any) -> Any:
    if _is_tensor(value):
        return value.shape, value.stride(), value.dtype, value.get_device()
    if isinstance(value, (list, tuple)):
        return tuple(map(_part, value))
    return None if isinstance(value, float) else value


def _nothing() -> None:
    """What is settled where nobody has asked yet."""


def kernel_by_key(op: CustomOp, settled: Mapping[Any, Kernel],
                  asked: Mapping[Any, Callable[[], Kernel | None]], search: Callable[..., Any],
                  failed: Callable[..., Any], job: Any = None) -> Kernel:
    """A kernel that runs what is settled for a call's key. Written out, because each call runs it.

    Args:
        settled: Kernels by key: all sizes, and the device.
        asked: Functions by key that return what is settled where they are called.
        search: Given the key, the arguments and the keyword arguments of a call that has no kernel there.
        failed: Given the kernel that has just raised, too, behind the key.
        job: Has the process group of all ranks as `WORLD`. A job that was ended and begun again may give
            other ranks the same names.
    """
    parameters, key, given = _written_out(op)
    if job is not None:
        key += ", id(_job.WORLD)"
    names = {"_part": _part, "_job": job, "_settled": settled.get, "_asked": asked.get, "_nothing": _nothing,
             "_search": search, "_failed": failed}
    if given and parameters == given:
        key, arguments = f"({key},)", f"({given},), {{}}"
    else:  # a call may leave arguments out, for which implementations have defaults of their own
        exec(f"def _key({parameters}): return {key},", names)
        parameters = given = "*_args, **_kwargs"
        key, arguments = f"_key({given})", "_args, _kwargs"
    exec(f"""def kernel({parameters}):
    _at = {key}
    _way = _settled(_at)
    if _way is None:
        _way = _asked(_at, _nothing)()
        if _way is None:
            return _search(_at, {arguments})
    try:
        return _way({given})
    except Exception:
        return _failed(_at, _way, {arguments})
""", names)
    kernel: Kernel = names["kernel"]
    return kernel


def _written_out(op: CustomOp) -> tuple[str, str, str]:
    """The parameters of a function with the op's arguments, their key, and the names of the arguments."""
    if any(keyword.iskeyword(name) or name.startswith("_") for name in op.parameters):
        return "*_args, **_kwargs", "_part(_args), _part(tuple(_kwargs.items()))", ""
    parameters: list[str] = []
    parts: list[str] = []
    has_device = False
    for one in op.schema.arguments:
        kind = str(one.type)
        is_optional = one.has_default_value() or kind.startswith("Optional")
        if one.kwarg_only and "*" not in parameters:
            parameters.append("*")
        parameters.append(f"{one.name}=None" if is_optional else one.name)
        if kind in _NO_SIZES:
            continue
        if kind == "Tensor" and not is_optional:
            parts += [f"{one.name}.shape", f"{one.name}.stride()", f"{one.name}.dtype"]
            if not has_device:
                parts.append(f"{one.name}.get_device()")
                has_device = True
        elif kind in ("int", "bool", "str"):
            parts.append(one.name)
        else:
            parts.append(f"_part({one.name})")
    return ", ".join(parameters), ", ".join(parts) or "None", ", ".join(op.parameters)


class Dispatch:
    """The size of which many values are one problem: a tensor's dimension."""

    def __init__(self, op: CustomOp, on: Mapping[str, Any], split_points: Any) -> None:
        tensor, dim = on.get("tensor_name"), on.get("dim")
        if tensor not in op.parameters or not isinstance(dim, int):
            raise Error(f"{op.name}: dispatch_on is {dict(on)}; give {{'tensor_name': one of "
                        f"{', '.join(op.parameters)}, 'dim': a whole number}}")
        self.tensor, self.dim = str(tensor), dim
        self.points = None if split_points is None else list(split_points)
        if self.points is not None and (not self.points or sorted(set(self.points)) != self.points):
            raise Error(f"{op.name}: split_points are {self.points}; give whole numbers in ascending order")

    def text(self, size: int) -> str:
        """"513-2048", or "*" where the choice has buckets for it."""
        if self.points is None:
            return "*"
        place = bisect.bisect_left(self.points, size)
        first = self.points[place - 1] + 1 if place > 0 else 1
        return f"{first}-{self.points[place]}" if place < len(self.points) else f"{first}-"


class ProblemOfCall:
    """What makes two calls different problems, as the choice, the log and the store have it."""

    def __init__(self, op: CustomOp, group: str | None, dispatch: Dispatch | None, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> None:
        given = {**dict(zip(op.parameters, args, strict=False)), **kwargs}
        self._dispatch = dispatch
        self._size: int | None = None  # that stands for others
        tensors = [one for value in given.values() for one in _flat(value) if _is_tensor(one)]
        self.type = str(tensors[0].dtype).removeprefix("torch.") if tensors else ""
        self.bytes = sum(one.numel() * one.element_size() for one in tensors)
        if dispatch is not None:
            tensor = given[dispatch.tensor]
            self._size = tensor.shape[dispatch.dim]
            self.bytes = 0 if dispatch.points else tensor.numel() * tensor.element_size()
        self.key = " ".join(f"{name}={self._text(value)}" for name, value in given.items()
                            if name != group and not isinstance(value, float))

    def _text(self, value: Any) -> str:
        if _is_tensor(value):
            kind = str(value.dtype).removeprefix("torch.")
            return f"[{','.join(self._sizes(value))}]{self._order(value)}{kind}"
        if isinstance(value, (list, tuple)):
            return f"[{','.join(map(self._text, value))}]"
        return str(value)

    def _sizes(self, tensor: Any) -> list[str]:
        sizes = list(map(str, tensor.shape))
        if self._dispatch is not None and self._size is not None:
            dim = self._dispatch.dim
            # Other tensors of the call are as long in that dimension.
            if -len(sizes) <= dim < len(sizes) and tensor.shape[dim] == self._size:
                sizes[dim] = self._dispatch.text(self._size)
        return sizes

    def _order(self, tensor: Any) -> str:
        if tensor.is_contiguous():
            return ""
        steps = tensor.stride()
        if self._dispatch is not None:
            steps = sorted(range(len(steps)), key=lambda dim: steps[dim])
        return f"/[{','.join(map(str, steps))}]"


def _flat(value: Any) -> list[Any]:
    return [part for one in value for part in _flat(one)] if isinstance(value, (list, tuple)) else [value]
