"""A function that is repeated until what it launches is tuned."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from contextune._errors import Error
from contextune._name import name_of
from contextune._region import Region, refuse_unfinished
from contextune._region_setup import Option

P = ParamSpec("P")
R = TypeVar("R")


def contextual_autotune(is_dist: bool = False, n_repeat: int = 5, n_warmup: int = 3, *,
                        restore: Any = None, name: str | None = None, communicator: Any = None,
                        **options: Option) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function's first call run it again and again, and tunes what it launches meanwhile.

        @contextual_autotune(n_repeat=3, restore="cache")
        def decode(x, cache): ...

    Everything tunable in it is tried at once: kernels of triton.autotune and those that a space file
    declares, functions made by autotune(), choices, and NCCL's collectives. The call gives the value of
    one more run, with the winners. Exceptions of the function end the search and go on to the caller.

    Args:
        is_dist: The ranks of the job tune it together, as the launcher names them (`distributed=on`).
            Otherwise they do so where it has collectives, or where `contextune run -n` started them.
        n_repeat: Runs of each config that count.
        n_warmup: Runs of each config before, which do not.
        restore: How to undo a run, for a function that does not leave the same when it runs again:
            tensors on the device, names of parameters that are such tensors, or a callable that is
            given the arguments of the call.
        name: What logs and the store call it; by default the name of the function.
        communicator: A process group of PyTorch, an ncclComm_t, or numbers of ranks, which do it.
        options: Others of a region, as `confirm=False`; a flag or a variable of the same name wins.
    """
    if not isinstance(is_dist, (bool, int)):
        raise Error("contextual_autotune is given a function in place of is_dist; write "
                    "@contextual_autotune() above it")
    chosen: dict[str, Option] = {"n_repeat": n_repeat, "n_warmup": n_warmup, **options}
    if is_dist:
        chosen.setdefault("distributed", "on")

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        refuse_unfinished(function, "contextual_autotune")
        return Region(name or name_of(function), repeatable=True, restore=restore,
                      communicator=communicator, options=chosen)(function)

    return decorate
