"""Threads that compile kernels beside what the program does."""

import functools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any


class _Piece(Future[Any]):
    """Work that a thread here does, or the one that asks for its result before any has begun it.

    So nobody waits for work behind which others stand, or for threads that have ended.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__()
        self._piece_of_work: Callable[[], Any] | None = work
        self._doing = threading.Lock()
        self._since = time.monotonic()  # nobody has begun it
        self._is_begun = False

    def is_slow(self, now: float) -> bool:
        """Whether whoever does it takes long, or nobody comes to do it."""
        return now - self._since > (_QUICK_SECONDS if self._is_begun else _LATE_SECONDS)

    def begin(self) -> None:
        """Does it, unless another thread is doing it."""
        if self._doing.acquire(blocking=False):
            try:
                self._do()
            finally:
                self._doing.release()

    def result(self, timeout: float | None = None) -> Any:
        with self._doing:
            self._do()
        return super().result(timeout)

    def _do(self) -> None:
        """Leaves it undone where it is interrupted."""
        if self._piece_of_work is None:
            return
        self._since, self._is_begun = time.monotonic(), True
        try:
            result = self._piece_of_work()
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(result)
        self._piece_of_work = None


class CompileThreads(Executor):
    """Threads that exist while there is work, at most as many as there are processors.

    Another one begins them. It leaves alone what is done at once by who asks for the
    results: Triton finds a kernel in its disk cache faster than a thread starts, and holds the
    interpreter's lock for it. Few begin at first, and more as work lasts: they share that lock with
    whoever waits for one kernel, which takes twice as long beside sixteen others as beside three.
    Once the main thread has ended, each ends after its piece.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Piece] = deque()
        self._looks_on = False  # the one that begins others
        self._num_threads = 0  # others
        self._grown = 0.0  # when some were begun

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> _Piece:
        piece = _Piece(functools.partial(work, *args, **kwargs))
        self._queue(piece)
        return piece

    def withdraw(self, pieces: Iterable[Any]) -> list[Any]:
        """Leaves those that no thread has begun to whoever asks for their results; gives them."""
        with self._lock:
            left = [piece for piece in pieces if piece in self._waiting]
            for piece in left:
                self._waiting.remove(piece)
            return left

    def put_back(self, pieces: Iterable[Any]) -> None:
        """Withdrawn ones are done by threads again."""
        for piece in pieces:
            self._queue(piece)

    def _queue(self, piece: _Piece) -> None:
        if not threading.main_thread().is_alive():
            return
        with self._lock:
            self._waiting.append(piece)
            if self._looks_on:
                return
            self._looks_on = True
        if not _has_started(self._look_on):
            self._looks_on = False

    def _look_on(self) -> None:
        while (missing := self._num_missing()) is not None:
            for _ in range(missing):
                if not _has_started(self._work):
                    self._work()  # in its place
            time.sleep(_QUICK_SECONDS)

    def _num_missing(self) -> int | None:
        """How many threads are to begin now; absent: no work waits for one."""
        now = time.monotonic()
        with self._lock:
            self._waiting = deque(piece for piece in self._waiting if not piece.done())
            if not self._waiting or not threading.main_thread().is_alive():
                self._looks_on = False
                return None
            if self._num_threads == 0:
                wanted = _FEW if any(piece.is_slow(now) for piece in self._waiting) else 0
            else:
                wanted = 2 * self._num_threads if now - self._grown > _GROWING_SECONDS else 0
            wanted = min(wanted, len(os.sched_getaffinity(0)))
            missing = max(0, min(wanted - self._num_threads, len(self._waiting)))
            self._num_threads += missing
            if missing > 0:
                self._grown = now
            return missing

    def _work(self) -> None:
        while (piece := self._next()) is not None:
            piece.begin()

    def _next(self) -> _Piece | None:
        """The next piece; absent: the thread is to end."""
        with self._lock:
            if self._waiting and threading.main_thread().is_alive():
                return self._waiting.popleft()
            self._num_threads -= 1
            return None


def _has_started(run: Callable[[], None]) -> bool:
    """False: the system gives no more threads."""
    try:
        threading.Thread(target=_named, args=(run,), name=_NAME, daemon=False).start()
    except RuntimeError:
        return False
    return True


def _named(run: Callable[[], None]) -> None:
    # Known by it, it does not count as a thread of the program, which may use the GPU. Python names
    # its threads only since 3.14.
    with suppress(OSError), open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write(_NAME)
    run()


_NAME = "contextune-cc"  # at most 15 bytes
_QUICK_SECONDS = 0.005  # in which a kernel comes from the disk cache
_LATE_SECONDS = 0.05
_FEW = 3
_GROWING_SECONDS = 0.1  # after which there are twice as many
