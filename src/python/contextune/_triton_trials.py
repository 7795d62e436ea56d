"""Kernels of Triton that are not settled, in one entry of a region."""

from typing import Any

from contextune._triton_kernel import TritonKernel, TritonProblem
from contextune._triton_memory import ChangedTensors


class TritonTrials:
    """What Triton does around its measurements, for runs of a region's body.

    A launch here runs one config once, on the program's own data. So there is something to undo only
    where the body is repeated, and something to reset only where Triton would reset it: before the
    launch that meets a new key.
    """

    def __init__(self, changed: ChangedTensors | None, is_first_run: bool) -> None:
        self.tuned: dict[TritonProblem, TritonKernel] = {}
        self._changed = changed  # None: the body is not repeated
        self._is_first_run = is_first_run
        self._seen: set[TritonProblem] = set()  # in this run of the body
        self._met: set[TritonProblem] = set()  # for the first time, in this entry

    def begin_run(self) -> None:
        self._is_first_run = False
        self._seen.clear()

    def prepare(self, kernel: TritonKernel, problem: TritonProblem, is_new: bool, named: dict[str, Any],
                tuner: Any, kwargs: dict[str, Any]) -> None:
        """A launch comes next."""
        if is_new:
            self._met.add(problem)
        if problem in self._seen:
            return
        self._seen.add(problem)
        self.tuned[problem] = kernel
        is_met_here = problem in self._met
        if self._changed is None and not is_met_here:
            return
        all_named = {**named, **kwargs, **problem.parameters[problem.default]}
        if self._changed is not None:
            if getattr(tuner, "user_defined_pre_hook", False) or \
                    getattr(tuner, "user_defined_post_hook", False):
                tuner.pre_hook(all_named)
                self._changed.call_later(lambda: tuner.post_hook(all_named, exception=None))
                return
            if self._is_first_run:  # tensors that come later are the body's own
                for name in (*tuner.restore_value, *tuner.reset_to_zero):
                    if named.get(name) is not None:
                        self._changed.keep(named[name])
        if is_met_here:
            tuner.pre_hook(all_named, reset_only=True)
