"""Regions: stretches of a program whose work on the GPU is tuned together."""

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from contextune import _library
from contextune._communicator import communicator_of
from contextune._errors import Error
from contextune._library import Library, encode
from contextune._restore import Restore, RestoreOfCalls, restore_of

P = ParamSpec("P")
R = TypeVar("R")

Option = str | int | float | bool
_ONCE_MORE_AS_IT_IS = 2


def option_text(name: str, value: Option) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise Error(f"the option {name} is {value!r}; give a text, a number, or True or False")


class RegionEntry:
    """An entry of a region, as a loop: the body runs as long as next() says so.

    Belongs to the thread that made it. Leaving before next() has said 0 ends the search of this entry
    without winners, and restores.
    """

    def __init__(self, library: Library, name: str = "", *, tunable: int | None = None,
                 problem: int = 0) -> None:
        self._library = library
        self._entry = _library.Entry()
        self._pointer = ctypes.byref(self._entry)
        self._failure: BaseException | None = None
        self._kept_alive: Any = None
        self._is_asked = False
        self.is_untuned = False  # with other ranks, that have not agreed
        if tunable is None:
            library.contextune_region_begin(self._pointer, encode(name))
        else:
            library.contextune_tunable_region_begin(self._pointer, tunable, problem)
        self._tunes = bool(library.contextune_region_tunes(self._pointer))

    def configure(self, options: Mapping[str, Option], *, repeatable: bool,
                  restore: Callable[[], Restore], communicator: Any) -> None:
        """Says how it is tuned, where that is still of use. Leaves where it raises, as Error does for
        what cannot be."""
        if not self._tunes:
            return
        try:
            group = None if communicator is None else communicator_of(communicator)
            self._configure(options, repeatable, restore(), group)
        except BaseException:
            self.leave()
            raise

    def _configure(self, options: Mapping[str, Option], repeatable: bool, restore: Restore,
                   communicator: int | None) -> None:
        # Where its ranks are not found the body runs once, and contextune_error() says why.
        if communicator is not None and self._library.contextune_region_communicator(
                self._pointer, communicator) != 0:
            return
        for name, value in options.items():
            self._check(self._library.contextune_region_option(
                self._pointer, encode(name), encode(option_text(name, value))))
        if repeatable:
            self._check(self._library.contextune_region_option(self._pointer, b"repeatable", b"true"))
        for address, size in restore.spans:
            if size > 0:
                self._check(self._library.contextune_region_restore_buffer(
                    self._pointer, address, size))
        if restore.call is not None:
            self._kept_alive = _library.RestoreCall(functools.partial(self._restore, restore.call))
            self._check(self._library.contextune_region_restore_call(
                self._pointer, self._kept_alive, None))

    def _check(self, status: int) -> None:
        if status != 0:
            raise Error(self._library.error())

    def _restore(self, call: Callable[[], object], _: Any) -> int:
        try:
            call()
            return 0
        except BaseException as error:
            self._failure = error
            return -1

    def next(self) -> int:
        """0: the body has run. 2: it is to run once more to see what it leaves; else it is to run."""
        again: int = self._library.contextune_region_next(self._pointer)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if again == 0 and self._tunes:
            self.is_untuned = bool(self._library.contextune_region_untuned(self._pointer))
        return again

    def leave(self) -> None:
        self._library.contextune_region_end(self._pointer)
        self._kept_alive = None

    def run(self, body: Callable[[], R]) -> R:
        """Runs the body as often as the entry wants, and gives the value of its last run."""
        try:
            self.next()
            while True:
                value = body()
                again = self.next()
                if again == _ONCE_MORE_AS_IT_IS:
                    try:
                        body()
                    except Exception:  # the caller's own run is over
                        return value
                    again = self.next()
                if again == 0:
                    return value
                del value  # its memory is free for the next run
        finally:
            self.leave()


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in logs and in the store: with its module, unless that is the program."""
    name = getattr(function, "__qualname__", type(function).__name__).replace("<locals>.", "")
    module = getattr(function, "__module__", None)
    return name if module in (None, "__main__") else f"{module}.{name}"


class _Entered(threading.local):
    """Entries by `with` of this thread that are open, the innermost last."""

    def __init__(self) -> None:
        self.entries: list[RegionEntry | None] = []


class Region:
    """A region, as region() gives it. Any thread may enter it."""

    def __init__(self, name: str, *, repeatable: bool, restore: Any, communicator: Any,
                 options: Mapping[str, Option]) -> None:
        if not isinstance(name, str) or not name:
            raise Error(f"a region is named {name!r}; give it a text that is not empty")
        self.name = name
        self._repeatable = repeatable
        self._restore = restore
        self._communicator = communicator
        self._options = dict(options)
        self._entered = _Entered()

    def _enter(self, library: Library, restore: Callable[[], Restore]) -> RegionEntry:
        entry = RegionEntry(library, self.name)
        entry.configure(self._options, repeatable=self._repeatable, restore=restore,
                        communicator=self._communicator)
        return entry

    def __enter__(self) -> "Region":
        """Enters it once, as one pass."""
        if self._repeatable or self._restore is not None:
            raise Error(f"region '{self.name}' may be repeated, which `with` cannot do; write `for _ in "
                        "region(...):`, or leave out repeatable and restore")
        library = _library.library()
        entry = None if library is None else self._enter(library, Restore)
        if entry is not None:
            entry.next()
        self._entered.entries.append(entry)
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        entry = self._entered.entries.pop()
        if entry is None:
            return
        try:
            if kind is None:
                entry.next()
        finally:
            entry.leave()

    def __iter__(self) -> Iterator[None]:
        """Runs the loop's body until the region is tuned, and once with the winners."""
        library = _library.library()
        if library is None:
            yield
            return
        entry = self._enter(library, lambda: restore_of(self._restore))
        try:
            while entry.next():
                yield
        finally:
            entry.leave()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Makes a function whose calls are entries; gives the value of the last run."""
        refuse_unfinished(function, "region")
        restore = RestoreOfCalls(function, self._restore)

        @functools.wraps(function)
        def tuned(*args: P.args, **kwargs: P.kwargs) -> R:
            library = _library.library()
            if library is None:
                return function(*args, **kwargs)
            entry = self._enter(library, lambda: restore.of(args, kwargs))
            return entry.run(lambda: function(*args, **kwargs))

        return tuned


def refuse_unfinished(function: Callable[..., Any], what: str) -> None:
    """Refuses what is no function, and functions whose call is over before their work is."""
    if not callable(function):
        raise Error(f"{what} is given {type(function).__name__}; write @{what}(...) above a function")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function) or \
            inspect.isasyncgenfunction(function):
        raise Error(f"{name_of(function)} is a coroutine or a generator, whose calls return before the "
                    f"work is done; put @{what}(...) above a function that it calls")


def region(name: str, *, repeatable: bool = False, restore: Any = None, communicator: Any = None,
           **options: Option) -> Region:
    """A region of that name, for `with`, for a loop, or above a function.

        with region("decode"):                                  # one entry, one pass
            step()
        for _ in region("decode", restore=[cache]):             # repeated until it is tuned
            step()

        @region("decode", restore="cache")                      # a call is an entry
        def step(cache): ...

    Args:
        repeatable: Running the body several times leaves the same as running it once.
        restore: How to make it so: tensors on the device that are copied back before each further
            pass, above a function also names of its parameters, or a callable that puts everything
            back (above a function it is given the arguments of the call).
        communicator: A process group of PyTorch or an ncclComm_t whose ranks do it, and tune it by
            themselves. They are found under `contextune run`.
        options: Those of a region, as `n_repeat=3`; a flag or a variable of the same name wins.

    Without a GPU, the library or the frontend, the body runs once.
    """
    return Region(name, repeatable=repeatable, restore=restore, communicator=communicator,
                  options=options)
