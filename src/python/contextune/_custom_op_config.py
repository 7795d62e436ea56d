"""Implementations of a custom op, as its author lists them."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contextune._errors import Error, warn_once

if TYPE_CHECKING:
    from contextune._custom_op_torch import CustomOp

Function = Callable[..., Any]


class CustomOpConfig:
    """One way to do a custom op: a function with the op's arguments, and parameters of its own.

        CustomOpConfig(ring, chunk=65536)
        CustomOpConfig(block=128)                       # the op's own function

    Args:
        decomposition: The function; None: the one that the op was made of.
        config_patches: Of PyTorch's own tuner; nothing here compiles what the function launches.
        fused: Whether it is fused with other work; see `fusion`.
        supports: Whether it can do a ChoiceProblem, on all ranks alike.
        abandon: Makes its call return and its work end, where another rank failed for which it may wait.
        params: Given to the function by name, unless the call sets an argument of that name.
    """

    def __init__(self, decomposition: Function | None = None, config_patches: Any = None, *,
                 fused: bool | None = None, supports: Function | None = None,
                 abandon: Function | None = None, **params: Any) -> None:
        if decomposition is not None and not callable(decomposition):
            raise Error(f"CustomOpConfig is given {type(decomposition).__name__}; give a function with "
                        "the arguments of the op")
        if config_patches:
            warn_once("contextune: config_patches of a CustomOpConfig change nothing here; compile the "
                      "function with them, as torch.compile(function, options=...)")
        self.decomposition = decomposition
        self.params = params
        self.fused, self.supports, self.abandon = fused, supports, abandon

    def __repr__(self) -> str:
        of = "" if self.decomposition is None else _name_of(self.decomposition)
        return f"CustomOpConfig({', '.join([of, *map('{0[0]}={0[1]}'.format, self.params.items())])})"


def _name_of(function: Function) -> str:
    if isinstance(function, functools.partial):
        return _name_of(function.func)
    name: str = getattr(function, "__name__", type(function).__name__)
    return name.strip("<>")


@dataclass
class OpImplementation:
    """A function and its configs. The first of an op is the default."""
    name: str
    function: Function
    configs: list[dict[str, Any]] = field(default_factory=list)
    fused: bool | None = None
    supports: Function | None = None
    abandon: Function | None = None


def implementations_of(op: "CustomOp", configs: Iterable[CustomOpConfig]) -> list[OpImplementation]:
    """Those of an op, its own function as the first; `function` of that one is still to be set."""
    if isinstance(configs, CustomOpConfig) or not isinstance(configs, Iterable):
        raise Error(f"{op.name}: configs are {type(configs).__name__}; give a list of CustomOpConfig")
    own = OpImplementation(op.name.split("::")[-1], _not_set, [{}])
    found: dict[Any, OpImplementation] = {None: own}
    names = {own.name}
    for config in configs:
        if not isinstance(config, CustomOpConfig):
            raise Error(f"{op.name}: a config is {type(config).__name__}; write CustomOpConfig(function, "
                        "parameter=...)")
        function = config.decomposition
        is_own = function is None or op.is_itself(function)
        at = None if is_own else (function, config.fused, config.supports, config.abandon)
        if at not in found:
            assert function is not None
            found[at] = OpImplementation(_unused(_name_of(function), names), function, [], config.fused,
                                         config.supports, config.abandon)
        elif is_own:
            own.fused = own.fused if config.fused is None else config.fused
            own.abandon = own.abandon or config.abandon
        if config.params not in found[at].configs:
            found[at].configs.append(config.params)
    return list(found.values())


def _unused(name: str, names: set[str]) -> str:
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    names.add(free)
    return free


def _not_set() -> None:
    raise AssertionError


def with_parameters(function: Function, parameters: dict[str, Any], of_op: list[str]) -> Function:
    """The function with these, but for those that a call sets."""
    if not parameters:
        return function
    if parameters.keys().isdisjoint(of_op):
        return functools.partial(function, **parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = of_op[:len(args)]
        own = {name: value for name, value in parameters.items() if name not in given}
        return function(*args, **{**own, **kwargs})

    return call
