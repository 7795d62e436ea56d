"""Regions: stretches of a program whose work on the GPU is tuned together."""

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from contextune import _library, _triton
from contextune._capture import note_capture
from contextune._errors import Error
from contextune._group import group_of
from contextune._library import Library, encode
from contextune._name import name_of
from contextune._region_setup import Option, RegionSetup
from contextune._restore import Restore, RestoreOfCalls, restore_of
from contextune._triton_region import TritonRegion

P = ParamSpec("P")
R = TypeVar("R")


class RegionEntry:
    """An entry of a region, as a loop: the body runs as long as next() says so.

    Belongs to the thread that made it. Leaving before next() has said 0 ends the search of this entry
    without winners, and restores.
    """

    def __init__(self, library: Library, name: str) -> None:
        self._library = library
        self._entry = _library.Entry()
        self._pointer = ctypes.byref(self._entry)
        self._setup = RegionSetup(library)
        self._triton: TritonRegion | None = None
        # Not functions of Python, at whose first instruction a signal could keep them from their work. Who
        # calls begin() calls end(), also where it raises, and then forget().
        self.begin = functools.partial(library.contextune_region_begin, self._pointer, encode(name))
        self.end = functools.partial(library.contextune_region_end, self._pointer)

    def configure(self, options: Mapping[str, Option], *, repeatable: bool,
                  restore: Callable[[], Restore], group: Any) -> None:
        """Says how it is tuned, where that is still of use. Raises Error for what cannot be."""
        tunes = bool(self._library.contextune_region_tunes(self._pointer))
        self._triton = _triton.open_region(self._library, tunes)
        if tunes:
            self._setup.tell(self._pointer, options, repeatable=repeatable,
                             restore=self._triton.restoring(restore(), repeatable),
                             group=group_of(group))

    def next(self) -> bool:
        """Whether the body is to run (again)."""
        again: int = self._library.contextune_region_next(self._pointer)
        self._setup.raise_failure()
        if again != 0 and self._triton is not None:
            self._triton.begin_run()
        return again != 0

    def forget(self) -> None:
        """Launches of Triton go where they went before. After end()."""
        if self._triton is not None:
            _triton.close_region(self._triton)

    def run(self, body: Callable[[], R]) -> R:
        """Runs the body as often as the entry wants, and gives the value of its last run."""
        self.next()
        while True:
            value = body()
            if not self.next():
                return value
            del value  # its memory is free for the next run


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

    def __deepcopy__(self, _: Any) -> "Region":
        """Itself, as of functions: an object that has it may be copied."""
        return self

    def _enter(self, library: Library, restore: Callable[[], Restore]) -> RegionEntry:
        note_capture(library)
        entry = RegionEntry(library, self.name)
        try:
            entry.begin()
            entry.configure(self._options, repeatable=self._repeatable, restore=restore,
                            group=self._communicator)
            return entry
        except BaseException:
            entry.end()
            entry.forget()
            raise

    def __enter__(self) -> "Region":
        """Enters it once, as one pass."""
        if self._repeatable or self._restore is not None:
            raise Error(f"region '{self.name}' may be repeated, which `with` cannot do; write `for _ in "
                        "region(...):`, or leave out repeatable and restore")
        library = _library.library()
        entries = self._entered.entries
        count = len(entries)
        entry = None if library is None else self._enter(library, Restore)
        try:
            if entry is not None:
                entry.next()
            entries.append(entry)
            return self
        except BaseException:
            del entries[count:]
            if entry is not None:
                entry.end()
                entry.forget()
            raise

    def __exit__(self, kind: Any, *_: Any) -> None:
        entries = self._entered.entries
        entry = entries[-1]
        try:
            if entry is not None and kind is None:
                entry.next()
        finally:
            del entries[-1]
            if entry is not None:
                entry.end()
                entry.forget()

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
            entry.end()
            entry.forget()

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
            try:
                return entry.run(lambda: function(*args, **kwargs))
            finally:
                entry.end()
                entry.forget()

        return tuned


def _is_unfinished(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function) or \
        inspect.isasyncgenfunction(function)


def refuse_unfinished(function: Callable[..., Any], what: str) -> None:
    """Refuses what is no function, and functions whose call is over before their work is."""
    if not callable(function):
        raise Error(f"{what} is given {type(function).__name__}; write @{what}(...) above a function")
    if _is_unfinished(function) or _is_unfinished(getattr(type(function), "__call__", None)):
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
        communicator: A process group of PyTorch, an ncclComm_t, or numbers of ranks in the job, which
            do it together and tune it by themselves. They are found under `contextune run`.
        options: Those of a region, as `n_repeat=3`; a flag or a variable of the same name wins.

    Without a GPU, the library or the frontend, the body runs once.
    """
    return Region(name, repeatable=repeatable, restore=restore, communicator=communicator,
                  options=options)
