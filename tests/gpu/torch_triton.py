"""PyTorch and Triton kernels in an NVTX range; prints a checksum of the results' bits."""
import hashlib
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def axpy(out, x, y, factor, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    value = tl.load(x + index, mask=mask) * factor + tl.load(y + index, mask=mask)
    tl.store(out + index, value, mask=mask)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    x = torch.randn(1024, 1024, device="cuda")
    w = torch.randn(1024, 1024, device="cuda") / 32
    y = torch.zeros_like(x)
    n = x.numel()
    for step in range(steps):
        torch.cuda.nvtx.range_push("step")
        h = torch.softmax(x @ w, dim=-1)
        axpy[(triton.cdiv(n, 1024),)](y, h, y, 0.5, n, BLOCK=1024)
        x = torch.nn.functional.layer_norm(x + y, (1024,))
        torch.cuda.nvtx.range_pop()
        if step % 8 == 7:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    digest = hashlib.sha256()
    for tensor in (x, y):
        digest.update(tensor.cpu().numpy().tobytes())
    print("torch_triton", digest.hexdigest()[:16])


main()
