"""Compiling the configs of a kernel of Triton, beside those of others and what the program does."""

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from contextune._compile_threads import CompileThreads
from contextune._errors import text_of_failure

_threads = CompileThreads()  # of all kernels


@contextmanager
def _in_background() -> Iterator[bool]:
    """Compilers that are started in it run on other threads; false where this package does not say so."""
    try:
        parallel: Any = importlib.import_module("triton.runtime._async_compile")
    except ImportError:  # before Triton 3.5
        yield False
        return
    if parallel.active_mode.get() is not None:  # the caller's own, who waits for it
        yield False
        return
    # Not by `with`, which waits for all of them in the end.
    before = parallel.active_mode.set(parallel.AsyncCompileMode(_threads))
    try:
        yield True
    finally:
        parallel.active_mode.reset(before)


class _Kernel:
    """A kernel that Triton compiles, or has compiled."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.future = getattr(kernel, "future", None)  #: absent: it is compiled

    def load(self) -> None:
        """Loads it onto the device, which finds out whether it is out of resources."""
        kernel = self._kernel
        if hasattr(kernel, "result"):
            try:
                kernel = kernel.result()
            except Exception:
                if self.future is not None:
                    self.future.result()  # Triton says why only once
                raise
        load = getattr(kernel, "_init_handles", None)
        if load is not None:
            load()


class Compilation:
    """Configs that are being compiled. The thread that launches them loads them."""

    def __init__(self, configs: Iterable[int], start: Callable[[int], Any]) -> None:
        """Begins with all of them.

        Args:
            configs: Their numbers.
            start: Compiles one, or begins to; returns the kernel.
        """
        self.failures: dict[int, Exception] = {}  #: of those that are known to be unable to run
        self._configs = list(configs)
        self._kernels: dict[int, _Kernel] = {}  # not loaded yet
        self._withdrawn: list[Any] = []  # what threads no longer are to do
        with _in_background() as is_in_background:
            for number in self._configs:
                try:
                    self._kernels[number] = _Kernel(start(number))
                except Exception as error:
                    self.failures[number] = error
            if not is_in_background:
                self.finish()

    def first_that_runs(self) -> int | None:
        """Waits for no more than it takes to know it; None: none can run.

        It is the first in order, whichever is compiled first: ranks have to agree on it.
        """
        return next((number for number in self._configs if self._runs(number)), None)

    def finish(self) -> dict[int, Exception]:
        """Waits for all of them; gives the failures."""
        _threads.put_back(self._withdrawn)
        self._withdrawn.clear()
        for number in self._configs:
            self._runs(number)
        return self.failures

    def finish_one(self, number: int) -> Exception | None:
        """Waits for one of them; gives why it cannot run."""
        self._runs(number)
        return self.failures.get(number)

    def pause(self) -> None:
        """Compiles no more of them until they are asked for."""
        self._withdrawn += _threads.withdraw(kernel.future for kernel in self._kernels.values())

    def _runs(self, number: int) -> bool:
        if number in self._kernels:
            try:
                self._kernels[number].load()
            except Exception as error:
                self.failures[number] = error
            del self._kernels[number]
        return number not in self.failures


def text_of_compilation(error: Exception) -> str:
    """Why a config cannot run, in one line: of a compiler's output the first."""
    return next((line for line in text_of_failure(error).splitlines() if line.strip()), "")
