"""Tensors that kernels of Triton say they change, put back before a region's body runs again."""

from collections.abc import Callable
from typing import Any

from contextune._restore import Restore


class ChangedTensors:
    """Those of one entry of a region: `restore_value`, `reset_to_zero`, and the work of hooks.

    Triton undoes each of its measurements at once. Here the launches that follow in the body see what a
    trial has computed, and it is undone where the body begins again.
    """

    def __init__(self) -> None:
        self._copies: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self._hooks: list[Callable[[], object]] = []

    def keep(self, tensor: Any) -> None:
        """Copies it aside, the first time."""
        at = tensor.data_ptr(), tensor.numel()
        if at not in self._copies:
            self._copies[at] = tensor, tensor.clone()

    def call_later(self, hook: Callable[[], object]) -> None:
        """Has it called when this run of the body is undone."""
        self._hooks.append(hook)

    def put_back(self) -> None:
        hooks, self._hooks = self._hooks, []
        for hook in reversed(hooks):
            hook()
        for tensor, copy in reversed(self._copies.values()):
            tensor.copy_(copy)

    def beside(self, restore: Restore) -> Restore:
        """What the author restores, and this."""
        call = restore.call
        if call is None:
            return Restore(restore.spans, self.put_back)

        def both() -> None:
            self.put_back()
            call()

        return Restore(restore.spans, both)
