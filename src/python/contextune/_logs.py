"""The rank logs, as the command reads them."""

import json
import os
import subprocess
from typing import Any

from contextune import _native
from contextune._errors import Error


def read_logs(folder: str | os.PathLike[str] | None = None, *, run: str | None = None
              ) -> dict[str, Any]:
    """Reads the last run of every rank, as `contextune logs --json` does.

    Times are in seconds; None stands where there is none. `processes` lists the ranks, each with its
    `regions`, and these their `sites` with `configs`, `winner` and `trials`.

    Args:
        folder: Where the rank logs are; by default $CONTEXTUNE_LOG_DIR, or ./.autotune_logs.
        run: The number of a run, or "all" for every one that the logs hold.
    """
    command = [str(_native.COMMAND), "logs", "--json"]
    if run is not None:
        command += ["--run", run]
    if folder is not None:
        command += ["--", os.fspath(folder)]  # which may begin with a dash
    try:
        # Not in a process that is tuned itself: the command is none of the program.
        variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        read = subprocess.run(command, env=variables, capture_output=True, check=False)
    except OSError as error:
        raise Error(f"cannot run {command[0]}, which reads the logs: {error.strerror}; install the package "
                    "again, with `pip install ./src/python` from a clone") from error
    if read.returncode != 0:
        raise Error(read.stderr.decode(errors="replace").strip())
    logs: dict[str, Any] = json.loads(read.stdout)
    return logs
