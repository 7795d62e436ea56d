"""The files that are no Python: where the wheel has put them, and which of them this process uses."""

import os
import pathlib

FOLDER = pathlib.Path(__file__).parent / "native"
COMMAND = FOLDER / "bin" / "contextune"


def find_library() -> pathlib.Path | None:
    """The libcontextune.so to load; None where there is none.

    Where a frontend was preloaded, the copy beside it, which it attaches: two copies in a process would
    do, but choices of one that is not attached run their default.
    """
    for preloaded in os.environ.get("LD_PRELOAD", "").replace(":", " ").split():
        if os.path.basename(preloaded) == "libcontextune_preload.so":
            beside = pathlib.Path(preloaded).parent / "libcontextune.so"
            if beside.is_absolute() and beside.exists():
                return beside
    own = FOLDER / "lib" / "libcontextune.so"
    return own if own.exists() else None
