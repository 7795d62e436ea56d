"""Threads that compile kernels beside what the program does."""

import functools
import os
import threading
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
        try:
            result = self._piece_of_work()
        except Exception as error:
            self.set_exception(error)
        else:
            self.set_result(result)
        self._piece_of_work = None


class CompileThreads(Executor):
    """Threads that exist while there is work, at most as many as there are processors.

    Once the main thread has ended, each ends after its piece.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Piece] = deque()
        self._num_threads = 0

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
            if self._num_threads >= len(os.sched_getaffinity(0)):
                return
            self._num_threads += 1
        try:
            threading.Thread(target=self._work, name=_NAME, daemon=False).start()
        except RuntimeError:  # the system gives no more of them
            with self._lock:
                self._num_threads -= 1

    def _work(self) -> None:
        # Known by it, it does not count as a thread of the program, which may use the GPU. Python names
        # its threads only since 3.14.
        with suppress(OSError), open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
            file.write(_NAME)
        while (piece := self._next()) is not None:
            piece.begin()

    def _next(self) -> _Piece | None:
        """The next piece; absent: the thread is to end."""
        with self._lock:
            if self._waiting and threading.main_thread().is_alive():
                return self._waiting.popleft()
            self._num_threads -= 1
            return None


_NAME = "contextune-cc"  # at most 15 bytes
