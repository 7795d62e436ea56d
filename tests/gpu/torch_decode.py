"""A transformer's decode step, timed and hashed: to be run bare and under contextune in turns.

Usage: torch_decode.py graph|eager|ahead|compiled [--layers N] [--hidden N] [--batch N] [--steps N] [--rounds N] [--plain]
graph: a step is one launch of a CUDA graph; eager: its launches, one by one; ahead: the same, behind a busy
GPU; compiled: by torch.compile. Prints the time of a step (median and fastest of the rounds, in us) and a hash of
the logits of every step. With --plain norms, gates and rotary positions are operations of PyTorch's, as most models
write them: some 45 launches a layer instead of 21.
"""
import argparse
import hashlib
import statistics
import time

import torch
import torch_graph_decode as model


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("kind", choices=["graph", "eager", "ahead", "compiled"])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--plain", action="store_true")
    return parser.parse_args()


class PlainDecoder(model.Decoder):
    """The same without kernels of its own."""

    def __init__(self, tokens):
        super().__init__(tokens)
        steps = torch.arange(model.CONTEXT, device=model.DEVICE, dtype=torch.float32)
        powers = torch.arange(0, model.HEAD, 2, device=model.DEVICE, dtype=torch.float32) / model.HEAD
        angles = torch.outer(steps, 10000.0**-powers).repeat(1, 2)
        self.cosines, self.sines = angles.cos(), angles.sin()

    def normalised(self, x):
        value = x.float()
        value = value * torch.rsqrt(value.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.ones * value.to(x.dtype)

    def turned(self, x):
        first, second = x.float().chunk(2, dim=-1)
        cosine, sine = self.cosines[self.position], self.sines[self.position]
        return (x.float() * cosine + torch.cat((-second, first), dim=-1) * sine).to(x.dtype)

    def attend(self, layer, x):
        q, k, v = (x @ layer["qkv"]).view(model.BATCH, 3, model.HEADS, 1, model.HEAD).unbind(1)
        q = self.turned(q)
        layer["keys"].index_copy_(2, self.position, self.turned(k))
        layer["values"].index_copy_(2, self.position, v)
        scores = (q @ layer["keys"].transpose(2, 3)).float() / model.HEAD**0.5
        scores = scores.masked_fill(self.places > self.position, float("-inf"))
        mixed = torch.softmax(scores, dim=-1).to(torch.bfloat16) @ layer["values"]
        return mixed.view(model.BATCH, model.HIDDEN) @ layer["out"]

    def feed(self, layer, x):
        first, second = (x @ layer["up"]).chunk(2, dim=-1)
        return (torch.nn.functional.silu(first) * second) @ layer["down"]


def main():
    given = arguments()
    model.LAYERS, model.HIDDEN, model.BATCH = given.layers, given.hidden, given.batch
    model.HEAD = 64
    model.HEADS = given.hidden // model.HEAD
    model.INNER = 4 * given.hidden
    torch.inference_mode(True).__enter__()
    decoder = (PlainDecoder if given.plain else model.Decoder)(given.steps)
    for _ in range(3):
        decoder.step()
    torch.cuda.synchronize()
    step = decoder.step
    if given.kind == "graph":
        step = model.captured(decoder)
    if given.kind == "compiled":
        step = torch.compile(decoder.step)
        for _ in range(3):
            step()
    times = []
    hashes = set()
    for _ in range(given.rounds):
        decoder.restart()
        torch.cuda.synchronize()
        if given.kind == "ahead":
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            spent = 0.0
            for _ in range(given.steps):
                torch.cuda._sleep(60_000_000)  # cycles: some 30 ms, in which the host gets ahead
                begin.record()
                step()
                end.record()
                end.synchronize()
                spent += begin.elapsed_time(end) * 1e-3
        else:
            start = time.perf_counter()
            for _ in range(given.steps):
                step()
            torch.cuda.synchronize()
            spent = time.perf_counter() - start
        times.append(spent / given.steps * 1e6)
        hashes.add(hashlib.sha256(decoder.logits.cpu().numpy().tobytes()).hexdigest()[:16])
    print("decode", given.kind, f"median {statistics.median(times):.1f} fastest {min(times):.1f} us", *sorted(hashes))


main()
