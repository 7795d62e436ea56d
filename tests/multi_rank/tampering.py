"""Somebody between a rank and rank 0."""

import contextlib
import secrets
import socket
import threading
import time

HOWS = ("cut", "held", "garbled", "replayed", "delayed")


def name_of(address):
    return "\0" + address.removeprefix("unix:")


class Relay:
    """Passes bytes on between whoever calls and the target, until so many have gone one way. Then it
    cuts the line, holds it, changes a byte, says the last ones again, or is late with the rest."""

    def __init__(self, target, how, after, to_target=True):
        self.target, self.how, self.after, self.to_target = target, how, after, to_target
        self.address = "unix:contextune-relay-" + secrets.token_hex(8)
        self.passed = 0
        self.done = False
        self.stop = threading.Event()
        self.threads = []
        self.sockets = contextlib.ExitStack()

    def __enter__(self):
        self.listener = self.sockets.enter_context(
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        self.listener.bind(name_of(self.address))
        self.listener.listen()
        self.listener.settimeout(0.1)
        self.begin(self.accept)
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        self.sockets.close()

    def begin(self, function, *arguments):
        self.threads.append(threading.Thread(target=function, args=arguments))
        self.threads[-1].start()

    def accept(self):
        while not self.stop.is_set():
            with contextlib.suppress(OSError):
                caller = self.listener.accept()[0]
                called = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    called.connect(name_of(self.target))
                except OSError:  # rank 0 is not there yet: the rank calls again
                    caller.close()
                    called.close()
                    continue
                self.sockets.enter_context(caller)
                self.sockets.enter_context(called)
                self.begin(self.pass_on, caller, called, self.to_target)
                self.begin(self.pass_on, called, caller, not self.to_target)

    def pass_on(self, source, sink, tampered):
        source.settimeout(0.1)
        held = False
        with contextlib.suppress(OSError):
            while not self.stop.is_set():
                try:
                    data = source.recv(65536)
                except TimeoutError:
                    continue
                if not data:
                    break
                if tampered and not self.done and self.passed + len(data) > self.after:
                    self.done = True
                    data = self.tamper(data, self.after - self.passed)
                    held = self.how == "held"
                    if self.how == "cut":
                        sink.sendall(data)
                        break
                self.passed += len(data) if tampered else 0
                if not held:
                    sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def tamper(self, data, place):
        if self.how == "cut":
            return data[:place]
        if self.how == "garbled":
            return data[:place] + bytes([data[place] ^ 0x20]) + data[place + 1:]
        if self.how == "replayed":
            return data + data
        if self.how == "delayed":
            time.sleep(1.5)
        return data
