"""Compiling the configs of a kernel of Triton before any of them is launched."""

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from contextune._errors import text_of_failure


@contextmanager
def _in_parallel(num_configs: int) -> Iterator[None]:
    """Compilers that are started in it run beside each other, where this Triton can do that."""
    try:
        parallel: Any = importlib.import_module("triton.runtime._async_compile")
    except ImportError:  # before Triton 3.5
        yield
        return
    if num_configs < 2 or parallel.active_mode.get() is not None:  # or the caller's own
        yield
        return
    with ThreadPoolExecutor(min(num_configs, len(os.sched_getaffinity(0)))) as threads:
        with parallel.AsyncCompileMode(threads, ignore_errors=True):
            yield


def _load(kernel: Any) -> None:
    """Loads a compiled kernel onto the device, which finds out whether it is out of resources."""
    if hasattr(kernel, "result"):
        kernel = kernel.result()
    load = getattr(kernel, "_init_handles", None)
    if load is not None:
        load()


def compile_all(configs: Iterable[int], start: Callable[[int], Any]) -> dict[int, Exception]:
    """Compiles and loads them, and tells which cannot run, and why.

    Args:
        configs: Their numbers.
        start: Compiles one, or begins to; returns the kernel.
    """
    failures: dict[int, Exception] = {}
    kernels: dict[int, Any] = {}
    numbers = list(configs)
    with _in_parallel(len(numbers)):
        for number in numbers:
            try:
                kernels[number] = start(number)
            except Exception as error:
                failures[number] = error
        for number, kernel in kernels.items():
            try:
                _load(kernel)
            except Exception as error:
                failures[number] = error
    return failures


def text_of_compilation(error: Exception) -> str:
    """Why a config cannot run, in one line: of a compiler's output the first."""
    return next((line for line in text_of_failure(error).splitlines() if line.strip()), "")
