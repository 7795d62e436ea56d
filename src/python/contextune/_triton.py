"""`triton.autotune`d kernels in regions: where this package takes launches from Triton.

Triton is never imported from here. While a region is open, on any thread, `Autotuner.run` looks whether
its own thread is in one, and else is Triton's.
"""

import functools
import sys
import threading
from types import ModuleType
from typing import Any

from contextune import _triton_import
from contextune._library import Library
from contextune._triton_library import Tunables
from contextune._triton_region import TritonRegion

_MODULE = "triton.runtime.autotuner"


class _Thread(threading.local):
    """Open regions of this thread, the innermost last. None: a call that is timed as a whole."""

    def __init__(self) -> None:
        self.regions: list[TritonRegion | None] = []


_thread = _Thread()
_lock = threading.RLock()
_open: set[TritonRegion] = set()  # of all threads; changes of it need no lock in CPython
_hook: "_Hook | None" = None
_tunables: Tunables | None = None

# Each change of a class has the interpreter forget what it knows of it, and after a thousand changes
# Python 3.13 does not learn it anew.
_MOST_CHANGES = 200


class _Hook:
    """The place where launches are taken."""

    def __init__(self) -> None:
        self._autotuner: Any = None
        self._as_usual: Any = None
        self._in_regions: Any = None
        self._num_changes = 0
        if _MODULE in sys.modules:
            self._found(sys.modules[_MODULE])
        else:
            _triton_import.when_imported(_MODULE, self._found)

    def _found(self, module: ModuleType) -> None:
        self._autotuner = module.Autotuner
        self._wrap(module.Autotuner.run)
        self.look()

    def _wrap(self, as_usual: Any) -> None:
        @functools.wraps(as_usual)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            if _open and (regions := _thread.regions) and (region := regions[-1]) is not None:
                return region.launch(as_usual, self, args, kwargs)
            return as_usual(self, *args, **kwargs)

        self._as_usual, self._in_regions = as_usual, run

    def look(self) -> None:
        """A region was opened or closed: launches come here while one is open."""
        if self._autotuner is None:
            return
        with _lock:
            if _open:
                self._take()
            else:
                self._give_back()

    def _take(self) -> None:
        now = self._autotuner.run
        if now is self._in_regions:
            return
        if now is not self._as_usual:  # somebody else has replaced it meanwhile
            self._wrap(now)
        self._num_changes += 1
        self._autotuner.run = self._in_regions

    def _give_back(self) -> None:
        if self._autotuner.run is self._in_regions and self._num_changes < _MOST_CHANGES:
            self._autotuner.run = self._as_usual


def open_region(library: Library, tunes: bool) -> TritonRegion:
    """Has launches of this thread go through a region, until close_region().

    Args:
        tunes: It still searches, or has not begun to.
    """
    hook, tunables = _hook_of(library)
    region = TritonRegion(tunables, tunes, _thread.regions)
    region.of_thread.append(region)
    _open.add(region)
    hook.look()
    return region


def _hook_of(library: Library) -> tuple[_Hook, Tunables]:
    global _hook, _tunables
    if _hook is None or _tunables is None:
        with _lock:
            _tunables = _tunables or Tunables(library)
            _hook = _hook or _Hook()
    return _hook, _tunables


def close_region(region: TritonRegion) -> None:
    """Leaves it, once; the library has left it before."""
    if region not in _open:
        return
    _open.discard(region)
    region.of_thread.remove(region)  # this thread's, unless a loop is left by another one
    if _hook is not None:
        _hook.look()
    if region.has_trials:
        _tell_winners(region)


def _tell_winners(region: TritonRegion) -> None:
    outer = next((one for one in reversed(region.of_thread) if one is not None), None)
    if outer is None:
        region.tell_winners()
    else:  # nothing has settled before the outermost is left
        outer.take_over(region)


class _LeftToTriton:
    """For a stretch of this thread in a function or a choice, whose call is timed as a whole."""

    def __enter__(self) -> None:
        _thread.regions.append(None)

    def __exit__(self, *_: object) -> None:
        _thread.regions.pop()


left_to_triton = _LeftToTriton()
