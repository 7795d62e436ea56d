"""A kernel of `triton.autotune` as a tunable, with a problem for each of its keys."""

import ctypes
import functools
import hashlib
import inspect
from dataclasses import dataclass, field
from typing import Any

from contextune._errors import Error, warn_once
from contextune._library import encode, encode_all
from contextune._name import name_of
from contextune._text import config_text, part_text, quoted
from contextune._triton_compile import Compilation, text_of_compilation
from contextune._triton_library import FAILED, MEASURED, UNSETTLED, UNTUNED, Pruned, Timing, Tunables

_type_text = functools.lru_cache(maxsize=1024)(str)
_absent = object()


@dataclass(eq=False)
class TritonProblem:
    """A kernel at one key of Triton's. Configs have the numbers of the tunable."""
    key: tuple[Any, ...]  #: as Triton has it
    kept: list[int]  #: what pruning leaves, in its order, the default first
    configs: dict[int, Any]  #: those, as pruning gives them
    parameters: dict[int, dict[str, Any]]  #: all_kwargs() of each
    has_hooks: bool  #: of configs
    tunable: int = 0
    number: int = UNTUNED
    failures: dict[int, str] = field(default_factory=dict)  #: of those that cannot be launched
    compilation: Compilation | None = None  #: of configs that no launch has waited for
    stored: int | None = None  #: an earlier process has measured it: its winner, once known, else default
    is_published: bool = False  #: Triton has its winner

    @property
    def default(self) -> int:
        return self.kept[0]

    def finish_compilation(self) -> None:
        """Before a launch that may be a trial."""
        if self.compilation is not None:
            failures = self.compilation.finish()
            self.failures = {number: text_of_compilation(error) for number, error in failures.items()}
            self.compilation = None

    def finish_config(self, number: int) -> None:
        """Before a launch of it, while others may not be compiled."""
        if self.compilation is None:
            return
        if self.stored == self.default:
            self.stored = number  # ranks have to agree on a winner first
        if number not in (self.default, self.stored):
            self.finish_compilation()
        elif (failure := self.compilation.finish_one(number)) is not None:
            self.failures[number] = text_of_compilation(failure)


