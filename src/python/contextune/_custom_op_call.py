"""One call of a custom op that may be searched."""

from collections.abc import Callable, Mapping
from typing import Any

from contextune._choice_call import ChoiceMemory
from contextune import _custom_op_torch
from contextune._custom_op_torch import CustomOp, memory_of, tensors_of
from contextune._errors import Error

InputFunctions = Mapping[str, Callable[[Any], Any]]


class NotSearchable(Exception):
    """The call can only be done as the op does it; its text is why."""


class OpCall:
    """The arguments of a call, and memory in which results of implementations are compared.

    Implementations return new tensors, or change tensors of the caller's, which others of them read.
    So what each run leaves is copied to memory that is the same for all, as long as results are
    compared; no copy is in what is timed.
    """

    def __init__(self, op: CustomOp, args: tuple[Any, ...], kwargs: dict[str, Any],
                 is_comparing: Callable[[], bool], may_run_default: bool) -> None:
        self._op = op
        self.args, self.kwargs = args, kwargs
        self._is_comparing = is_comparing
        self._may_run_default = may_run_default
        self._results: list[Any] | None = None
        self._is_unlike = ""

    def memory(self, default: Callable[..., Any]) -> ChoiceMemory:
        """Where results are compared, and what the call changes."""
        changed = self._op.changed(self.args, self.kwargs)
        if self._results is None:
            returned = self._op.fake_outputs(self.args, self.kwargs)
            if returned is None:
                returned = self._returned_by(default, changed)
            self._results = [_custom_op_torch.empty_as(one) for one in [*returned, *changed]]
        return ChoiceMemory(outputs=map(memory_of, self._results), others=map(memory_of, changed))

    def _returned_by(self, default: Callable[..., Any], changed: list[Any]) -> list[Any]:
        """Results of a run, where nothing else says how large they are."""
        if changed or not self._may_run_default:
            raise NotSearchable("it has no fake implementation, which says how large its results are; give "
                                "it one with register_fake()")
        return tensors_of(default(*self.args, **self.kwargs))

    def run(self, function: Callable[..., Any], is_default: bool) -> Any:
        if self._is_unlike and not is_default:
            raise Error(self._is_unlike)
        value = function(*self.args, **self.kwargs)
        if self._results is not None and self._is_comparing():
            try:
                self._keep(value)
            except Error as error:
                if not is_default:
                    raise
                # The caller's results are right all the same, but nothing can be compared with them.
                self._is_unlike = f"{self._op.name} is no measure, as its fake implementation is wrong: {error}"
        return value

    def _keep(self, value: Any) -> None:
        assert self._results is not None
        left = tensors_of(value) + self._op.changed(self.args, self.kwargs)
        if len(left) != len(self._results):
            raise Error(f"{len(left)} tensors come of it, and {len(self._results)} of {self._op.name}")
        for to, one in zip(self._results, left, strict=True):
            if (to.shape, to.dtype, to.device) != (one.shape, one.dtype, one.device):
                raise Error(f"a result is {tuple(one.shape)} of {one.dtype} on {one.device}, and that of "
                            f"{self._op.name} {tuple(to.shape)} of {to.dtype} on {to.device}")
            to.copy_(one)

    def with_inputs(self, functions: InputFunctions) -> "OpCall":
        """The same call with tensors that these functions make of fake ones; others are copied."""
        args, kwargs = self._op.fake_arguments(self.args, self.kwargs)

        def made(name: str, given: Any, fake: Any) -> Any:
            if name in functions:
                return functions[name](fake)
            return given.clone() if hasattr(given, "clone") else given

        return OpCall(self._op,
                      tuple(map(made, self._op.parameters, self.args, args)),
                      {name: made(name, given, kwargs[name]) for name, given in self.kwargs.items()},
                      self._is_comparing, self._may_run_default)
