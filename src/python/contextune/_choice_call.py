"""A call of a choice, as the library runs it: several times, with one implementation or another."""

import ctypes
import itertools
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple

from contextune import _choice_library as c
from contextune._callback import callback, take_failure, watch
from contextune._daemon import DaemonCall, interruption
from contextune._device_memory import Span, is_memory, span_of
from contextune._errors import text_of_failure
from contextune._library import Library, encode
from contextune._triton import left_to_triton


class ChoiceMemory(NamedTuple):
    """The device memory of one call: tensors, or pairs of address and bytes."""
    outputs: Iterable[Any]  #: where the result is; compared with the default's
    others: Iterable[Any] = ()  #: what it reads, or changes on the way


def spans_of(memory: Any) -> tuple[list[Span], list[Span]]:
    """Outputs and others of a ChoiceMemory; tensors alone are outputs."""
    if not isinstance(memory, ChoiceMemory):
        memory = ChoiceMemory([memory] if is_memory(memory) else memory)
    return [span_of(one) for one in memory.outputs], [span_of(one) for one in memory.others]


_open: dict[int, "ChoiceCall"] = {}
_numbers = itertools.count(1)


@callback
def _run(user: Any, implementation: int, config: int) -> int:
    return _open[user].run(implementation, config)


_run_call = c.RunCall(_run)


class ChoiceCall:
    """A call and its outcome. The library may run it between `with` and its end."""

    def __init__(self, library: Library, way: Callable[[int, int], Any]) -> None:
        self._library = library
        self._way = way
        self._number = next(_numbers)
        self._failure: BaseException | None = None
        self._is_interrupted = False
        self._value: Any = None
        self._memory: Any = None
        self._daemon = DaemonCall()
        self.struct = c.Run(size=ctypes.sizeof(c.Run), user=self._number, run=_run_call)

    def __enter__(self) -> "ChoiceCall":
        watch()
        _open[self._number] = self
        self._daemon.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._daemon.__exit__()
        del _open[self._number]
        self._note_interruption()

    def name(self, memory: Any) -> None:
        """Says which device memory it has."""
        outputs, others = spans_of(memory)
        spans = [c.Memory(*span, 1) for span in outputs] + [c.Memory(*span, 0) for span in others]
        self._memory = (c.Memory * len(spans))(*spans)
        self.struct.memory = ctypes.cast(self._memory, ctypes.POINTER(c.Memory))
        self.struct.num_memory = len(spans)

    def _note_interruption(self) -> None:
        """Looks whether an exception left a callback where run() could not catch it."""
        failure = take_failure() or interruption()
        if failure is not None and not self._is_interrupted:
            self._is_interrupted = True
            self._failure = failure

    def run(self, implementation: int, config: int) -> int:
        self._note_interruption()
        if self._is_interrupted:  # the caller is to hear of that, and of nothing later
            return 1
        self._value = self._failure = None
        try:
            with left_to_triton:
                self._value = self._way(implementation, config)
            return 0
        except Exception as error:
            self._library.contextune_note_failure(encode(text_of_failure(error)))
            self._failure = error
        except BaseException as error:
            self._is_interrupted = True
            self._failure = error
        return 1

    def take(self) -> Any:
        """The value of the run that did the caller's work, or what it raised."""
        value, failure = self._value, self._failure
        self._value = self._failure = None
        if failure is not None:
            raise failure
        return value
