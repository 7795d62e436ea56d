"""The example of the package's README, on the simulated driver: its kernels stand for any."""

from simulated import Gpu

gpu = Gpu()


def launch(kernel, block, x, value):
    gpu.launch(kernel, block, x, value)


# The README shows what follows; its test compares the two.
import contextune


@contextune.autotune([{"block": block} for block in (256, 128, 64)],  # the default first
                     key_fn=lambda x, value: contextune.to_hashable(x), restore="x")
def add(x, value, block):
    launch("add", block, x, value)  # of Triton, CuPy, PyTorch, ...


fill = contextune.Choice("fill", buffers=lambda x: [x])  # several ways to do one thing
fill.add("plain")(lambda x: launch("set", 256, x, 1.0))
fill.add("blocked", {"block": [64, 128]})(lambda x, block: launch("set", block, x, 1.0))


@contextune.contextual_autotune(restore="x")  # repeated until all that it calls is tuned
def decode(x):
    fill(x)
    add(x, 2.0)
    return x
