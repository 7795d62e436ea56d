"""The simulated GPU as tests have it, tensors on it that look as PyTorch's do, and the rank log."""

import ctypes
import os
import pathlib
import re
import shutil
import time

LOGS = pathlib.Path(os.environ["CONTEXTUNE_LOG_DIR"])


def require(status, what):
    assert status == 0, f"{what} failed with {status}"


class Gpu:
    """The kernels of kernels.cpp; `add` and `set` are fastest in blocks of 128."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        require(self.cuda.cuInit(0), "cuInit")
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        require(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
        require(self.cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        image = f"simcuda image 1\nlibrary {os.environ['CONTEXTUNE_TEST_KERNELS']}\n".encode()
        require(self.cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
        self.context = context
        self.functions = {}
        for name in ("add", "set"):
            self.functions[name] = ctypes.c_void_p()
            require(self.cuda.cuModuleGetFunction(ctypes.byref(self.functions[name]), module,
                                                  name.encode()), "cuModuleGetFunction")

    def launch(self, kernel, block, y, value):
        """Adds a value to each number of y, or sets it."""
        n, number, pointer = (ctypes.c_int(y.numel()), ctypes.c_float(value),
                              ctypes.c_uint64(y.data_ptr()))
        arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(one) for one in (n, number, pointer)))
        status = self.cuda.cuLaunchKernel(self.functions[kernel], 8, 1, 1, block, 1, 1, 0, None,
                                          arguments, None)
        if status != 0:
            raise RuntimeError(f"cuLaunchKernel failed with {status}")

    def tensor(self, *shape):
        return Tensor(self, shape)


class Device:
    type, index = "cuda", 0

    def __str__(self):
        return "cuda:0"


class Tensor:
    """Zeros, of which a test wants to know what PyTorch's tensors tell."""

    dtype = "torch.float32"
    is_cuda = True
    device = Device()

    def __init__(self, gpu, shape):
        self.gpu, self.shape = gpu, shape
        address = ctypes.c_uint64()
        require(gpu.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * self.numel())),
                "cuMemAlloc")
        self.address = address.value
        require(gpu.cuda.cuMemsetD8_v2(address, 0, ctypes.c_size_t(4 * self.numel())), "cuMemsetD8")

    def numel(self):
        product = 1
        for size in self.shape:
            product *= size
        return product

    def stride(self):
        steps = [1]
        for size in reversed(self.shape[1:]):
            steps.insert(0, steps[0] * size)
        return tuple(steps)

    def data_ptr(self):
        return self.address

    def element_size(self):
        return 4

    def read(self):
        values = (ctypes.c_float * self.numel())()
        require(self.gpu.cuda.cuMemcpyDtoH_v2(values, ctypes.c_uint64(self.address),
                                              ctypes.c_size_t(4 * self.numel())), "cuMemcpyDtoH")
        return list(values)


def clear_logs():
    """An earlier process may have had this one's number."""
    shutil.rmtree(LOGS, ignore_errors=True)


def lines(*words, count=1, seconds=5.0):
    """Lines of the rank log that hold all of these; waits until there are that many."""
    until = time.monotonic() + seconds
    while True:
        path = LOGS / "rank-0.log"
        text = path.read_text() if path.exists() else ""
        found = [line for line in text.splitlines() if all(word in line for word in words)]
        if len(found) >= count or time.monotonic() > until:
            return found
        time.sleep(0.02)


def field(line, name):
    """Its value, without the quotes that hold it together."""
    value = re.search(rf'{name}=("(?:[^"\\]|\\.)*"|\S*)', line)[1]
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
