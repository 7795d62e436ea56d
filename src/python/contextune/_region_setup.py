"""The setup of a region's entry, before its body runs."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from contextune import _library
from contextune._callback import callback, take_failure, watch
from contextune._errors import Error
from contextune._group import Group
from contextune._library import Library, encode
from contextune._restore import Restore

Option = str | int | float | bool


def option_text(name: str, value: Option) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise Error(f"the option {name} is {value!r}; give a text, a number, or True or False")


class RegionSetup:
    """Options, groups and restore of one entry. Lives as long as the entry, for its callback."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._callback: Any = None
        self._failure: BaseException | None = None

    def tell(self, entry: Any, options: Mapping[str, Option], *, repeatable: bool = False,
             restore: Restore = Restore(), group: Group = Group()) -> None:
        """Tells the library. Raises Error for what cannot be."""
        library = self._library
        # Where its ranks are not found the body runs once, and contextune_error() says why.
        if group.communicator is not None and library.contextune_region_communicator(
                entry, group.communicator) != 0:
            return
        if group.ranks:
            self._check(library.contextune_region_group(entry, encode(group.ranks)))
        for name, value in options.items():
            self._check(library.contextune_region_option(entry, encode(name),
                                                         encode(option_text(name, value))))
        if repeatable:
            self._check(library.contextune_region_option(entry, b"repeatable", b"true"))
        for address, size in restore.spans:
            if size > 0:
                self._check(library.contextune_region_restore_buffer(entry, address, size))
        if restore.call is not None:
            watch()
            self._callback = _library.RestoreCall(functools.partial(self._restore, restore.call))
            self._check(library.contextune_region_restore_call(entry, self._callback, None))

    def raise_failure(self) -> None:
        """Raises what the restore callable has raised, once."""
        failure, self._failure = self._failure or take_failure(), None
        if failure is not None:
            raise failure

    def _check(self, status: int) -> None:
        if status != 0:
            raise Error(self._library.error())

    @callback
    def _restore(self, call: Callable[[], object], _: Any) -> int:
        try:
            call()
            return 0
        except BaseException as error:
            self._failure = error
            return -1
