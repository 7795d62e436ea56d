"""The kernel of a tuned op: what the dispatcher of PyTorch calls in place of the op's own."""

import ctypes
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from contextune import _library
from contextune._capture import note_capture
from contextune._choice import Choice, ChoiceProblem, ChoiceTiming
from contextune._choice_call import ChoiceMemory
from contextune._code import code_behind
from contextune._custom_op_call import NotSearchable, OpCall
from contextune._custom_op_config import (CustomOpConfig, OpImplementation, implementations_of,
                                          with_parameters)
from contextune._custom_op_key import Dispatch, ProblemOfCall, kernel_by_key
from contextune._custom_op_ranks import (OpRanks, group_parameter, is_collective, job, process_group,
                                         ranks_of)
from contextune._custom_op_torch import CustomOp, Kernel, are_tuned, tensors_of
from contextune._errors import Error, warn_once
from contextune._library import Library

_MOST_CALLS = 10_000  # of different sizes that are looked up


class _Found(NamedTuple):
    """The choice and the problem of a call."""
    choice: Choice
    problem: ProblemOfCall


class CustomOpAutotuning:
    """An op whose calls run the best of its implementations, as register_custom_op_autotuning() makes it.

    A settled call looks its sizes up, and runs what was found. Others go to a Choice, of which each
    process group has its own.
    """

    def __init__(self, custom_op: Any, configs: Iterable[CustomOpConfig], *, name: str | None,
                 input_gen_fns: Mapping[str, Callable[[Any], Any]], dispatch_on: Any, split_points: Any,
                 group: Any, collective: bool | None, options: dict[str, Any]) -> None:
        self._op = CustomOp(custom_op)
        self.name = name or self._op.name
        self._implementations = implementations_of(self._op, configs)
        self._inputs = dict(input_gen_fns)
        self._dispatch = None
        if dispatch_on is not None:
            self._dispatch = Dispatch(self._op, dispatch_on, split_points)
        elif split_points is not None:
            raise Error(f"{self._op.name}: split_points are of no dimension; give dispatch_on as well")
        for parameter in self._inputs:
            if parameter not in self._op.parameters:
                raise Error(f"{self._op.name}: input_gen_fns names '{parameter}'; its parameters are "
                            f"{', '.join(self._op.parameters)}")
        self._group = group
        names = [self._op.name, *(one.name for one in self._implementations)]
        self._is_collective = is_collective(names) or group is not None if collective is None \
            else collective
        self._group_parameter = group_parameter(self._op.parameters) if self._is_collective else None
        changes = any(one.alias_info is not None and one.alias_info.is_write
                      for one in self._op.schema.arguments)
        self._options = {"repeatable": not changes} | options
        if self._dispatch is None or self._dispatch.points:
            self._options.setdefault("buckets", "exact")
        self._settled: dict[Any, Kernel] = {}  # what runs wherever it is called
        self._asked: dict[Any, Callable[[], Kernel | None]] = {}  # what runs here, as regions find more
        self._choices: dict[Any, Choice] = {}
        self._lock = threading.Lock()
        self._at = threading.local()
        self._new_choice(OpRanks())  # what is wrong with it is said now
        self._op.put_in_place(self._tuned, self._untuned)

    def timings(self, *args: Any, **kwargs: Any) -> list[ChoiceTiming]:
        """How long each implementation takes for a call with these arguments, the default first.

        Empty where that is not known.
        """
        library = _library.library()
        if library is None or not are_tuned(tensors_of((args, kwargs))):
            return []
        try:
            found = self._find(library, args, kwargs)
            self._begin(library, found, args, kwargs)
            problem = found.problem
            return found.choice.timings(problem.bytes, problem.type, problem.key)
        except NotSearchable:
            return []
        finally:
            self._at.problem = self._at.call = None

    def _tuned(self, default: Kernel) -> Kernel:
        """The kernel in place of that one, which is the default."""
        self._implementations[0].function = default
        return kernel_by_key(self._op, self._settled, self._asked, self._search, self._failed,
                             job() if self._is_collective else None)

    def _failed(self, at: Any, way: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same call once more, amid the exception of that kernel."""
        if way is self._default() or self._is_collective:
            raise  # no rank of several may do something else by itself
        self._settled.pop(at, None)
        return self._search(at, args, kwargs)  # the choice says why, and settles on its default

    def _untuned(self, device: str, default: Kernel) -> Kernel:
        """The kernel for a type of device where nothing is tuned."""

        def kernel(*args: Any, **kwargs: Any) -> Any:
            where = f"on {device}" if device else "on other devices than a GPU"
            warn_once(f"contextune: {self.name} is not tuned {where}; it runs its own implementation")
            return default(*args, **kwargs)

        return kernel

    def _default(self) -> Kernel:
        return self._implementations[0].function

    def _search(self, at: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that is not settled where it is made."""
        library = _library.library()
        if library is not None:
            note_capture(library)
        place = _library.PLACE_UNTUNED if library is None else library.contextune_current_place()
        if library is None or place == _library.PLACE_UNTUNED:  # there are tensors, so CUDA is there
            self._keep(self._settled, at, self._default())
            return self._default()(*args, **kwargs)
        try:
            found = self._find(library, args, kwargs)
            if place == _library.PLACE_CAPTURE:  # what is there for a search has no place in a graph
                return (self._way(found) or self._default())(*args, **kwargs)
            self._begin(library, found, args, kwargs)
            value = found.choice(self._at.call)
        except NotSearchable as why:
            warn_once(f"contextune: {self.name} runs its own implementation: {why}")
            return self._default()(*args, **kwargs)
        finally:
            self._at.problem = self._at.call = None
        self._note(library, found, place, at)
        return value

    def _note(self, library: Library, found: _Found, place: int, at: Any) -> None:
        """Keeps what the next such call runs."""
        is_searched_alone = place == _library.PLACE_FREE or self._options.get("select") == "immediate"
        is_for_good = is_searched_alone and self._options.get("unseen", "tune") == "tune"
        if is_for_good and at not in self._asked:
            way = self._way(found)
            if way is not None:
                self._keep(self._settled, at, way)
        elif at not in self._asked:
            self._keep(self._asked, at, self._asking(library, found))

    def _ways(self) -> list[list[Kernel]]:
        """All ways to do it, by number of implementation and config."""
        return [[with_parameters(one.function, config, self._op.parameters) for config in one.configs]
                for one in self._implementations]

    def _way(self, found: _Found) -> Kernel | None:
        """What a call runs here; None: that is still to be searched."""
        problem = found.problem
        known = found.choice.settled(problem.bytes, problem.type, problem.key)
        return None if known is None else self._ways()[known[0]][known[1]]

    def _asking(self, library: Library, found: _Found) -> Callable[[], Kernel | None]:
        """The same for later calls, in less time."""
        problem = found.problem
        ways = {implementation << 32 | config: way for implementation, configs in enumerate(self._ways())
                for config, way in enumerate(configs)}
        choice, number = found.choice.numbers(problem.bytes, problem.type, problem.key)
        # It takes no lock, because the problem was called, so the interpreter's need not be given away.
        settled = ctypes.PyDLL(library.path).contextune_choice_settled_number
        settled.restype = ctypes.c_int64
        at, way_at = (ctypes.c_void_p(choice), ctypes.c_uint32(number)), ways.get
        return lambda: way_at(settled(*at))

    @staticmethod
    def _keep(ways: dict[Any, Any], key: Any, way: Any) -> None:
        if len(ways) < _MOST_CALLS:
            ways[key] = way

    def _begin(self, library: Library, found: _Found, args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> None:
        """Has the choice see this call."""
        in_region = library.contextune_current_place() == _library.PLACE_REGION

        def is_comparing() -> bool:
            """What is searched alone is timed in a region of its own."""
            return in_region or bool(library.contextune_current_place() != _library.PLACE_REGION)

        self._at.problem = found.problem
        self._at.call = OpCall(self._op, args, kwargs, is_comparing, not self._is_collective)

    def _find(self, library: Library, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Found:
        """Raises NotSearchable where there is no choice for the call."""
        group = self._group_parameter
        problem = ProblemOfCall(self._op, group, self._dispatch, args, kwargs)
        if not self._is_collective:
            return _Found(self._choice_of(None, OpRanks), problem)
        given = self._group
        if given is None and group is not None:
            given = dict(zip(self._op.parameters, args, strict=False)).get(group, kwargs.get(group))
        at = process_group(given)
        if at is None:
            raise NotSearchable("it is a collective, and its process group is not known; give `group`, or call "
                                "init_process_group() before")
        try:
            return _Found(self._choice_of(at, lambda: ranks_of(library, at)), problem)
        except Error as why:
            raise NotSearchable(str(why)) from None

    def _choice_of(self, group: Any, find_ranks: Callable[[], OpRanks]) -> Choice:
        choice = self._choices.get(group)
        if choice is None:
            with self._lock:
                choice = self._choices.get(group)
                if choice is None:
                    choice = self._choices[group] = self._new_choice(find_ranks())
        return choice

    def _new_choice(self, ranks: OpRanks) -> Choice:
        choice = Choice(self.name, size=lambda _: self._at.problem.bytes,
                        type=lambda _: self._at.problem.type, key=lambda _: self._at.problem.key,
                        buffers=lambda call: self._memory(call),
                        make_inputs=self._make_inputs if self._inputs else None,
                        communicator=ranks.group or ranks.communicator or None, **self._options)
        for implementation in self._implementations:
            self._add(choice, implementation)
        return choice

    def _add(self, choice: Choice, way: OpImplementation) -> None:
        def run(call: OpCall, **parameters: Any) -> Any:
            return call.run(with_parameters(way.function, parameters, self._op.parameters),
                            way is self._implementations[0] and not parameters)

        # Winners that were stored with other code of it do not count.
        run.__wrapped__ = code_behind(way.function)  # type: ignore[attr-defined]
        choice.add(way.name, way.configs, fused=way.fused, supports=way.supports,
                   abandon=way.abandon)(run)

    def _memory(self, call: OpCall) -> ChoiceMemory:
        return call.memory(self._default())

    def _make_inputs(self, _: ChoiceProblem) -> tuple[OpCall]:
        return (self._at.call.with_inputs(self._inputs),)
