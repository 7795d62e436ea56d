"""A whole function that has configs."""

import ctypes
import functools
import inspect
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NoReturn, TypeVar, overload

from contextune import _function_library as c
from contextune import _library
from contextune._capture import note_capture
from contextune._code import version_of
from contextune._config_space import ConfigSpace
from contextune._device import Device, current_device
from contextune._errors import Error, text_of_failure, warn_once
from contextune._function_call import FunctionCall
from contextune._function_library import UNSEEN, UNSETTLED, UNTUNED
from contextune._group import Group, group_of
from contextune._hashable import hashable_key
from contextune._library import Library, encode, encode_all
from contextune._name import name_of
from contextune._region import refuse_unfinished
from contextune._region_setup import Option, RegionSetup
from contextune._restore import RestoreOfCalls
from contextune._text import config_text, key_text
from contextune._whole import whole

R = TypeVar("R")

_MOST_PROBLEMS = 10_000  # fewer than the library can number


class AutotunedFunction(Generic[R]):
    """A function with configs, as autotune() makes it. Called like the function, without those.

    Any thread may call it, if the function allows that. Where several meet a new key at once, one tunes
    it and the others run the default meanwhile.
    """

    def __init__(self, function: Callable[..., R], config_space: Any, key_fn: Callable[..., Any] | None,
                 prune_fn: Callable[..., bool] | None, *, name: str | None, restore: Any,
                 repeatable: bool, allow_override: bool, n_warmup: int, n_repeat: int,
                 size: Callable[..., int] | None, buckets: str, unseen: str, nearest_within: int,
                 options: Mapping[str, Option]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._name = name or name_of(function)
        if not isinstance(self._name, str):
            raise Error(f"a function is named {name!r}; give it a text")
        self._space = ConfigSpace(self._name, config_space)
        self._key_fn = key_fn or _same_key
        self.prune_fn = prune_fn
        self._restore = RestoreOfCalls(function, restore)
        self._allow_override = allow_override
        n_warmup, n_repeat, nearest_within = (
            whole(value, f"function '{self._name}': {option}") for option, value in
            (("n_warmup", n_warmup), ("n_repeat", n_repeat), ("nearest_within", nearest_within)))
        if n_repeat < 1:
            self._refuse(f"n_warmup is {n_warmup} and n_repeat is {n_repeat}; they must be at least 0 and 1")
        if unseen not in UNSEEN:
            self._refuse(f"unseen is {unseen!r}; it may be {', '.join(UNSEEN)}")
        self._size = size
        # Setting parameters by hand is refused here, where it is.
        self._told = {"n_warmup": n_warmup, "n_repeat": n_repeat, "repeatable": repeatable,
                      "buckets": encode(buckets), "unseen": UNSEEN[unseen],
                      "nearest_within": nearest_within, "allow_override": True}
        self._options = options
        self._positional = _positional_parameters(function)
        self._lock = threading.RLock()
        self._has_warned = False
        self._configs: list[dict[str, Any]] = []
        self._parameters: frozenset[str] = frozenset()
        if self._space.is_listed:
            self._list(self._space.of(Device()))
        # _declare() fills these.
        self._library: Library | None = None
        self._handle: int | None = None
        self._settled: Callable[[int | None, int], int] = _unsettled
        self._problems: dict[Any, int] = {}

    @property
    def name(self) -> str:
        """Its name in logs and in the store."""
        return self._name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "AutotunedFunction[R]": ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., R]:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        """It is copied and pickled as functions are: it stays the same one, and goes by its name."""
        name: str = getattr(self, "__qualname__", self._name)
        return name

    def __call__(self, /, *args: Any, autotune: bool = True, autotune_verbose: bool = False,
                 autotune_allow_arg_overwrite: bool = False, autotune_pg: Any = None,
                 **kwargs: Any) -> R:
        """Calls the function with the best config, which a call with a new key finds first.

        Args:
            autotune: False: with the default, and nothing is measured.
            autotune_verbose: Says on standard error what runs.
            autotune_allow_arg_overwrite: The call may set parameters of the configs by name.
            autotune_pg: A process group of PyTorch, an ncclComm_t, or numbers of ranks in the job, which
                call it together and have winners of their own. They are found under `contextune run`.
        """
        if self._handle is not None and autotune and autotune_pg is None and not autotune_verbose and (
                not kwargs or self._parameters.isdisjoint(kwargs)):
            key = self._key_fn(*args, **kwargs)
            if self._size is not None:
                key = key, self._size(*args, **kwargs)
            try:
                problem = self._problems.get(key, UNTUNED)
            except TypeError:  # a list in it
                problem = UNTUNED
            if problem != UNTUNED:
                config = self._settled(self._handle, problem)
                if config != UNSETTLED:
                    return self._run_settled(problem, config, args, kwargs)
        return self._call_slowly(autotune, autotune_verbose, autotune_allow_arg_overwrite, autotune_pg,
                                 args, kwargs)

    def run(self, config: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Runs it with a config, by its number."""
        return self._function(*args, **self._configs[config], **kwargs)

    def _run_settled(self, problem: int, config: int, args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> R:
        try:
            return self._function(*args, **self._configs[config], **kwargs)
        except Exception as error:
            library = self._known_library()
            default = library.contextune_function_default(self._handle, problem)
            if config == default:
                raise
            value = self.run(default, args, kwargs)  # or it was not the config
            library.contextune_note_failure(encode(text_of_failure(error)))
            library.contextune_function_drop(self._handle, problem, config)
            return value

    def _known_library(self) -> Library:
        assert self._library is not None
        return self._library

    def _refuse(self, what: str) -> NoReturn:
        raise Error(f"function '{self._name}': {what}")

    def _list(self, configs: list[dict[str, Any]]) -> list[str]:
        """Takes the configs, and gives their texts."""
        self._configs = configs
        self._parameters = frozenset().union(*configs)
        return list(map(config_text, configs))

    def _declare(self) -> bool:
        """Tells the library of it. False: there is none, or it does not take the function."""
        if self._handle is not None:
            return True
        library = _library.library()
        if library is None:
            return False
        with self._lock:
            if self._handle is not None:
                return True
            options = c.Options(size=ctypes.sizeof(c.Options), version=encode(version_of(self._function)),
                                **self._told)
            if self._space.is_listed:
                options.configs = encode_all(list(map(config_text, self._configs)))
                options.num_configs = len(self._configs)
            handle = library.contextune_function_create(encode(self._name), ctypes.byref(options))
            if handle is None:
                warn_once(f"contextune: function '{self._name}' is not tuned: {library.error()}")
                return False
            self._library = library
            self._settled = library.contextune_function_settled
            self._handle = handle  # last: a call that finds it looks at no lock
            return True

    def _call_slowly(self, tune: bool, verbose: bool, may_override: bool, group: Any,
                     args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        if not self._declare():
            return self._run_untuned(may_override, args, kwargs)
        note_capture(self._known_library())
        if not self._configs:
            self._list(self._space.of(current_device()))
        by_hand = self._set_by_hand(may_override, args, kwargs)
        of_caller = {name: value for name, value in kwargs.items() if name not in by_hand}
        problem = self._problem_of(group_of(group), args, of_caller)
        call = FunctionCall(self._known_library(), self, args, of_caller, by_hand, is_verbose=verbose,
                            is_untuned=not tune)
        assert self._handle is not None
        value: R = call.run(self._handle, problem)
        if call.why_untuned and not self._has_warned:
            self._has_warned = True
            warn_once(f"contextune: {call.why_untuned}")
        return value

    def run_changed(self, base: int, by_hand: Mapping[str, Any], args: tuple[Any, ...],
                    kwargs: dict[str, Any]) -> R:
        """Runs it with a config in which parameters are set by hand."""
        return self._function(*args, **{**self._configs[base], **by_hand}, **kwargs)

    def keeps(self, config: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Asks prune_fn."""
        return self.prune_fn is None or bool(self.prune_fn(dict(self._configs[config]), *args, **kwargs))

    def list_configs(self) -> list[str]:
        """Lists the configs of the current device, as texts."""
        return self._list(self._space.of(current_device()))

    def set_up(self, setup: RegionSetup, entry: Any, args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> None:
        """Sets up the entry in which it is tuned."""
        setup.tell(entry, self._options, restore=self._restore.of(args, kwargs))

    def _run_untuned(self, may_override: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """With the first config that is wanted, where there is no library."""
        if not self._configs:
            self._list(self._space.of(current_device()))
        by_hand = self._set_by_hand(may_override, args, kwargs)
        of_caller = {name: value for name, value in kwargs.items() if name not in by_hand}
        for config in self._configs:
            if self.prune_fn is None or self.prune_fn(dict(config), *args, **of_caller):
                return self._function(*args, **(config | kwargs))
        self._refuse(f"no config can run: prune_fn rules out all {len(self._configs)}")

    def _set_by_hand(self, allowed: bool, args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> dict[str, Any]:
        """Parameters of the configs that a call sets. Raises Error unless it may."""
        found = {name: value for name, value in kwargs.items() if name in self._parameters}
        if found and not (allowed or self._allow_override):
            self._refuse(f"a call sets {_named(found)}, which is tuned; leave it out, or allow it with "
                         "autotune_allow_arg_overwrite=True")
        by_position = self._parameters.intersection(self._positional[:len(args)])
        if by_position:
            self._refuse(f"a call sets {_named(by_position)}, which is tuned, by position; put the tuned "
                         "parameters last, or set them by name with autotune_allow_arg_overwrite=True")
        return found

    def _problem_of(self, group: Group, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        key = hashable_key(self._key_fn(*args, **kwargs))
        size = None if self._size is None else self._size(*args, **kwargs)
        if size is not None:
            size = whole(size, f"function '{self._name}': the size of a call", 64)
        at = key if size is None else (key, size)
        if group != Group():
            at = group, at
        number = self._problems.get(at)
        if number is None:
            library = self._known_library()
            given = c.Key(size=ctypes.sizeof(c.Key), key=encode(key_text(key)),
                          has_size=size is not None, of_size=size or 0,
                          communicator=group.communicator, group=encode(group.ranks) or None)
            number = int(library.contextune_function_problem(self._handle, ctypes.byref(given)))
            if len(self._problems) < _MOST_PROBLEMS:
                self._problems[at] = number
        return number


def _same_key(*_: Any, **__: Any) -> None:
    """Stands for an absent key_fn: all calls are one problem."""


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
             n_warmup: int = 5, n_repeat: int = 10, restore: Any = None, repeatable: bool = True,
             allow_override: bool = False, size: Callable[..., int] | None = None,
             buckets: str = "pow2", unseen: str = "tune", nearest_within: int = 4,
             **options: Option) -> Callable[[Callable[..., R]], AutotunedFunction[R]]:
    """Makes a function of one that has configs, and finds the best for each key.

        @autotune([{"block": b} for b in (128, 64, 256)], lambda x: to_hashable(x))
        def scale(x, block): ...

        scale(x)

    A call with a new key runs the function again and again, with each config, keeps the winner if it is
    shown to be faster than the default, and gives the value of one more run. Later calls run the winner.
    A function that changes what it reads says `restore=` or `repeatable=False`.
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
        repeatable: Running the function several times leaves the same as running it once, or `restore`
            makes it so. Where it is False and there is no `restore`, the default is run twice, and kept
            with a warning unless that is seen to leave the same in device memory. Memory is seen under
            `contextune run`, if no other thread may use the GPU, as those of PyTorch may. Functions that
            return new tensors do not leave the same.
        allow_override: Calls may set parameters of the configs by name.
        size: The size of a call's problem, a whole number: sizes in one of `buckets` are one problem.
        buckets: "pow2", "exact", or upper edges, "4K,64K,1M".
        unseen: What a size does in whose bucket nothing was measured: "tune", "nearest" or "default".
        nearest_within: How many times smaller or larger the nearest size may be.
        options: Others of a region, as `margin=0.02`; a flag or a variable of the same name wins.
    """
    def decorate(function: Callable[..., R]) -> AutotunedFunction[R]:
        refuse_unfinished(function, "autotune")
        return AutotunedFunction(function, config_space, key_fn, prune_fn, name=name, restore=restore,
                                 repeatable=repeatable, allow_override=allow_override,
                                 n_warmup=n_warmup, n_repeat=n_repeat, size=size, buckets=buckets,
                                 unseen=unseen, nearest_within=nearest_within, options=options)

    return decorate
