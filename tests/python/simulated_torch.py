"""Tensors of PyTorch in memory of the simulated GPU, which PyTorch takes for the CPU's."""

import ctypes

import contextune._custom_op_torch as custom_op_torch
import torch
from simulated import Gpu, require

SIZES = {torch.float32: 4, torch.int32: 4}


class TorchGpu(Gpu):
    """Custom ops whose tensors are in its memory are tuned as those on a GPU are."""

    def __init__(self):
        super().__init__()
        custom_op_torch.TUNED_DEVICES = ("cpu",)
        custom_op_torch.empty_as = lambda like: self.empty(tuple(like.shape), like.dtype)

    def empty(self, shape, dtype=torch.float32):
        """Never freed: what shares its memory is not counted."""
        count = 1
        for size in shape:
            count *= size
        address = ctypes.c_uint64()
        bytes_of_all = max(1, count) * SIZES[dtype]
        require(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(bytes_of_all)), "cuMemAlloc")
        memory = (ctypes.c_byte * bytes_of_all).from_address(address.value)
        return torch.frombuffer(memory, dtype=dtype, count=count).view(shape)

    def full(self, shape, value):
        return self.empty(shape).fill_(value)

    def run(self, kernel, block, y, value):
        """Launches it, and waits: what reads the tensor next is PyTorch, on the CPU."""
        self.launch(kernel, block, y, value)
        require(self.cuda.cuCtxSynchronize(), "cuCtxSynchronize")
