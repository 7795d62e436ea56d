"""Operations with several implementations."""

import ctypes
import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from contextune import _choice_library as c
from contextune import _library
from contextune._capture import note_capture
from contextune._choice_call import ChoiceCall
from contextune._code import version_of
from contextune._config_space import ConfigSpace
from contextune._device import Device
from contextune._errors import Error, warn_once
from contextune._function_library import UNSEEN
from contextune._group import group_of
from contextune._hashable import hashable_key
from contextune._library import Library, encode, encode_all
from contextune._region import refuse_unfinished
from contextune._text import config_text, key_text
from contextune._whole import whole

F = TypeVar("F", bound=Callable[..., Any])

_SELECT = {"deferred": 0, "immediate": 1}
_FUSION = {"auto": 0, "on": 1, "off": 2}

_At = tuple[int, str, Any]

_MOST_PROBLEMS = 10_000
_kept_alive: list[Any] = []  # callbacks, which the library may call as long as the process lives


@dataclass(frozen=True)
class ChoiceProblem:
    """A problem, as `supports` and `make_inputs` see it."""
    bytes: int = 0  #: how much; 0: it has no size
    type: str = ""  #: of the elements, "f32"
    ranks: int = 1
    key: str = ""  #: what else makes it different, "key=4096"


class TimingState(enum.IntEnum):
    """The outcome of one way to do a problem."""
    MEASURED = 0
    MISSING = 1  #: not measured, or not yet
    UNSUPPORTED = 2  #: or ruled out
    WRONG = 3  #: computes something else than the default
    FAILED = 4  #: could not be run


@dataclass(frozen=True)
class ChoiceTiming:
    """How long one way to do a problem takes."""
    implementation: str
    config: dict[str, Any]  #: its own parameters
    seconds: float  #: median of the samples; 0: there are none
    samples: int
    state: TimingState
    is_winner: bool


@dataclass
class _Implementation:
    name: str
    function: Callable[..., Any]
    configs: list[dict[str, Any]]
    fusion: str
    supports: Callable[[ChoiceProblem], bool] | None
    abandon: Callable[[], object] | None


