"""The configs of a function, and who knows them."""

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from contextune._device import Device
from contextune._errors import Error
from contextune._text import config_text

Config = Mapping[str, Any]


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)


def _listed(name: str, given: Any) -> list[dict[str, Any]]:
    if isinstance(given, Mapping):
        for parameter, values in given.items():
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise Error(f"function '{name}': its config space has {values!r} for '{parameter}'; give a list "
                            f"of the values that it may have, [{values!r}]")
        given = [dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())]
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise Error(f"function '{name}': its config space is {type(given).__name__}; give a list of "
                    "dicts, a dict of lists, or a callable that returns one")
    configs = []
    for config in given:
        if not isinstance(config, Mapping) or not all(isinstance(one, str) and one.isidentifier()
                                                      for one in config):
            raise Error(f"function '{name}': the config {config!r} is no dict of parameters of the "
                        "function; write {'config': ...}")
        configs.append(dict(config))
    return configs


class ConfigSpace:
    """Configs that are listed, or that a callable knows of the device.

    A list of dicts, a dict of lists, which is their product, or a callable that returns one of these.
    It is given the Device if it takes an argument.
    """

    def __init__(self, name: str, given: Any) -> None:
        self._name = name
        self._given = given
        self._listed = None if callable(given) else self._checked(_listed(name, given), Device())

    @property
    def is_listed(self) -> bool:
        """Whether it is known before the program initialises CUDA."""
        return self._listed is not None

    def of(self, device: Device) -> list[dict[str, Any]]:
        """The configs on that device. Raises Error if there is none, or one comes twice."""
        if self._listed is not None:
            return self._listed
        given = self._given(device) if _takes_an_argument(self._given) else self._given()
        return self._checked(_listed(self._name, given), device)

    def _checked(self, configs: list[dict[str, Any]], device: Device) -> list[dict[str, Any]]:
        where = f" on {device.name}" if device.name else ""
        if not configs:
            raise Error(f"function '{self._name}': its config space is empty{where}; give it at least "
                        "one config")
        seen = set()
        for config in configs:
            text = config_text(config)
            if text in seen:
                raise Error(f"function '{self._name}': its config '{text}' comes twice{where}; give "
                            "each once")
            seen.add(text)
        return configs