class TritonKernel:
    """What is known of an Autotuner. Its calls are those of Triton, which allows one thread at a time."""

    def __init__(self, tunables: Tunables, tuner: Any) -> None:
        self._tunables = tunables
        self.tuner = tuner
        self.name = name_of(tuner.base_fn)
        self.arg_names = tuner.arg_names
        self._known_names = frozenset(tuner.arg_names)
        self._keys = tuple(tuner.keys)
        self.has_hooks = any(config.pre_hook is not None for config in tuner.configs)
        self.problems: dict[tuple[Any, ...], TritonProblem | None] = {}
        self._tunable_of: dict[tuple[str, ...], int] = {}
        if tuner._do_bench is not None:
            warn_once(f"contextune: kernel '{self.name}': do_bench, warmup, rep and use_cuda_graph of "
                      "triton.autotune are not supported in a region, where launches are timed as the "
                      "program makes them; outside of regions they count")

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of the Autotuner is not known yet."""
        return type(None), ()

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The kernel's own arguments by name, in the order in which Triton looks at them."""
        named = dict(zip(self.arg_names, args))
        known = self._known_names
        for name, value in kwargs.items():
            if name in known:
                named[name] = value
        return named

    def key_of(self, named: dict[str, Any]) -> tuple[Any, ...]:
        """Triton's own key: its launches outside of regions find their winner by it."""
        key = [named[name] for name in self._keys if name in named]
        for value in named.values():
            kind = getattr(value, "dtype", _absent)
            if kind is not _absent:
                key.append(_type_text(kind))
        return tuple(key)

    def meet(self, key: tuple[Any, ...], named: dict[str, Any], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> TritonProblem | None:
        """The problem of a key that was not seen before; None where there is nothing to tune.

        Prunes the configs and begins to compile those that are left, of which it waits for the default.
        Raises what Triton's launch would raise: of pruning, and where no config can run.
        """
        kept = self._pruned(args, kwargs)
        problem = None
        try:
            problem = self._told(key, kept, named)
        except Error as error:
            warn_once(f"contextune: kernel '{self.name}' is left to Triton: {error}")
        if problem is not None:
            self._compile(problem, named, args, kwargs)
            if not self._keep(problem):
                problem = None
        self.problems[key] = problem
        return problem

    def default_of(self, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The config that a key runs before there is a winner."""
        problem = self.problems.get(key)
        return self._pruned(args, kwargs)[0] if problem is None else problem.configs[problem.default]

    def _pruned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        tuner = self.tuner
        tuner.nargs = dict(zip(self.arg_names, args))
        try:
            return list(tuner.prune_configs(kwargs))
        finally:
            tuner.nargs = None

    def _told(self, key: tuple[Any, ...], kept: list[Any], named: dict[str, Any]) -> TritonProblem | None:
        """A problem with a number of the library's."""
        by_text: dict[str, Any] = {}
        for config in kept:
            by_text.setdefault(config_text(config.all_kwargs()), config)
        if len(by_text) < 2:
            return None
        all_texts = list(dict.fromkeys(config_text(config.all_kwargs()) for config in self.tuner.configs))
        if not by_text.keys() <= set(all_texts):  # pruning may make configs of its own
            all_texts = list(by_text)
        numbers = {text: number for number, text in enumerate(all_texts)}
        configs = {numbers[text]: config for text, config in by_text.items()}
        problem = TritonProblem(key, list(configs), configs,
                                {number: config.all_kwargs() for number, config in configs.items()},
                                self.has_hooks)
        problem.tunable = self._tunable(all_texts)
        problem.number = self._tunables.tunable_key(problem.tunable, encode(self._key_text(named)))
        return problem

    def _key_text(self, named: dict[str, Any]) -> str:
        parts = [f"{name}={part_text(named[name])}" for name in self._keys if name in named]
        types = [_type_text(value.dtype).removeprefix("torch.") for value in named.values()
                 if hasattr(value, "dtype")]
        return " ".join(parts + ["dtypes=" + quoted(":".join(types))] if types else parts)

    def _tunable(self, texts: list[str]) -> int:
        known = self._tunable_of.get(tuple(texts))
        if known is not None:
            return known
        library = self._tunables
        version = _version_of(self.tuner)
        for name in (self.name, f"{self.name}:{version[:8]}"):
            tunable = library.tunable_create(encode(name), encode_all(texts), len(texts))
            if tunable is None:
                raise Error(library.error())
            # Another kernel of that name and with those configs has other code.
            if _versions.setdefault(tunable, version) == version:
                break
        library.tunable_version(tunable, encode(version))
        if self.has_hooks:
            library.tunable_span(tunable)  # a launch and what the hook does before it
        self._tunable_of[tuple(texts)] = tunable
        return int(tunable)

    def _compile(self, problem: TritonProblem, named: dict[str, Any], args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> None:
        tuner = self.tuner
        compile_only = {**kwargs, "warmup": True}

        def start(number: int) -> Any:
            config, parameters = problem.configs[number], problem.parameters[number]
            if config.pre_hook is not None:  # it may change descriptors, for which a kernel is compiled
                config.pre_hook({**named, **kwargs, **parameters})
            return tuner.fn.run(*args, **compile_only, **parameters)

        problem.compilation = compilation = Compilation(problem.kept, start)
        default = compilation.first_that_runs()
        if default is None:
            raise compilation.failures[problem.default]
        # The others stay in their order, which ranks have to agree on.
        problem.kept.sort(key=lambda number: number != default)

    def _keep(self, problem: TritonProblem) -> bool:
        kept = (ctypes.c_uint32 * len(problem.kept))(*problem.kept)
        pruned = Pruned(by_author=max(0, len(self.tuner.configs) - len(problem.kept)))
        return bool(self._tunables.tunable_keep(problem.tunable, problem.number, kept, len(kept),
                                                ctypes.byref(pruned)) == 0)

    def note_stored(self, problem: TritonProblem) -> None:
        """After begin: compiles no more than it runs where an earlier process has measured a new problem."""
        if problem.compilation is not None and any(
                one.state == MEASURED for one in self._timings_of(problem)):
            problem.stored = problem.default
            problem.compilation.pause()

    def publish(self, problem: TritonProblem) -> None:
        """Gives Triton the winner, once there is one."""
        library, tuner = self._tunables, self.tuner
        winner = library.tunable_settled(problem.tunable, problem.number)
        timings = self._timings_of(problem)
        if winner == UNSETTLED or not any(one.is_winner and one.state == MEASURED for one in timings):
            return  # a search that has ended early leaves nothing that was shown
        problem.is_published = True
        tuner.cache[problem.key] = tuner.best_config = problem.configs[winner]
        tuner.configs_timings = {
            problem.configs[one.config]: 3 * [one.seconds * 1e3 if one.state == MEASURED else float("inf")]
            for one in timings if one.config in problem.configs and one.state in (MEASURED, FAILED)}

    def _timings_of(self, problem: TritonProblem) -> list[Any]:
        library = self._tunables
        count = library.tunable_timings(problem.tunable, problem.number, None, 0)
        timings = (Timing * count)()
        known: int = library.tunable_timings(problem.tunable, problem.number, timings, count)
        return list(timings)[:known]


def run_config(tuner: Any, config: Any, parameters: dict[str, Any], named: dict[str, Any],
               args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """As Autotuner.run launches it."""
    tuner.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**named, **kwargs, **parameters})
    return tuner.fn.run(*args, **kwargs, **parameters)


_versions: dict[int, str] = {}  # by tunable


def _version_of(tuner: Any) -> str:
    """A hash of the kernel's source and of what it calls."""
    kernel = tuner.fn
    while not hasattr(kernel, "cache_key") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    found = getattr(kernel, "cache_key", None)
    if found is None:
        try:
            found = inspect.getsource(tuner.base_fn)
        except (OSError, TypeError):
            return ""
    return hashlib.sha256(str(found).encode()).hexdigest()[:16]
