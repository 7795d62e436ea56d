"""Passes on what comes at one address to another, and what is answered, each piece after a while.
  slow_relay.py HOST PORT TO_HOST TO_PORT MILLISECONDS
Says "ready" when it can be called, and ends when nobody reads on."""

import asyncio
import random
import sys


async def pass_on(reader, writer, seconds):
    """In order, as TCP keeps it, and never faster than it came."""
    loop, draw = asyncio.get_running_loop(), random.Random(1)
    pieces = asyncio.Queue()

    async def send():
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not piece:
                return writer.close()
            writer.write(piece)

    sending = asyncio.ensure_future(send())
    piece = b"first"
    while piece:
        try:
            piece = await reader.read(65536)
        except OSError:
            piece = b""
        await pieces.put((loop.time() + seconds * draw.uniform(0.5, 1.5), piece))
    await sending


async def main(host, port, to_host, to_port, milliseconds):
    seconds = float(milliseconds) / 1000

    async def called(reader, writer):
        try:
            there = await asyncio.open_connection(to_host, int(to_port))
        except OSError:
            return writer.close()  # it calls again
        await asyncio.gather(pass_on(reader, there[1], seconds), pass_on(there[0], writer, seconds))

    server = await asyncio.start_server(called, host, int(port))
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except (BrokenPipeError, KeyboardInterrupt):
        pass
