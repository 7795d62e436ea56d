"""A whole function that has configs."""

import ctypes
import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NoReturn, TypeVar

from contextune import _library
from contextune._communicator import communicator_of
from contextune._config_space import ConfigSpace
from contextune._device import current_device
from contextune._errors import Error, text_of_failure, warn_once
from contextune._hashable import hashable_key, to_hashable
from contextune._library import UNSETTLED, UNTUNED, Library, encode, encode_all
from contextune._problem import Problem
from contextune._region import Option, RegionEntry, name_of, refuse_unfinished
from contextune._restore import RestoreOfCalls
from contextune._text import config_text, key_text

R = TypeVar("R")

_MOST_PROBLEMS = 10_000  # fewer than the library can number

# Each config in a row, judged by the median of its runs, each of which begins when the GPU has done the
# one before; there are no neighbours to refine it beside.
_REGION_OPTIONS: dict[str, Option] = {"schedule": "table", "selection": "median", "refine": False,
                                      "confirm": True, "align": "sample"}


class _DefaultFailed(Exception):
    """The default could not run before anything was measured; its cause is why."""


class AutotunedFunction(Generic[R]):
    """A function with configs, as autotune() makes it. Called like the function, without those.

    Any thread may call it, if the function allows that. Where several meet a new key at once, one tunes
    it and the others run the default meanwhile.
    """

    def __init__(self, function: Callable[..., R], config_space: Any, key_fn: Callable[..., Any] | None,
                 prune_fn: Callable[..., bool] | None, *, name: str | None, restore: Any,
                 repeatable: bool, allow_override: bool, options: Mapping[str, Option]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._name = name or name_of(function)
        self._space = ConfigSpace(self._name, config_space)
        self._key_fn = key_fn or _same_key
        self._prune_fn = prune_fn
        self._restore = RestoreOfCalls(function, restore)
        self._repeatable = repeatable
        self._allow_override = allow_override
        self._options = {**_REGION_OPTIONS, **options}
        self._positional = _positional_parameters(function)
        self._lock = threading.RLock()
        self._has_warned = False
        # _prepare() fills these.
        self._library: Library | None = None
        self._tunable: int | None = None
        self._configs: list[dict[str, Any]] = []
        self._parameters: frozenset[str] = frozenset()
        self._settled: Callable[[int | None, int], int] = _unsettled
        self._problems: dict[Any, Problem] = {}
        self._problems_of_groups: dict[Any, Problem] = {}

    @property
    def name(self) -> str:
        """Its name in logs and in the store."""
        return self._name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, autotune: bool = True, autotune_verbose: bool = False,
                 autotune_allow_arg_overwrite: bool = False, autotune_pg: Any = None,
                 **kwargs: Any) -> R:
        """Calls the function with the best config, which a call with a new key finds first.

        Args:
            autotune: False: with the default, and nothing is measured.
            autotune_verbose: Says on standard error what runs.
            autotune_allow_arg_overwrite: The call may set parameters of the configs by name.
            autotune_pg: A process group of PyTorch or an ncclComm_t whose ranks call it together, and
                have winners of their own. They are found under `contextune run`.
        """
        if self._tunable is not None and autotune and autotune_pg is None and not autotune_verbose and (
                not kwargs or self._parameters.isdisjoint(kwargs)):
            key = self._key_fn(*args, **kwargs)
            try:
                problem = self._problems.get(key)
            except TypeError:  # a list in it
                problem = self._problems.get(to_hashable(key))
            if problem is not None and problem.number != UNTUNED:
                config = self._settled(self._tunable, problem.number)
                if config != UNSETTLED:
                    return self._run_settled(problem, config, args, kwargs)
                return self._run_unsettled(problem, False, args, kwargs)
        return self._call_slowly(autotune, autotune_verbose, autotune_allow_arg_overwrite, autotune_pg,
                                 args, kwargs)

    def _run(self, config: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        return self._function(*args, **self._configs[config], **kwargs)

    def _run_settled(self, problem: Problem, config: int, args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> R:
        if config == problem.kept[0]:
            return self._function(*args, **self._configs[config], **kwargs)
        try:
            return self._function(*args, **self._configs[config], **kwargs)
        except Exception as error:
            value = self._run(problem.default, args, kwargs)  # or it was not the config
            self._drop(problem, config, error)
            return value

    def _drop(self, problem: Problem, config: int, error: Exception) -> None:
        """The config that the problem was settled on could not run: it does not run again."""
        library, call = self._known_library(), _library.Call()
        library.contextune_note_failure(encode(text_of_failure(error)))
        same = library.contextune_tunable_begin(self._tunable, problem.number,
                                                ctypes.byref(call)) == config
        library.contextune_tunable_end(ctypes.byref(call), 0 if same else 1)

    def _known_library(self) -> Library:
        assert self._library is not None
        return self._library

    def _refuse(self, what: str) -> NoReturn:
        raise Error(f"function '{self._name}': {what}")

    def _say(self, problem: Problem, what: str) -> None:
        key = f"{{{problem.text}}}" if problem.text else ""
        print(f"contextune: {self._name}{key}: {what}", file=sys.stderr)

    def _prepare(self) -> bool:
        """Everything before a problem can be looked for. False: nothing can be tuned now."""
        if self._tunable is not None:
            return True
        library = _library.library()
        if library is None:
            return False
        with self._lock:
            if self._tunable is not None:
                return True
            device = current_device()
            if self._space.depends_on_device and not device.is_known:
                return False
            configs = self._space.of(device)
            texts = list(map(config_text, configs))
            tunable = library.contextune_tunable_create(encode(self._name), encode_all(texts),
                                                        len(texts))
            if tunable is None or library.contextune_tunable_span(tunable) != 0:
                warn_once(f"contextune: function '{self._name}' is not tuned: {library.error()}")
                return False
            self._library = library
            self._configs = configs
            self._parameters = frozenset().union(*configs)
            self._settled = library.contextune_tunable_settled
            self._tunable = tunable  # last: a call that finds it looks at no lock
            return True

    def _call_slowly(self, tune: bool, verbose: bool, may_override: bool, group: Any,
                     args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        if not self._prepare():
            return self._run_untuned(may_override, args, kwargs)
        set_by_hand = self._set_by_hand(self._parameters, may_override, args, kwargs)
        communicator = None if group is None else communicator_of(group)
        of_caller = {name: value for name, value in kwargs.items() if name not in set_by_hand}
        problem = self._problem_of(communicator, args, of_caller)
        if verbose and problem.why_untuned:
            self._say(problem, f"runs its default: {problem.why_untuned}")
        known = self._settled_of(problem) if tune else problem.default
        if set_by_hand:
            base = problem.default if known == UNSETTLED else known
            config = {**self._configs[base], **{name: kwargs[name] for name in set_by_hand}}
            if verbose:
                self._say(problem, f"runs {config_text(config)}, as the call says")
            return self._function(*args, **config, **of_caller)
        if known == UNSETTLED:
            return self._run_unsettled(problem, verbose, args, kwargs)
        if verbose:
            self._say(problem, f"runs {config_text(self._configs[known])}")
        return self._run_settled(problem, known, args, kwargs)

    def _settled_of(self, problem: Problem) -> int:
        if problem.number == UNTUNED:
            return problem.default
        return self._settled(self._tunable, problem.number)

    def _run_untuned(self, may_override: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """With the first config that is wanted, where there is no library or no device."""
        configs = self._space.of(current_device())
        set_by_hand = self._set_by_hand(frozenset().union(*configs), may_override, args, kwargs)
        of_caller = {name: value for name, value in kwargs.items() if name not in set_by_hand}
        for config in configs:
            if self._prune_fn is None or self._prune_fn(config, *args, **of_caller):
                return self._function(*args, **{**config, **kwargs})
        self._refuse(f"prune_fn rules out all of its {len(configs)} configs; keep one")

    def _set_by_hand(self, parameters: frozenset[str], allowed: bool, args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> set[str]:
        """Parameters of the configs that a call sets. Raises Error unless it may."""
        found = set(parameters.intersection(kwargs))
        if found and not (allowed or self._allow_override):
            self._refuse(f"a call sets {_named(found)}, which is tuned; leave it out, or allow it with "
                         "autotune_allow_arg_overwrite=True")
        by_position = parameters.intersection(self._positional[:len(args)])
        if by_position:
            self._refuse(f"a call sets {_named(by_position)}, which is tuned, by position; put the tuned "
                         "parameters last, or set them by name with autotune_allow_arg_overwrite=True")
        return found

    def _problem_of(self, communicator: int | None, args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> Problem:
        key = hashable_key(self._key_fn(*args, **kwargs))
        table = self._problems if communicator is None else self._problems_of_groups
        at = key if communicator is None else (communicator, key)
        problem = table.get(at)
        if problem is not None:
            return problem
        with self._lock:
            if at in table:
                return table[at]
            problem = self._pruned(key_text(key), args, kwargs)
            if len(table) >= _MOST_PROBLEMS:
                return problem
            if communicator is not None:
                problem = problem.of_ranks(self._known_library(), communicator)
            assert self._tunable is not None
            table[at] = problem.told_to(self._known_library(), self._tunable)
            return table[at]

    def _replace(self, old: Problem, by: Problem) -> None:
        with self._lock:
            for table in (self._problems, self._problems_of_groups):
                for at, problem in table.items():
                    if problem is old:
                        table[at] = by
                        return

    def _pruned(self, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Problem:
        kept = [number for number, config in enumerate(self._configs)
                if self._prune_fn is None or self._prune_fn(config, *args, **kwargs)]
        if not kept:
            self._refuse(f"prune_fn rules out all of its {len(self._configs)} configs for '{text}'; keep "
                         "one")
        pruned = _library.Pruned(by_author=len(self._configs) - len(kept))
        return Problem(text, kept, pruned=pruned)

    def _run_unsettled(self, problem: Problem, verbose: bool, args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> R:
        place = self._known_library().contextune_current_place()
        if place == _library.PLACE_REGION:
            return self._launch(problem, lambda config: self._run(config, args, kwargs))
        if place != _library.PLACE_FREE:
            return self._run(problem.default, args, kwargs)
        value, problem, why = self._tune(problem, args, kwargs)
        if why and not self._has_warned:
            self._has_warned = True
            warn_once(f"contextune: {_in_python(why)}")
        if verbose:
            config = self._settled_of(problem)
            if why:
                self._say(problem, f"was not tuned: {_in_python(why)}")
            elif config != UNSETTLED:
                self._say(problem, f"was tuned, and runs {config_text(self._configs[config])}")
        return value

    def _launch(self, problem: Problem, run: Callable[[int], R]) -> R:
        """Runs the config that is due, and the default where that one cannot run."""
        library, call = self._known_library(), _library.Call()
        pointer = ctypes.byref(call)
        config = library.contextune_tunable_begin(self._tunable, problem.number, pointer)
        ran = True
        try:
            return run(config)
        except Exception as error:
            if config == problem.default:
                raise
            library.contextune_note_failure(encode(text_of_failure(error)))
            ran = False
            if library.contextune_tunable_end(pointer, 0) == 0:
                raise
        finally:
            if ran:
                library.contextune_tunable_end(pointer, 1)
        return run(problem.default)

    def _tune(self, first: Problem, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> tuple[R, Problem, str]:
        """The value of a run with what is best, the problem, and why it is not tuned."""
        failures: dict[int, str] = {}
        problem = first
        while True:
            if problem.number == UNTUNED:
                self._replace(first, problem)
                return self._run(problem.default, args, kwargs), problem, ""
            entry = RegionEntry(self._known_library(), tunable=self._tunable, problem=problem.number)
            entry.configure(self._options, repeatable=self._repeatable,
                            restore=lambda: self._restore.of(args, kwargs),
                            communicator=problem.communicator)
            trial = functools.partial(self._attempt, problem, failures, set(), args, kwargs)
            try:
                value = entry.run(lambda: self._launch(problem, trial))
            except _DefaultFailed as failed:
                if len(problem.kept) == 1:
                    raise self._nothing_runs(problem, failures) from failed.__cause__
                assert self._tunable is not None
                problem = problem.without_default().told_to(self._known_library(), self._tunable)
                continue
            if problem is not first:
                self._replace(first, problem)
            return value, problem, self._known_library().error() if entry.is_untuned else ""

    def _attempt(self, problem: Problem, failures: dict[int, str], ran: set[int],
                 args: tuple[Any, ...], kwargs: dict[str, Any], config: int) -> R:
        """Runs a config and notes why it failed."""
        try:
            value = self._run(config, args, kwargs)
        except Exception as error:
            failures.setdefault(config, text_of_failure(error))
            # Once the default ran, what it raises is about something else, and the caller's.
            if config == problem.default and config not in ran:
                raise _DefaultFailed from error
            raise
        ran.add(config)
        return value

    def _nothing_runs(self, problem: Problem, failures: dict[int, str]) -> Error:
        reasons = "".join(f"\n  {config_text(self._configs[config])}: {why}"
                          for config, why in failures.items())
        return Error(f"function '{self._name}': no config can run for '{problem.text}':{reasons}")


def _same_key(*_: Any, **__: Any) -> None:
    """Stands for an absent key_fn: all calls are one problem."""


def _in_python(why: str) -> str:
    """A sentence of the library, which names options as C++ does."""
    return why.replace(".repeatable", "repeatable=True").replace("what to .restore", "what to restore=")


def _unsettled(_: int | None, __: int) -> int:
    return UNSETTLED


def _positional_parameters(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in parameters
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _named(parameters: Iterable[str]) -> str:
    return " and ".join(f"'{name}'" for name in sorted(parameters))


def autotune(config_space: Any, key_fn: Callable[..., Any] | None = None,
             prune_fn: Callable[..., bool] | None = None, *, name: str | None = None,
             n_warmup: int = 5, n_repeat: int = 10, restore: Any = None, repeatable: bool = False,
             allow_override: bool = False,
             **options: Option) -> Callable[[Callable[..., R]], AutotunedFunction[R]]:
    """Makes a function of one that has configs, and finds the best for each key.

        @autotune([{"block": b} for b in (128, 64, 256)], lambda x: to_hashable(x), repeatable=True)
        def scale(x, block): ...

        scale(x)

    A call with a new key runs the function again and again, with each config, keeps the winner if it is
    shown to be faster than the default, and gives the value of one more run. Later calls run the winner.
    Inside a region that is tuned, the function takes part in its passes instead.

    Args:
        config_space: Configs, the default first: a list of dicts of the function's parameters, a dict
            of lists, which is their product, or a callable that returns one of these. The callable is
            given the Device if it takes an argument.
        key_fn: Says of a call's arguments what problem they are: numbers, texts, tuples of these, and
            to_hashable() of tensors. Absent: all calls are one problem.
        prune_fn: Is given a config and the call's arguments; true keeps the config.
        name: What logs and the store call it; by default the name of the function.
        n_warmup: Runs of each config that do not count.
        n_repeat: Runs of each config that do.
        restore: How to undo a run, where a second one does not leave the same, as contextual_autotune().
        repeatable: Running the function several times leaves the same as running it once. Where neither
            this nor `restore` is said, the default is run twice, and kept with a warning unless that is
            seen to leave the same in device memory. Under `contextune run` memory is seen; functions that
            return new tensors do not leave the same.
        allow_override: Calls may set parameters of the configs by name.
        options: Others of a region, as `margin=0.02`; a flag or a variable of the same name wins.
    """
    chosen: dict[str, Option] = {"n_warmup": n_warmup, "n_repeat": n_repeat, **options}

    def decorate(function: Callable[..., R]) -> AutotunedFunction[R]:
        refuse_unfinished(function, "autotune")
        return AutotunedFunction(function, config_space, key_fn, prune_fn, name=name, restore=restore,
                                 repeatable=repeatable, allow_override=allow_override, options=chosen)

    return decorate
