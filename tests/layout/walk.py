"""Which files of src run between two functions of the library, in a program on the simulated driver.

Usage: walk.py BEGIN [END] [VARIABLE=VALUE...] -- PROGRAM [ARGUMENT...]
BEGIN and END are parts of the functions' names, as `nm -C` has them: from the first entry of BEGIN on, until END
is entered by any thread or, without END, until BEGIN is left, on its thread. For example, a launch from its hook to its first winner; without END, what one launch runs by itself:

    walk.py '::on_launch(' 'TuningLog::winner(' -- build/walk/bin/contextune run --log-dir /tmp/logs \\
        --region nvtx:decode --space tools/demo_program/demo.lua -- build/walk/demo/contextune_demo --steps 100

Builds build/walk, which is `release` with -finstrument-functions. Prints the files by room, and how many."""

import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / "build" / "walk"
LIBRARY = BUILD / "lib" / "libcontextune.so"


def build():
    flags = "-g1 -finstrument-functions -finstrument-functions-exclude-file-list=/usr/include,/usr/lib"
    subprocess.run(["cmake", "--preset", "release", "-B", str(BUILD), f"-DCMAKE_CXX_FLAGS={flags}",
                    "-DCONTEXTUNE_BUILD_TESTS=OFF", "-DCONTEXTUNE_WERROR=OFF"], cwd=TOP, check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD)], check=True, stdout=subprocess.DEVNULL)
    recorder = BUILD / "walk_recorder.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(recorder),
                    str(TOP / "tests" / "layout" / "walk_recorder.c")], check=True)
    return recorder


def offset_of(name):
    symbols = subprocess.run(["nm", "-C", str(LIBRARY)], check=True, text=True, stdout=subprocess.PIPE).stdout
    found = [line for line in symbols.splitlines() if name in line and " t " in line.lower() and "clone" not in line]
    if len(found) != 1:
        sys.exit(f"walk.py: {len(found)} functions are called {name}: " + "; ".join(found[:5]))
    return "0x" + found[0].split()[0]


def files_of(offsets):
    lines = subprocess.run(["addr2line", "-e", str(LIBRARY), *offsets], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    paths = {os.path.normpath(os.path.join(BUILD, line.rsplit(":", 1)[0])) for line in lines}
    below = {os.path.relpath(path, TOP) for path in paths}
    return sorted(path for path in below if path.startswith(("src/", "preload/", "include/")))


def main():
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    names = [one for one in sys.argv[1:at] if "=" not in one]
    if not 1 <= len(names) <= 2 or at + 1 >= len(sys.argv):
        sys.exit(__doc__)
    recorder = build()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "entered"
        variables = os.environ | dict(one.split("=", 1) for one in sys.argv[1:at] if "=" in one)
        libraries = f"{BUILD}/simcuda:{BUILD}/simnccl"
        variables |= {"LD_PRELOAD": str(recorder), "LD_LIBRARY_PATH": libraries, "WALK_OUT": str(out),
                      "WALK_BEGIN": offset_of(names[0]), "XDG_CACHE_HOME": folder}
        if len(names) == 2:
            variables["WALK_END"] = offset_of(names[1])
        done = subprocess.run(sys.argv[at + 1:], env=variables, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0 or not out.exists():
            sys.exit(f"walk.py: the program ended with {done.returncode}, and the walk "
                     f"{'is there' if out.exists() else 'did not come to its end'}")
        offsets = out.read_text().split()
    files = files_of(offsets)
    rooms = {}
    for file in files:
        rooms.setdefault(os.path.dirname(file), []).append(os.path.basename(file))
    for room, inside in rooms.items():
        print(f"{room:30} {' '.join(inside)}")
    units = {os.path.splitext(file)[0] for file in files}
    print(f"{len(files)} files, {len(units)} units, {len(rooms)} rooms, {len(offsets)} functions")


main()
