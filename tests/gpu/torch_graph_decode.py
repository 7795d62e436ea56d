"""Greedy decoding with a small transformer whose step works in place on a key-value cache.

Usage: torch_graph_decode.py graph|eager [TOKENS]
Each step is an NVTX range "decode"; with `graph` it is one launch of a CUDA graph. Prints all tokens and
a checksum of the logits of every step. The step's work is the same for any grid of its Triton kernels.
"""
import hashlib
import os
import sys

# The same sums on any stream.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import triton
import triton.language as tl

LAYERS = 4
HIDDEN = 1024
HEADS = 16
HEAD = HIDDEN // HEADS
INNER = 4 * HIDDEN
VOCABULARY = 8192
BATCH = 8
CONTEXT = 512
PROGRAMS = 66  # of the Triton kernels, whatever the GPU
DEVICE = "cuda"


@triton.jit
def normalise_rows(out, x, weight, rows, columns, epsilon, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    mask = index < columns
    scale = tl.load(weight + index, mask=mask, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + row * columns + index, mask=mask, other=0.0).to(tl.float32)
        norm = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / columns + epsilon)
        tl.store(out + row * columns + index, (value * norm * scale).to(out.dtype.element_ty), mask=mask)


@triton.jit
def gate(out, both, n, inner, BLOCK: tl.constexpr):
    """silu of the first half of each row times the second."""
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        index = block * BLOCK + tl.arange(0, BLOCK)
        mask = index < n
        place = index // inner * (2 * inner) + index % inner
        a = tl.load(both + place, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(both + place + inner, mask=mask, other=0.0).to(tl.float32)
        tl.store(out + index, (a * tl.sigmoid(a) * b).to(out.dtype.element_ty), mask=mask)


class Decoder:
    """Everything that changes from step to step is on the GPU and changed in place."""

    def __init__(self, tokens):
        generator = torch.Generator(device=DEVICE).manual_seed(7)

        def weights(*shape):
            values = torch.randn(*shape, device=DEVICE, generator=generator)
            return (values / shape[-2] ** 0.5).to(torch.bfloat16)

        self.embedding = weights(VOCABULARY, HIDDEN) * HIDDEN**0.5
        self.head = weights(HIDDEN, VOCABULARY)
        self.ones = torch.ones(HIDDEN, device=DEVICE, dtype=torch.bfloat16)
        self.layers = [
            {
                "qkv": weights(HIDDEN, 3 * HIDDEN),
                "out": weights(HIDDEN, HIDDEN),
                "up": weights(HIDDEN, 2 * INNER),
                "down": weights(INNER, HIDDEN),
                "keys": torch.zeros(BATCH, HEADS, CONTEXT, HEAD, device=DEVICE, dtype=torch.bfloat16),
                "values": torch.zeros(BATCH, HEADS, CONTEXT, HEAD, device=DEVICE, dtype=torch.bfloat16),
            }
            for _ in range(LAYERS)
        ]
        self.places = torch.arange(CONTEXT, device=DEVICE)
        self.position = torch.zeros(1, dtype=torch.long, device=DEVICE)
        self.token = torch.arange(BATCH, device=DEVICE)
        self.tokens = torch.zeros(tokens, BATCH, dtype=torch.long, device=DEVICE)
        self.logits = torch.zeros(tokens, BATCH, VOCABULARY, device=DEVICE)

    def normalised(self, x):
        out = torch.empty_like(x)
        normalise_rows[(PROGRAMS,)](out, x, self.ones, BATCH, HIDDEN, 1e-6, BLOCK=HIDDEN)
        return out

    def attend(self, layer, x):
        q, k, v = (x @ layer["qkv"]).view(BATCH, 3, HEADS, 1, HEAD).unbind(1)
        layer["keys"].index_copy_(2, self.position, k)
        layer["values"].index_copy_(2, self.position, v)
        scores = (q @ layer["keys"].transpose(2, 3)).float() / HEAD**0.5
        scores = scores.masked_fill(self.places > self.position, float("-inf"))
        mixed = torch.softmax(scores, dim=-1).to(torch.bfloat16) @ layer["values"]
        return mixed.view(BATCH, HIDDEN) @ layer["out"]

    def feed(self, layer, x):
        both = x @ layer["up"]
        out = torch.empty(BATCH, INNER, device=DEVICE, dtype=torch.bfloat16)
        gate[(PROGRAMS,)](out, both, out.numel(), INNER, BLOCK=256)
        return out @ layer["down"]

    def step(self):
        x = self.embedding[self.token]
        for layer in self.layers:
            x = x + self.attend(layer, self.normalised(x))
            x = x + self.feed(layer, self.normalised(x))
        logits = (self.normalised(x) @ self.head).float()
        self.token.copy_(logits.argmax(dim=-1))
        self.logits.index_copy_(0, self.position, logits[None])
        self.tokens.index_copy_(0, self.position, self.token[None])
        self.position += 1

    def restart(self):
        for layer in self.layers:
            layer["keys"].zero_()
            layer["values"].zero_()
        self.position.zero_()
        self.token.copy_(torch.arange(BATCH, device=DEVICE))
        self.tokens.zero_()
        self.logits.zero_()


def captured(decoder):
    """The step as a CUDA graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        decoder.step()
    return graph.replay


def main():
    kind = sys.argv[1]
    tokens = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    if kind not in ("graph", "eager") or not 3 < tokens <= CONTEXT:
        sys.exit(__doc__)
    torch.inference_mode(True).__enter__()
    decoder = Decoder(tokens)
    # As every server does: some steps outside of what counts, which build the kernels and take memory.
    for _ in range(3):
        decoder.step()
    torch.cuda.synchronize()
    decoder.restart()
    step = captured(decoder) if kind == "graph" else decoder.step
    decoder.restart()
    torch.cuda.synchronize()
    for number in range(tokens):
        torch.cuda.nvtx.range_push("decode")
        step()
        torch.cuda.nvtx.range_pop()
        if number % 8 == 7:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    digest = hashlib.sha256(decoder.logits.cpu().numpy().tobytes()).hexdigest()
    for row in decoder.tokens.t().tolist():
        print("tokens", *row)
    print("torch_graph_decode", kind, tokens, digest[:16])


if __name__ == "__main__":
    main()
