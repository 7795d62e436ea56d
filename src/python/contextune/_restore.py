"""Ways to undo what one run of a body did, as `restore=` gives them."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from contextune._device_memory import Span, is_memory, span_of
from contextune._errors import Error


@dataclass
class Restore:
    """Device memory that is copied back, and a call that puts back what else there is."""
    spans: list[Span] = field(default_factory=list)
    call: Callable[[], object] | None = None


def restore_of(given: Any) -> Restore:
    """A tensor, several of them, or a callable without arguments."""
    if given is None:
        return Restore()
    if is_memory(given):
        return Restore([span_of(given)])
    if callable(given):
        return Restore(call=given)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise Error(f"restore is {type(given).__name__}; give tensors on the device, or a callable that "
                    "puts everything back")
    return Restore([span_of(memory) for memory in given])


class RestoreOfCalls:
    """The same for a function, whose tensors may be arguments, which are given by their names.

    A callable is called with the arguments of the call.
    """

    def __init__(self, function: Callable[..., Any], given: Any) -> None:
        self._given = given
        self._signature: inspect.Signature | None = None
        if isinstance(given, str):
            self._given = [given]
        elif callable(given) or is_memory(given) or not isinstance(given, Iterable):
            return
        else:
            self._given = list(given)
        names = [one for one in self._given if isinstance(one, str)]
        if not names:
            return
        self._signature = inspect.signature(function)
        for name in names:
            if name not in self._signature.parameters:
                of = getattr(function, "__name__", "a function")
                raise Error(f"restore names '{name}', which is no parameter of {of}{self._signature}; give "
                            "one of those, or a tensor")

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Restore:
        given = self._given
        if given is not None and callable(given) and not is_memory(given):
            return Restore(call=lambda: given(*args, **kwargs))
        if self._signature is None:
            return restore_of(given)
        bound = self._signature.bind_partial(*args, **kwargs)
        bound.apply_defaults()
        memory = [bound.arguments.get(one) if isinstance(one, str) else one for one in given]
        return restore_of([one for one in memory if one is not None])
