"""Two "hosts" on one machine: network namespaces with names of their own, joined by a pair of virtual
interfaces. Needs the right to make them."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

ADDRESSES = ("10.177.0.1", "10.177.0.2")
NAMES = ("host-a", "host-b")
INTERFACE = "between"


class NotAllowed(Exception):
    """This machine does not let us make hosts; says why."""


def run(*argv):
    done = subprocess.run(argv, text=True, capture_output=True, timeout=20)
    if done.returncode != 0:
        raise NotAllowed(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Hosts:
    """`with` it: in the end nothing is left of them but what still runs there."""

    def __init__(self, folder):
        self.file = pathlib.Path(folder) / "hosts"
        self.keepers = []

    def __enter__(self):
        try:
            self.file.write_text("127.0.0.1 localhost\n" +
                                 "".join(f"{address} {name}\n" for address, name in zip(ADDRESSES, NAMES)))
            for name in NAMES:
                self.keep(name)
            ends = (INTERFACE, "other")
            self.on(0, "ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            self.on(0, "ip", "link", "set", ends[1], "netns", str(self.keepers[1].pid))
            self.on(1, "ip", "link", "set", ends[1], "name", INTERFACE)
            for host, address in enumerate(ADDRESSES):
                self.on(host, "ip", "address", "add", f"{address}/24", "dev", INTERFACE)
                for interface in ("lo", INTERFACE):
                    self.on(host, "ip", "link", "set", interface, "up")
        except BaseException as error:
            self.end()
            if isinstance(error, (OSError, subprocess.SubprocessError)):
                raise NotAllowed(str(error)) from error
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def keep(self, name):
        """A process that does nothing but to be there."""
        begin = f'hostname {name} && mount --bind "$0" /etc/hosts && echo ready && read line'
        keeper = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "sh", "-c", begin, str(self.file)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.keepers.append(keeper)
        if keeper.stdout.readline() != "ready\n":
            raise NotAllowed(f"a host of its own: {keeper.stderr.read().strip()}")

    def end(self):
        for keeper in self.keepers:
            with contextlib.suppress(OSError):
                keeper.stdin.close()
            keeper.wait()
            keeper.stdout.close()
            keeper.stderr.close()

    def prefix(self, host):
        """What is given an argv to run there."""
        return ["nsenter", "--target", str(self.keepers[host].pid), "--net", "--uts", "--mount", f"--wd={os.getcwd()}"]

    def on(self, host, *argv):
        return run(*self.prefix(host), *argv)

    def received_bytes(self, host):
        [link] = json.loads(self.on(host, "ip", "-s", "-j", "link", "show", INTERFACE))
        return link["stats64"]["rx"]["bytes"]

    def disconnect(self):
        """Nothing gets through any more, and nobody is told."""
        self.on(0, "ip", "link", "set", INTERFACE, "down")

    @contextlib.contextmanager
    def delayed(self, port, milliseconds):
        """While it lasts, what is sent to that port of host 1 comes to that of host 0, and answers come
        back, each after a while. (Few kernels can delay packets by themselves.)"""
        relay = subprocess.Popen(
            [*self.prefix(1), sys.executable, str(pathlib.Path(__file__).with_name("slow_relay.py")),
             ADDRESSES[1], str(port), ADDRESSES[0], str(port), str(milliseconds)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            if relay.stdout.readline() != "ready\n":
                raise AssertionError("nobody passes on what is sent")
            yield
        finally:
            relay.kill()
            relay.wait()
            relay.stdin.close()
            relay.stdout.close()
