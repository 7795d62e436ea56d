"""contextune tunes CUDA kernels, functions and collectives where they run."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("contextune")
except PackageNotFoundError:  # a folder on the path, which nobody installed
    __version__ = "0"
