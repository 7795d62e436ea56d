"""The C functions as Python uses them, through ctypes: in a process without a driver every call passes
through, and on the simulated driver, where the library is loaded late, a tunable is tuned.

Usage: c_interface.py LIBCONTEXTUNE [LIBCUDA]
"""
import ctypes
import sys


class Entry(ctypes.Structure):
    _fields_ = [("opaque", ctypes.c_uint64 * 8)]


class Call(ctypes.Structure):
    _fields_ = [("opaque", ctypes.c_uint64 * 8)]


def load(path):
    library = ctypes.CDLL(path)
    library.contextune_version.restype = ctypes.c_char_p
    library.contextune_error.restype = ctypes.c_char_p
    library.contextune_state_reason.restype = ctypes.c_char_p
    library.contextune_tunable_create.restype = ctypes.c_void_p
    library.contextune_tunable_create.argtypes = [
        ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t]
    library.contextune_tunable_key.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.contextune_tunable_begin.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(Call)]
    return library


def create(library, name, configs):
    texts = (ctypes.c_char_p * len(configs))(*(config.encode() for config in configs))
    return library.contextune_tunable_create(name.encode(), texts, len(configs))


class Gpu:
    """The driver's functions that this needs, and two kernels that simcuda brings itself."""

    def __init__(self, path):
        self.cuda = ctypes.CDLL(path)
        assert self.cuda.cuInit(0) == 0
        context = ctypes.c_void_p()
        assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.cuda.cuCtxSetCurrent(context) == 0
        self.buffer = ctypes.c_uint64()
        assert self.cuda.cuMemAlloc_v2(ctypes.byref(self.buffer), ctypes.c_size_t(1 << 26)) == 0

    def fill(self, size_bytes):
        return self.cuda.cuMemsetD8_v2(self.buffer, 0, ctypes.c_size_t(size_bytes))


def main(library_path, driver_path=None):
    library = load(library_path)
    assert library.contextune_version().count(b".") == 2
    assert library.contextune_current_state() == 0
    assert library.contextune_state_reason()

    assert create(library, "empty", []) is None
    assert b"'empty' has no configs" in library.contextune_error()

    tunable = create(library, "fill", ["kib=65536", "kib=64", "kib=16384"])
    sizes = [65536 << 10, 64 << 10, 16384 << 10]
    gpu = Gpu(driver_path) if driver_path else None
    if gpu:
        assert library.contextune_current_state() == 1, library.contextune_state_reason()
        assert b"frontend" in library.contextune_state_reason()

    entry = Entry()
    library.contextune_region_begin(ctypes.byref(entry), b"python")
    assert library.contextune_region_option(ctypes.byref(entry), b"repeatable", b"on") == 0
    runs = 0
    config = None
    while library.contextune_region_next(ctypes.byref(entry)):
        call = Call()
        config = library.contextune_tunable_begin(tunable, 0, ctypes.byref(call))
        if gpu:
            assert gpu.fill(sizes[config]) == 0
        assert library.contextune_tunable_end(ctypes.byref(call), 1) == 0
        runs += 1
    library.contextune_region_end(ctypes.byref(entry))
    if gpu:
        assert runs > 24, runs
        assert config == 1, config
    else:
        assert (runs, config) == (1, 0), (runs, config)
    print(f"ok after {runs} runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
