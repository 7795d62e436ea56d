"""Captures of CUDA graphs by PyTorch, in which nothing can be measured."""

import sys

from contextune._library import Library


def note_capture(library: Library) -> bool:
    """Whether PyTorch captures a graph on this thread's stream. Tells the library of it, which without
    the frontend in the process sees no captures."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized() or not torch.cuda.is_current_stream_capturing():
        return False
    library.contextune_note_capture(torch.cuda.current_stream().cuda_stream)
    return True
