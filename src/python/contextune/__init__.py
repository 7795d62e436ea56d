"""contextune tunes CUDA kernels, functions and collectives where they run.

Importing it loads nothing but Python: the library is loaded when it is first needed, and without it
everything runs untuned, with one warning.
"""

from importlib.metadata import PackageNotFoundError, version

from contextune._contextual import contextual_autotune
from contextune._errors import Error, UntunedWarning
from contextune._region import Region, region
from contextune._state import Reach, State, state

__all__ = ["Error", "Reach", "Region", "State", "UntunedWarning", "contextual_autotune", "region",
           "state"]

try:
    __version__ = version("contextune")
except PackageNotFoundError:  # a folder on the path, which nobody installed
    __version__ = "0"
