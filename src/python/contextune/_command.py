"""The command `contextune`, which the wheel brings along."""

import os
import sys
from typing import NoReturn

from contextune import _native


def main() -> NoReturn:
    """Becomes the command, with the arguments of this process."""
    command = str(_native.COMMAND)
    try:
        os.execv(command, ["contextune", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"contextune: cannot run {command}: {error.strerror}; install the package again, with "
                 "`pip install ./src/python` from a clone")
