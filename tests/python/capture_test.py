"""While PyTorch captures a CUDA graph nothing is measured: what is settled runs, else the default. The
simulated driver has no PyTorch, so one stands in that only says which stream it captures."""

import ctypes
import sys
import types
import unittest

import contextune
from simulated import Gpu, clear_logs, require

clear_logs()
gpu = Gpu()
BLOCKS = [256, 128, 64]
captures = False
stream = ctypes.c_void_p()
require(gpu.cuda.cuStreamCreate(ctypes.byref(stream), 1), "cuStreamCreate")
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(
    is_initialized=lambda: True, is_current_stream_capturing=lambda: captures,
    current_stream=lambda: types.SimpleNamespace(cuda_stream=stream.value)))


class Captures(unittest.TestCase):
    def setUp(self):
        self.name = self.id().rsplit(".", 1)[-1]
        self.y = gpu.tensor(100)
        self.blocks = []
        self.addCleanup(self.capture, False)

    @staticmethod
    def capture(begins):
        """Begins a capture, or ends it, of a stream that nothing is launched on."""
        global captures
        if begins and not captures:
            require(gpu.cuda.cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture")
        if captures and not begins:
            require(gpu.cuda.cuStreamEndCapture(stream, ctypes.byref(ctypes.c_void_p())),
                    "cuStreamEndCapture")
        captures = begins

    def launch(self, block):
        gpu.launch("set", block, self.y, 1.0)
        self.blocks.append(block)
        return block

    def check(self, call):
        """A capture before there is a winner, and one afterwards."""
        self.capture(True)
        self.assertEqual(call(), 256)
        self.assertEqual(self.blocks, [256])
        self.capture(False)
        call()
        self.assertGreater(len(self.blocks), 20)
        self.capture(True)
        del self.blocks[:]
        self.assertEqual(call(), 128)
        self.assertEqual(self.blocks, [128])

    def test_a_function_runs_its_default_and_later_its_winner(self):
        @contextune.autotune({"block": BLOCKS}, name=self.name)
        def function(block):
            return self.launch(block)

        self.check(function)

    def test_a_choice_runs_its_default_and_later_its_winner(self):
        choice = contextune.Choice(self.name, buffers=lambda: [self.y])
        for block in BLOCKS:
            choice.add(f"by_{block}")(lambda block=block: self.launch(block))
        self.check(choice)

    def test_a_region_runs_its_body_once_and_is_tuned_by_a_later_entry(self):
        @contextune.autotune({"block": BLOCKS}, name=self.name)
        def function(block):
            return self.launch(block)

        @contextune.contextual_autotune(name=f"region_of_{self.name}")
        def step():
            return function()

        self.check(step)


if __name__ == "__main__":
    unittest.main(verbosity=2)
