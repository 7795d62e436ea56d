"""A call of a function that has configs, as the library runs it: once, or again and again."""

import ctypes
import itertools
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from contextune import _function_library as c
from contextune import _library
from contextune._callback import callback, take_failure, watch
from contextune._daemon import DaemonCall, interruption
from contextune._errors import Error, text_of_failure
from contextune._library import Library, decode, encode
from contextune._region_setup import RegionSetup
from contextune._text import config_text
from contextune._triton import left_to_triton


class CalledFunction(Protocol):
    """The function that is called, as its author gives it."""

    prune_fn: Callable[..., bool] | None

    def run(self, config: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs it with a config, by its number."""

    def run_changed(self, base: int, by_hand: Mapping[str, Any], args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> Any:
        """Runs it with a config in which parameters are set by hand."""

    def keeps(self, config: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Asks prune_fn."""

    def list_configs(self) -> list[str]:
        """Lists the configs of the current device, as texts."""

    def set_up(self, setup: RegionSetup, entry: Any, args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> None:
        """Sets up the entry in which it is tuned."""


class FunctionCall:
    """A call and its outcome. Exceptions stay on this side of the C functions."""

    def __init__(self, library: Library, function: CalledFunction, args: tuple[Any, ...],
                 kwargs: dict[str, Any], by_hand: Mapping[str, Any] | None = None, *,
                 is_verbose: bool = False, is_untuned: bool = False) -> None:
        self._library = library
        self._function = function
        self._args, self._kwargs, self._by_hand = args, kwargs, by_hand
        self._is_verbose, self._is_untuned = is_verbose, is_untuned
        self._setup: RegionSetup | None = None
        self._value: Any = None
        self._failure: BaseException | None = None
        self._is_interrupted = False
        self.why_untuned = ""

    def run(self, handle: int, problem: int) -> Any:
        """The value of the run that did the caller's work; raises what that raised."""
        number = next(_numbers)
        struct = c.Run.from_buffer_copy(_run if self._function.prune_fn is None else _run_and_prune)
        struct.user = number
        if self._by_hand:
            struct.set = encode(config_text(self._by_hand))
        if self._is_verbose or self._is_untuned:
            struct.says_runs, struct.is_untuned = self._is_verbose, self._is_untuned
        watch()
        _open[number] = self
        try:
            with DaemonCall():
                status = self._library.contextune_function_call(handle, problem, ctypes.byref(struct))
        finally:
            del _open[number]
        self._note_interruption()
        if self._setup is not None:
            self._setup.raise_failure()
        value, failure = self._value, self._failure
        self._value = self._failure = None
        if status == 0 and not self._is_interrupted:
            return value
        if status == c.FAILED and not self._is_interrupted:
            self._fail(failure)
        assert failure is not None
        raise failure

    def _note_interruption(self) -> None:
        """Looks whether an exception left a callback where guarded() could not catch it."""
        failure = take_failure() or interruption()
        if failure is not None and not self._is_interrupted:
            self._is_interrupted = True
            self._failure = failure

    def _fail(self, failure: BaseException | None) -> NoReturn:
        raise Error(self._library.error()) from failure

    def guarded(self, work: Callable[[], int]) -> int:
        """Below 0, with the exception kept, where the work raises one."""
        self._note_interruption()
        if self._is_interrupted:  # the caller is to hear of that, and of nothing later
            return -1
        try:
            with left_to_triton:
                return work()
        except Exception as error:
            self._library.contextune_note_failure(encode(text_of_failure(error)))
            self._failure = error
        except BaseException as error:
            self._is_interrupted = True
            self._failure = error
        return -1

    def on_run(self, config: int, counts: int) -> int:
        def run() -> int:
            if not counts:  # the value of the caller's own run is there
                self._function.run(config, self._args, self._kwargs)
                return 0
            self._value = self._failure = None  # its memory is free for this run
            self._value = self._function.run(config, self._args, self._kwargs)
            return 0

        return self.guarded(run)

    def on_run_changed(self, base: int) -> int:
        def run() -> int:
            self._value = self._function.run_changed(base, self._by_hand or {}, self._args,
                                                     self._kwargs)
            return 0

        return self.guarded(run)

    def on_prune(self, config: int) -> int:
        def ruled_out() -> int:
            if self._function.keeps(config, self._args, self._kwargs):
                return 0
            self._library.contextune_note_failure(b"prune_fn rules it out")
            return c.RULED_OUT_BY_AUTHOR

        return self.guarded(ruled_out)

    def on_space(self, space: int) -> int:
        def add_all() -> int:
            for text in self._function.list_configs():
                if self._library.contextune_space_add(space, encode(text)) != 0:
                    raise Error(self._library.error())
            return 0

        return self.guarded(add_all)

    def on_begin(self, entry: int) -> int:
        def set_up() -> int:
            self._setup = RegionSetup(self._library)
            self._function.set_up(self._setup, ctypes.cast(entry, _library.EntryPointer), self._args,
                                  self._kwargs)
            return 0

        return self.guarded(set_up)

    def on_say(self, text: str) -> None:
        _, is_untuned, why = text.partition(": was not tuned: ")
        if is_untuned:
            self.why_untuned = in_python(why)
        if self._is_verbose:
            print(f"contextune: {in_python(text)}", file=sys.stderr)


def in_python(why: str) -> str:
    """A sentence of the library, which names options as C++ does."""
    return why.replace(".repeatable", "repeatable=True").replace("what to .restore", "what to restore=")


_open: dict[int, FunctionCall] = {}
_numbers = itertools.count(1)
_run = c.Run(
    size=ctypes.sizeof(c.Run),
    run=c.RunCall(callback(lambda user, config, counts: _open[user].on_run(config, counts))),
    space=c.SpaceCall(callback(lambda user, device, space: _open[user].on_space(space))),
    begin=c.BeginCall(callback(lambda user, entry: _open[user].on_begin(entry))),
    run_changed=c.RunChangedCall(callback(lambda user, base, config: _open[user].on_run_changed(base))),
    say=c.SayCall(callback(lambda user, text: _open[user].on_say(decode(text)))))
_run_and_prune = c.Run.from_buffer_copy(_run)
_run_and_prune.prune = c.PruneCall(callback(lambda user, config: _open[user].on_prune(config)))
