"""The C functions as Python uses them, through ctypes: in a process without a driver every call passes
through, and on the simulated driver, where the library is loaded late, a tunable is tuned. Where the
process was started with the frontend (STATE 2), LIBCONTEXTUNE may be another copy than the one that the
frontend attached, and forwards to that.

Usage: c_interface.py LIBCONTEXTUNE [LIBCUDA KERNEL_FILE [STATE]]
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
    """The simulated driver with the kernel `paced`, whose time depends on its block."""

    def __init__(self, path, kernel_file):
        self.cuda = ctypes.CDLL(path)
        assert self.cuda.cuInit(0) == 0
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.function = ctypes.c_void_p()
        assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.cuda.cuCtxSetCurrent(context) == 0
        image = f"simcuda image 1\nlibrary {kernel_file}\n".encode()
        assert self.cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
        assert self.cuda.cuModuleGetFunction(ctypes.byref(self.function), module, b"paced") == 0

    def launch(self, block):
        return self.cuda.cuLaunchKernel(self.function, 8, 1, 1, block, 1, 1, 0, None, None, None)


def main(library_path, driver_path=None, kernel_file=None, state="1"):
    library = load(library_path)
    assert library.contextune_version().count(b".") == 2
    assert library.contextune_current_state() == 0
    assert library.contextune_state_reason()

    assert create(library, "empty", []) is None
    assert b"'empty' has no configs" in library.contextune_error()

    blocks = [256, 128, 64]
    tunable = create(library, "paced", [f"block={block}" for block in blocks])
    gpu = Gpu(driver_path, kernel_file) if driver_path else None
    if gpu:
        assert library.contextune_current_state() == int(state), library.contextune_state_reason()
        if state == "1":
            assert b"loaded after" in library.contextune_state_reason()

    entry = Entry()
    library.contextune_region_begin(ctypes.byref(entry), b"python")
    assert library.contextune_region_option(ctypes.byref(entry), b"repeatable", b"on") == 0
    runs = 0
    config = None
    while library.contextune_region_next(ctypes.byref(entry)):
        call = Call()
        config = library.contextune_tunable_begin(tunable, 0, ctypes.byref(call))
        if gpu:
            assert gpu.launch(blocks[config]) == 0
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
    if sys.argv[1:] == ["--help"]:
        sys.exit(print(__doc__))
    main(*sys.argv[1:])
