"""Launches of `triton.autotune`d kernels in an open region."""

import ctypes
from collections.abc import Callable
from typing import Any

from contextune import _library
from contextune._capture import note_capture
from contextune._errors import text_of_failure
from contextune._library import encode
from contextune._restore import Restore
from contextune._triton_kernel import TritonKernel, TritonProblem, run_config
from contextune._triton_library import SEES_LAUNCHES, Call, Tunables, wait_for_gpu
from contextune._triton_memory import ChangedTensors
from contextune._triton_trials import TritonTrials

Run = Callable[..., Any]  # Triton's own Autotuner.run


class TritonRegion:
    """An open entry of a region, as its launches see it. Belongs to one thread."""

    __slots__ = ("_changed", "_is_open", "_runs", "_trials", "_tunables", "_tunes", "of_thread")

    def __init__(self, tunables: Tunables, tunes: bool, of_thread: "list[TritonRegion | None]") -> None:
        self.of_thread = of_thread  #: what is open on its thread, the innermost last
        self._tunables = tunables
        self._tunes = tunes
        self._is_open: bool | None = None  # whether the library has it so; None: nobody asked
        self._runs = 0
        self._changed: ChangedTensors | None = None  # only where the body may be repeated
        self._trials: TritonTrials | None = None  # only where something is not settled

    def restoring(self, restore: Restore, is_repeatable: bool) -> Restore:
        """What puts everything back before the body runs again, tensors of kernels included."""
        if not is_repeatable and not restore.spans and restore.call is None:
            return restore
        self._changed = ChangedTensors()
        return self._changed.beside(restore)

    def begin_run(self) -> None:
        """The body runs, perhaps once more."""
        self._runs += 1
        if self._trials is not None:
            self._trials.begin_run()

    @property
    def has_trials(self) -> bool:
        return self._trials is not None

    def take_over(self, inner: "TritonRegion") -> None:
        """Tells Triton of the winners of a region in it, too."""
        if inner._trials is not None:
            self._of_trials().tuned.update(inner._trials.tuned)

    def tell_winners(self) -> None:
        """Gives Triton those that were found by now. Outside of all regions."""
        if self._trials is not None:
            for problem, kernel in self._trials.tuned.items():
                kernel.publish(problem)

    def _of_trials(self) -> TritonTrials:
        if self._trials is None:
            self._trials = TritonTrials(self._changed, self._runs == 1)
        return self._trials

    def launch(self, as_usual: Run, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """In place of Autotuner.run."""
        if not self._is_open:
            if self._is_open is None:
                self._is_open = self._tunables.current_place() in (_library.PLACE_REGION,
                                                                   _library.PLACE_CAPTURE)
            if not self._is_open:
                return as_usual(tuner, *args, **kwargs)
        if kwargs.get("warmup"):
            return as_usual(tuner, *args, **kwargs)
        kernel = tuner.__dict__.get("_contextune")
        if kernel is None or kernel.tuner is not tuner:
            if len(tuner.configs) < 2 or not _is_compiled(tuner):
                return as_usual(tuner, *args, **kwargs)
            kernel = tuner._contextune = TritonKernel(self._tunables, tuner)
        named = kernel.named(args, kwargs)
        key = kernel.key_of(named)
        if self._tunes or key not in kernel.problems:
            return self._launch_unsettled(as_usual, kernel, key, named, tuner, args, kwargs)
        problem = kernel.problems[key]
        if problem is None:
            return as_usual(tuner, *args, **kwargs)
        if not problem.is_published:
            self._of_trials().tuned[problem] = kernel
        return self._run(kernel, problem, False, named, args, kwargs)

    def _launch_unsettled(self, as_usual: Run, kernel: TritonKernel, key: tuple[Any, ...],
                          named: dict[str, Any], tuner: Any, args: tuple[Any, ...],
                          kwargs: dict[str, Any]) -> Any:
        if self._is_captured():
            return self._launch_captured(kernel, key, named, tuner, args, kwargs)
        is_new = key not in kernel.problems
        problem = kernel.meet(key, named, args, kwargs) if is_new else kernel.problems[key]
        if problem is None:
            return as_usual(tuner, *args, **kwargs)
        if not is_new and problem.stored is None:
            problem.finish_compilation()  # here, so that no launch that is timed waits for it
        self._of_trials().prepare(kernel, problem, is_new, named, tuner, kwargs)
        return self._run(kernel, problem, is_new, named, args, kwargs)

    def _is_captured(self) -> bool:
        return self._tunables.current_place() == _library.PLACE_CAPTURE or \
            note_capture(self._tunables.library)

    def _launch_captured(self, kernel: TritonKernel, key: tuple[Any, ...], named: dict[str, Any],
                         tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a graph keeps is no trial: the winner of now, else the default."""
        config = tuner.cache.get(key) or kernel.default_of(key, args, kwargs)
        return run_config(tuner, config, config.all_kwargs(), named, args, kwargs)

    def _run(self, kernel: TritonKernel, problem: TritonProblem, is_new: bool, named: dict[str, Any],
             args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launches the config that is due, and the default where that one cannot be launched."""
        library, tuner, call = self._tunables, kernel.tuner, Call()
        pointer = ctypes.byref(call)
        number = library.tunable_begin(problem.tunable, problem.number, pointer)
        if problem.compilation is not None:
            self._finish_compilation(kernel, problem, is_new, number, pointer)
        why = problem.failures.get(number)
        if why is None:
            has_ended = False
            try:
                return run_config(tuner, problem.configs[number], problem.parameters[number], named, args,
                                   kwargs)
            except Exception as error:
                if number == problem.default:
                    raise
                has_ended = True
                if not self._failed(pointer, text_of_failure(error)):
                    raise
            finally:
                if not has_ended:
                    if self._tunes and problem.has_hooks and library.current_state() != SEES_LAUNCHES:
                        wait_for_gpu()  # or the call is over when its first piece of work is
                    library.tunable_end(pointer, 1)
        else:
            self._failed(pointer, why)
        default = problem.default
        return run_config(tuner, problem.configs[default], problem.parameters[default], named, args, kwargs)

    def _finish_compilation(self, kernel: TritonKernel, problem: TritonProblem, is_new: bool, number: int,
                            call: Any) -> None:
        """Waits for the config that is due, and for the others where there is a search."""
        try:
            if is_new:
                kernel.note_stored(problem)
            problem.finish_config(number)
        except BaseException:  # the user's interruption
            self._tunables.tunable_end(call, 1)
            raise

    def _failed(self, call: Any, why: str) -> bool:
        """Whether the default is to be launched instead."""
        self._tunables.note_failure(encode(why))
        return bool(self._tunables.tunable_end(call, 0))


def _is_compiled(tuner: Any) -> bool:
    """False where an interpreter of Triton's runs it, on the CPU."""
    kernel = tuner.fn
    while hasattr(kernel, "fn"):
        if type(kernel).__name__ == "InterpretedFunction":
            return False
        kernel = kernel.fn
    return True
