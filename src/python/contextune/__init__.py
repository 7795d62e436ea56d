"""contextune tunes CUDA kernels, functions and collectives where they run.

Importing it loads nothing but Python: the library is loaded when it is first needed, and without it
everything runs untuned, with one warning.
"""

from importlib.metadata import PackageNotFoundError, version

from contextune._autotune import AutotunedFunction, autotune
from contextune._choice import Choice, ChoiceProblem, ChoiceTiming, TimingState
from contextune._choice_call import ChoiceMemory
from contextune._contextual import contextual_autotune
from contextune._custom_op import CustomOpConfig, register_custom_op_autotuning
from contextune._device import Device, current_device
from contextune._errors import Error, UntunedWarning
from contextune._hashable import to_hashable
from contextune._join import join
from contextune._logs import read_logs
from contextune._prune import prune_fn_by_group_size_m, prune_fn_by_shared_memory
from contextune._rank import Rank, rank
from contextune._region import Region, region
from contextune._state import Reach, State, state

__all__ = [
    "AutotunedFunction",
    "Choice",
    "ChoiceMemory",
    "ChoiceProblem",
    "ChoiceTiming",
    "CustomOpConfig",
    "Device",
    "Error",
    "Rank",
    "Reach",
    "Region",
    "State",
    "TimingState",
    "UntunedWarning",
    "autotune",
    "contextual_autotune",
    "current_device",
    "join",
    "prune_fn_by_group_size_m",
    "prune_fn_by_shared_memory",
    "rank",
    "read_logs",
    "region",
    "register_custom_op_autotuning",
    "state",
    "to_hashable",
]

try:
    __version__ = version("contextune")
except PackageNotFoundError:  # a folder on the path, which nobody installed
    __version__ = "0"
