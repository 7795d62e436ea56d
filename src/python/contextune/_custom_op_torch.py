"""Custom ops as PyTorch has them: schemas, kernels of devices, and the outputs of a call.

All that depends on PyTorch's own modules is here. It is imported when the first op is registered, by a
program that has imported PyTorch.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensorMode

from contextune._errors import Error

Kernel = Callable[..., Any]

_in_place: set[str] = set()  # names of ops whose kernels were replaced

#: Types of device whose calls are tuned.
TUNED_DEVICES = ("cuda",)


def tensors_of(value: Any) -> list[Any]:
    """All tensors in nested lists, tuples and dicts, in their order."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def are_tuned(tensors: list[Any]) -> bool:
    """Whether calls with these are."""
    return all(one.device.type in TUNED_DEVICES for one in tensors)


def empty_as(tensor: Any) -> Any:
    """Memory for a tensor of that shape, strides, type and device, which may be a fake one."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def memory_of(tensor: Any) -> Any:
    """A tensor as a choice takes it. Only a simulated device has some that PyTorch calls the CPU's."""
    if tensor.is_cuda:
        return tensor
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.element_size() if tensor.numel() else 0


class CustomOp:
    """An op of torch.library.custom_op(), or any other operator."""

    def __init__(self, given: Any) -> None:
        from torch._library.custom_ops import OPDEFS, CustomOpDef

        if isinstance(given, torch._ops.OpOverloadPacket):
            given = given.default
        if isinstance(given, torch._ops.OpOverload):
            given = OPDEFS.get(given._schema.name, given)
        if not isinstance(given, (CustomOpDef, torch._ops.OpOverload)):
            raise Error(f"{type(given).__name__} is no custom op; give what torch.library.custom_op() "
                        "made of a function, or an operator, as torch.ops.mylib.my_op.default")
        self._definition = given if isinstance(given, CustomOpDef) else None
        self.overload = given._opoverload if isinstance(given, CustomOpDef) else given
        self.schema = self.overload._schema
        #: "mylib::my_op"
        self.name = self.overload._name.removesuffix(".default")
        self.parameters: list[str] = [one.name for one in self.schema.arguments]
        self._library: Any = None  # of kernels that were put in place of an operator's

    def is_itself(self, function: Any) -> bool:
        """Whether that is another name for the op, or the function that it was made of."""
        same = [self.overload, self.overload.overloadpacket]
        if self._definition is not None:
            same += [self._definition, self._definition._init_fn]
        return any(function is one for one in same)

    def changed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Tensors of a call that it writes to."""
        given = {**dict(zip(self.parameters, args, strict=False)), **kwargs}
        return tensors_of([given.get(one.name) for one in self.schema.arguments
                           if one.alias_info is not None and one.alias_info.is_write])

    def fake_outputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """What the call would return, without memory; None: the op has no fake implementation."""
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        try:
            with mode:
                return tensors_of(self.overload(*fake_of(mode, args), **fake_of(mode, kwargs)))
        except Exception:  # its own, or there is none
            return None

    def fake_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        mode = FakeTensorMode()
        return fake_of(mode, args), fake_of(mode, kwargs)

    def put_in_place(self, tuned: Callable[[Kernel], Kernel],
                     untuned: Callable[[str, Kernel], Kernel]) -> None:
        """Replaces the op's kernels, those of tuned devices by the first, others by the second.

        Each is given the kernel that it stands in front of. The second is given the device's type, too,
        or "".
        """
        if self.name in _in_place:
            raise Error(f"{self.name} has its implementations already; register all of them at once")
        if self._definition is None:
            self._put_in_operator(tuned)
        else:
            self._put_in_definition(self._definition, tuned, untuned)
        _in_place.add(self.name)

    @staticmethod
    def _put_in_definition(definition: Any, tuned: Callable[[Kernel], Kernel],
                           untuned: Callable[[str, Kernel], Kernel]) -> None:
        kernels: dict[str | None, Kernel] = dict(definition._backend_fns)
        of_all = definition._init_fn if None in kernels else None
        for device in TUNED_DEVICES:
            kernel = kernels.get(device, of_all)
            if kernel is not None:
                definition.register_kernel(device)(tuned(kernel))
        for device_type, kernel in kernels.items():
            if device_type not in TUNED_DEVICES:
                definition.register_kernel(device_type)(
                    untuned(device_type or "", of_all if device_type is None and of_all else kernel))

    def _put_in_operator(self, tuned: Callable[[Kernel], Kernel]) -> None:
        if not hasattr(torch.library, "get_kernel"):
            raise Error(f"{self.name} was not made by torch.library.custom_op(), and this PyTorch does "
                        "not give its kernel away; take PyTorch 2.10 or later, or make a custom op")
        namespace, name = self.overload._schema.name.split("::")
        self._library = torch.library.Library(namespace, "IMPL")  # type: ignore[no-untyped-call]
        overload = self.overload._overloadname
        for device in TUNED_DEVICES:
            key = {"cuda": "CUDA", "cpu": "CPU"}[device]
            try:
                kernel = torch.library.get_kernel(self.overload, key)
            except RuntimeError as error:
                raise Error(f"{self.name} has no kernel for {device}: {error}") from error
            keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

            def original(*args: Any, _of: Any = kernel, _keys: Any = keys, **kwargs: Any) -> Any:
                return _of.call_boxed(_keys, *args, **kwargs)

            self._library.impl(name if overload == "default" else f"{name}.{overload}", tuned(original),
                               key, allow_override=True)


def fake_of(mode: Any, values: Any) -> Any:
    return pytree.tree_map(
        lambda one: mode.from_tensor(one) if isinstance(one, torch.Tensor) else one, values)