class Choice:
    """An operation with several implementations, each with configs of its own.

        all_reduce = Choice("all_reduce", size=lambda x, out: x.nbytes, buffers=lambda x, out: [out])

        @all_reduce.add("nccl")                         # the first is the default
        def with_nccl(x, out): ...

        @all_reduce.add("ring", {"chunk": [65536, 262144]}, supports=lambda p: p.bytes >= 65536)
        def with_a_ring(x, out, chunk): ...

        all_reduce(x, out)

    Which one is best is found for each problem when it is first called: in the passes of a region that
    is repeated, else at once and alone. Each is first compared with the default on the same inputs, and
    one that computes something else is never chosen. Any thread may call it, if the implementations
    allow that; with several ranks, one thread at a time.

    Args:
        name: What logs and the store call it.
        size: How many bytes a call is about. Sizes in one of `buckets` are one problem.
        type: The type of a call's elements, as a text.
        key: What else makes two calls different problems, as the key function of autotune().
        buffers: The device memory of a call: tensors that are its outputs, or a ChoiceMemory.
        make_inputs: The arguments of a call on memory of its own, for a ChoiceProblem, as a tuple.
        select: "deferred", or "immediate": searched alone even in a region.
        fusion: "auto"; "on": none that is unfused, where a fused one can do the problem; "off".
        implementations: Names of those that may run, separated by commas; empty: all.
        ranks: Processes that do it together; 0: as many as `communicator` has, or this one alone.
        communicator: A process group of PyTorch, an ncclComm_t, or numbers of ranks, which do it.
        tolerance: By how much outputs may differ, "f32:1e-5"; empty: not in a bit.
        repeatable: Doing it again changes nothing but its outputs.
        calls_per_pass: Calls in a row in each pass, where it is searched alone; needs `repeatable`.
        n_warmup, n_repeat: Calls of each config that do not count, and that do; 0: as the region.
        buckets: "pow2", "exact", or upper edges in bytes, "4K,64K,1M".
        unseen: What other sizes do outside of regions: "tune", "nearest" or "default".
        nearest_within: How many times smaller or larger the nearest size may be.
    """

    def __init__(self, name: str, *, size: Callable[..., int] | None = None,
                 type: Callable[..., str] | None = None, key: Callable[..., Any] | None = None,
                 buffers: Callable[..., Any] | None = None,
                 make_inputs: Callable[[ChoiceProblem], tuple[Any, ...]] | None = None,
                 select: str = "deferred", fusion: str = "auto", implementations: str = "",
                 ranks: int = 0, communicator: Any = None, tolerance: str = "",
                 repeatable: bool = False, calls_per_pass: int = 1, n_warmup: int = 0,
                 n_repeat: int = 0, buckets: str = "pow2", unseen: str = "tune",
                 nearest_within: int = 4) -> None:
        if not isinstance(name, str) or not name:
            raise Error(f"a choice is named {name!r}; give it a text that is not empty")
        self.name = name
        self._size, self._type, self._key = size, type, key
        self._buffers, self._make_inputs = buffers, make_inputs
        self._communicator = communicator
        self._ranks = self._whole("ranks", ranks)
        self._options = c.Options(
            size=ctypes.sizeof(c.Options), select=self._word("select", select, _SELECT),
            fusion=self._word("fusion", fusion, _FUSION), ranks=self._ranks, tolerance=encode(tolerance),
            repeatable=repeatable, n_warmup=self._whole("n_warmup", n_warmup),
            n_repeat=self._whole("n_repeat", n_repeat), buckets=encode(buckets),
            unseen=self._word("unseen", unseen, UNSEEN),
            nearest_within=self._whole("nearest_within", nearest_within),
            calls_per_pass=self._whole("calls_per_pass", calls_per_pass),
            implementations=encode(implementations))
        self._implementations: list[_Implementation] = []
        self._lock = threading.RLock()
        self._handle: int | None = None
        self._numbers: dict[Any, int] = {}

    def __deepcopy__(self, _: Any) -> "Choice":
        """Itself, as of functions: an object that has it may be copied."""
        return self

    def _refuse(self, what: str) -> Error:
        return Error(f"choice '{self.name}': {what}")

    def _word(self, option: str, given: str, words: dict[str, int]) -> int:
        if given not in words:
            raise self._refuse(f"{option} is {given!r}; it may be {', '.join(words)}")
        return words[given]

    def _whole(self, option: str, given: Any, bits: int = 31) -> int:
        return whole(given, f"choice '{self.name}': {option}", bits)

    def add(self, name: str, configs: Any = None, *, fused: bool | None = None,
            supports: Callable[[ChoiceProblem], bool] | None = None,
            abandon: Callable[[], object] | None = None
            ) -> Callable[[F], F]:
        """Adds the function below it as an implementation. The first is the default.

        It is called with the arguments of the call, and the parameters of its config by name. It fails
        by raising. Nothing runs; all are added before the first call.

        Args:
            configs: Its config space, as that of autotune(); absent: it has one way to run.
            fused: Whether it is fused with other work; see `fusion`.
            supports: Whether it can do the problem, on all ranks alike.
            abandon: Makes its call return and its work end, where another rank failed for which it
                may wait. Perhaps from another thread.
        """
        if not isinstance(name, str) or not name or any(one.name == name for one in
                                                        self._implementations):
            raise self._refuse(f"an implementation is named {name!r}; give each a name of its own")
        if self._handle is not None:
            raise self._refuse(f"'{name}' comes after the first call; add all before it")
        fusion = "auto" if fused is None else "on" if fused else "off"

        def decorate(function: F) -> F:
            refuse_unfinished(function, "add")
            space = [{}] if configs is None else ConfigSpace(f"{self.name}.{name}", configs).of(Device())
            self._implementations.append(
                _Implementation(name, function, space, fusion, supports, abandon))
            return function

        return decorate

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Does the operation. Raises what the implementation raises that did the caller's work."""
        if not self._implementations:
            raise self._refuse("it has no implementation; add one")
        library = _library.library()
        if library is None or not self._declare(library):
            return self._run(0, 0, args, kwargs)
        note_capture(library)
        at = self._at(args, kwargs)
        number = self._number_of(library, at)
        call = ChoiceCall(library, lambda way, config: self._run(way, config, args, kwargs))
        wants = library.contextune_choice_wants(self._handle, number)
        if wants != c.WANT_CALL and self._buffers is not None:
            call.name(self._buffers(*args, **kwargs))
        alone = self._call_alone(library, at) if wants == c.WANT_ALONE else None
        with call:
            if alone is None:
                library.contextune_choice_call(self._handle, number, ctypes.byref(call.struct), None)
            else:
                with alone:
                    library.contextune_choice_call(self._handle, number, ctypes.byref(call.struct),
                                                   ctypes.byref(alone.struct))
        return call.take()

    def timings(self, bytes: int = 0, type: str = "", key: Any = None) -> list[ChoiceTiming]:
        """How long each way takes for a problem, the default first.

        Measures it, on what make_inputs gives, where that was not done yet. Empty where nothing is known
        and nothing can be measured: before CUDA is initialised, and where nothing is tuned.
        """
        library = _library.library()
        if library is None or not self._implementations or not self._declare(library):
            return []
        at = (self._whole("bytes", bytes, 64), type, hashable_key(key))
        number = self._number_of(library, at)
        if library.contextune_current_place() == _library.PLACE_FREE and \
                library.contextune_choice_wants(self._handle, number) != c.WANT_CALL:
            alone = self._call_alone(library, at)
            if alone is not None:
                with alone:
                    library.contextune_choice_measure(self._handle, number, ctypes.byref(alone.struct))
        count = library.contextune_choice_timings(self._handle, number, None, 0)
        found = (c.Timing * count)()
        count = min(count, library.contextune_choice_timings(self._handle, number, found, count))
        return [self._timing(one) for one in found[:count]]

    def settled(self, bytes: int = 0, type: str = "", key: Any = None) -> tuple[int, int] | None:
        """The implementation and the config that a call for a problem runs here, by number.

        In a region that has finished it is the region's winner. None: that is still to be searched.
        The default, (0, 0), also where nothing is tuned.
        """
        library = _library.library()
        if library is None or not self._implementations or not self._declare(library):
            return 0, 0
        way, config = ctypes.c_size_t(), ctypes.c_size_t()
        known = library.contextune_choice_settled(*self.numbers(bytes, type, key), ctypes.byref(way),
                                                  ctypes.byref(config))
        return (way.value, config.value) if known == 1 else None

    def numbers(self, bytes: int = 0, type: str = "", key: Any = None) -> tuple[int, int]:
        """The choice and a problem as the library knows them, once it was called."""
        library = _library.library()
        if library is None or self._handle is None:
            raise self._refuse("it was not called yet, so the library does not know it")
        return self._handle, self._number_of(library, (bytes, type, hashable_key(key)))

    def _timing(self, of: Any) -> ChoiceTiming:
        way = self._implementations[of.implementation]
        return ChoiceTiming(way.name, way.configs[of.config], of.seconds, of.samples,
                            TimingState(of.state), bool(of.is_winner))

    def _run(self, way: int, config: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        implementation = self._implementations[way]
        return implementation.function(*args, **implementation.configs[config], **kwargs)

    def _call_alone(self, library: Library, at: _At) -> ChoiceCall | None:
        if self._make_inputs is None:
            return None
        inputs = self._make_inputs(self._problem(at))
        call = ChoiceCall(library, lambda way, config: self._run(way, config, inputs, {}))
        if self._buffers is not None:
            call.name(self._buffers(*inputs))
        return call

    def _at(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _At:
        """Bytes, type and key, by which the problem of a call is looked up."""
        size = 0 if self._size is None else self._whole("the size of a call",
                                                        int(self._size(*args, **kwargs)), 64)
        kind = "" if self._type is None else str(self._type(*args, **kwargs)).removeprefix("torch.")
        key = None if self._key is None else hashable_key(self._key(*args, **kwargs))
        return size, kind, key

    def _problem(self, at: _At) -> ChoiceProblem:
        size, kind, key = at
        return ChoiceProblem(size, kind, self._ranks or 1, key_text(key))

    def _number_of(self, library: Library, at: _At) -> int:
        number = self._numbers.get(at)
        if number is None:
            problem = self._problem(at)
            given = c.Problem(size=ctypes.sizeof(c.Problem), bytes=problem.bytes,
                              type=encode(problem.type), ranks=self._ranks, key=encode(problem.key))
            number = int(library.contextune_choice_problem(self._handle, ctypes.byref(given)))
            if len(self._numbers) < _MOST_PROBLEMS:
                self._numbers[at] = number
        return number

    def _declare(self, library: Library) -> bool:
        """Tells the library of it. False: it does not take it, and the default runs."""
        if self._handle is not None:
            return True
        with self._lock:
            if self._handle is not None:
                return True
            if self._communicator is not None:
                group = group_of(self._communicator)
                self._options.communicator = group.communicator
                self._options.group = encode(group.ranks) or None
            handle = library.contextune_choice_create(encode(self.name), ctypes.byref(self._options))
            if handle is None:
                raise Error(library.error())
            for way in self._implementations:
                if library.contextune_choice_add(handle, ctypes.byref(self._struct_of(way))) != 0:
                    warn_once(f"contextune: choice '{self.name}' runs its default: {library.error()}")
                    return False
            self._handle = handle
            return True

    def _struct_of(self, way: _Implementation) -> c.Implementation:
        texts = encode_all(list(map(config_text, way.configs)))
        struct = c.Implementation(size=ctypes.sizeof(c.Implementation), name=encode(way.name),
                                  configs=texts, num_configs=len(texts), fusion=_FUSION[way.fusion],
                                  version=encode(version_of(way.function)))
        if way.supports is not None:
            struct.supports = _supports_call(way.supports)
        if way.abandon is not None:
            struct.abandon = _abandon_call(way.abandon)
        _kept_alive.append(struct)
        return struct


def _supports_call(supports: Callable[[ChoiceProblem], bool]) -> Any:
    def answer(_: Any, problem: Any) -> int:
        try:
            of = problem.contents
            return int(bool(supports(ChoiceProblem(of.bytes, _library.decode(of.type), of.ranks,
                                                   _library.decode(of.key)))))
        except Exception:  # one that cannot say is not taken
            return 0

    return c.SupportsCall(answer)


def _abandon_call(abandon: Callable[[], object]) -> Any:
    def ends(_: Any) -> None:
        try:
            abandon()
        except Exception:  # whether the work ended is looked at afterwards
            pass

    return c.AbandonCall(ends)
