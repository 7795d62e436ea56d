"""Whether PyTorch captures a CUDA graph, in which nothing can be measured."""

import sys


def torch_captures() -> bool:
    """Whether it captures on this thread's stream. Without the frontend in the process the library does
    not see that, and what a search asks of the driver would end the capture."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized() and bool(
        torch.cuda.is_current_stream_capturing())
