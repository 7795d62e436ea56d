"""A problem of a function: a key, and the configs that may run for it."""

import ctypes
from dataclasses import dataclass, field, replace

from contextune._library import UNTUNED, Library, Pruned, encode
from contextune._text import quoted


@dataclass
class Problem:
    """Made at its first call, and not changed once others can find it."""
    text: str  #: its key, as the log has it
    kept: list[int]  #: configs by number, the default first; never empty
    number: int = UNTUNED  #: that the library gave it
    num_failed: int = 0  #: defaults that could not run before the one of now
    communicator: int | None = None  #: whose ranks do it
    why_untuned: str = ""  #: they were not found
    pruned: Pruned = field(default_factory=Pruned)

    @property
    def default(self) -> int:
        return self.kept[0]

    def told_to(self, library: Library, tunable: int) -> "Problem":
        """The same with a number, unless the library refuses it; the log says so then."""
        if self.why_untuned:
            return self
        # Other configs are another problem.
        text = f"{self.text} failed={self.num_failed}" if self.num_failed else self.text
        number = library.contextune_tunable_key(tunable, encode(text))
        kept = (ctypes.c_uint32 * len(self.kept))(*self.kept)
        known = library.contextune_tunable_keep(tunable, number, kept, len(self.kept),
                                                ctypes.byref(self.pruned)) == 0
        return replace(self, number=number if known else UNTUNED)

    def without_default(self) -> "Problem":
        """The same without its default, which cannot run."""
        failed = self.num_failed + 1
        return replace(self, kept=self.kept[1:], number=UNTUNED, num_failed=failed,
                       pruned=Pruned(failed=failed))

    def of_ranks(self, library: Library, communicator: int) -> "Problem":
        """The same for the ranks of a communicator, which have winners of their own."""
        ranks = ctypes.create_string_buffer(4096)
        if library.contextune_communicator_ranks(communicator, ranks, len(ranks)) != 0:
            return replace(self, communicator=communicator, why_untuned=library.error())
        group = ranks.value.decode()
        text = f"{self.text} group={quoted(group)}".strip() if group else self.text
        return replace(self, communicator=communicator, text=text)
