"""Choices of a copy of the library that is not the one which the frontend attached: they run their
default, and the rank log says so once of each, and what to do.

Usage: second_copy_choices.py LIBCONTEXTUNE LIBCUDA KERNEL_FILE
"""
import ctypes
import os
import pathlib
import sys
import time

from c_interface import Gpu, load

RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class Implementation(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("configs", ctypes.c_void_p),
                ("num_configs", ctypes.c_size_t), ("fusion", ctypes.c_int), ("user", ctypes.c_void_p),
                ("supports", ctypes.c_void_p), ("abandon", ctypes.c_void_p)]


class Problem(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("bytes", ctypes.c_uint64), ("type", ctypes.c_char_p),
                ("ranks", ctypes.c_int), ("key", ctypes.c_char_p)]


class Run(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("run", RUN),
                ("memory", ctypes.c_void_p), ("num_memory", ctypes.c_size_t)]


def load_choices(path):
    library = load(path)
    library.contextune_choice_create.restype = ctypes.c_void_p
    library.contextune_choice_create.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    library.contextune_choice_add.argtypes = [ctypes.c_void_p, ctypes.POINTER(Implementation)]
    library.contextune_choice_problem.argtypes = [ctypes.c_void_p, ctypes.POINTER(Problem)]
    library.contextune_choice_problem.restype = ctypes.c_uint32
    run = ctypes.POINTER(Run)
    library.contextune_choice_call.argtypes = [ctypes.c_void_p, ctypes.c_uint32, run, run]
    library.contextune_choice_measure.argtypes = [ctypes.c_void_p, ctypes.c_uint32, run]
    return library


def main(library_path, driver_path, kernel_file):
    library = load_choices(library_path)
    gpu = Gpu(driver_path, kernel_file)
    assert library.contextune_current_state() == 2, library.contextune_state_reason()
    ran = []

    def launch(_user, implementation, _config):
        ran.append(implementation)
        return gpu.launch([256, 128][implementation])

    call = Run(ctypes.sizeof(Run), None, RUN(launch), None, 0)
    for name in (b"first", b"second"):
        choice = library.contextune_choice_create(name, None)
        for implementation in (b"plain", b"fast"):
            one = Implementation(ctypes.sizeof(Implementation), implementation)
            assert library.contextune_choice_add(choice, ctypes.byref(one)) == 0
        for size in (1000, 4000):
            problem = Problem(ctypes.sizeof(Problem), size)
            number = library.contextune_choice_problem(choice, ctypes.byref(problem))
            for _ in range(3):
                assert library.contextune_choice_call(choice, number, ctypes.byref(call), None) == 0
        assert library.contextune_choice_measure(choice, number, ctypes.byref(call)) == -1
        assert b"copy" in library.contextune_error(), library.contextune_error()
    assert ran == [0] * 12, ran

    lines, deadline = [], time.monotonic() + 60
    while len(lines) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
        log = pathlib.Path(os.environ["CONTEXTUNE_LOG_DIR"], "rank-0.log").read_text()
        lines = [line for line in log.splitlines() if f" pid={os.getpid()} " in line and "reason=other_copy" in line]
    assert len(lines) == 2, log
    for name, line in zip(("first", "second"), lines):
        assert f"'{name}'" in line and library_path in line, line
    print("ok")


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        sys.exit(print(__doc__))
    main(*sys.argv[1:])
