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


class FunctionOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("configs", ctypes.POINTER(ctypes.c_char_p)),
                ("num_configs", ctypes.c_size_t), ("version", ctypes.c_char_p),
                ("n_warmup", ctypes.c_int), ("n_repeat", ctypes.c_int), ("repeatable", ctypes.c_int),
                ("buckets", ctypes.c_char_p), ("unseen", ctypes.c_int),
                ("nearest_within", ctypes.c_uint32), ("hints", ctypes.POINTER(ctypes.c_uint64)),
                ("num_hints", ctypes.c_size_t), ("allow_override", ctypes.c_int)]


class FunctionKey(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("key", ctypes.c_char_p), ("has_size", ctypes.c_int),
                ("of_size", ctypes.c_uint64), ("communicator", ctypes.c_void_p),
                ("group", ctypes.c_char_p)]


RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int)


class FunctionRun(ctypes.Structure):
    """As long as this program knows it; what comes behind is 0."""
    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("run", RUN)]


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


def tune_function(library, gpu, blocks):
    """A function whose default cannot run, if there is a GPU."""
    texts = (ctypes.c_char_p * len(blocks))(*(f"block={block}".encode() for block in blocks))
    options = FunctionOptions(ctypes.sizeof(FunctionOptions), texts, len(blocks), b"1", 0, 2, 1)
    library.contextune_function_create.restype = ctypes.c_void_p
    function = ctypes.c_void_p(library.contextune_function_create(b"called", ctypes.byref(options)))
    assert function, library.contextune_error()
    key = FunctionKey(ctypes.sizeof(FunctionKey), b"n=8", 1, 600)
    problem = library.contextune_function_problem(function, ctypes.byref(key))
    ran = []

    def run(_user, config, _counts):
        ran.append(blocks[config])
        return (7 if config == 0 else gpu.launch(blocks[config])) if gpu else 0
    call = FunctionRun(ctypes.sizeof(FunctionRun), None, RUN(run))
    assert library.contextune_function_call(function, problem, ctypes.byref(call)) == 0
    if gpu:
        assert len(ran) > 4 and ran[-1] == 128, ran
        assert library.contextune_function_settled(function, problem) == 1
        assert library.contextune_function_default(function, problem) == 1
    else:
        assert ran == [blocks[0]], ran
    library.contextune_function_destroy(function)


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
    tune_function(library, gpu, blocks)
    print(f"ok after {runs} runs")


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        sys.exit(print(__doc__))
    main(*sys.argv[1:])
