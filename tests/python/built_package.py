"""Has programs import the package of this clone, with the libraries and the command of a build, where no
package is installed."""

import importlib.util
import os
import pathlib
import sys
import tempfile

_CLONE = pathlib.Path(__file__).resolve().parents[2]


def use(build=None):
    """Puts it on the path, for child processes, too.

    Args:
        build: The folder of a build; absent: CONTEXTUNE_TEST_BUILD, build/gpu or build/release.
    """
    if build is None and importlib.util.find_spec("contextune") is not None:
        return
    folders = [build, os.environ.get("CONTEXTUNE_TEST_BUILD"), _CLONE / "build/gpu", _CLONE / "build/release"]
    for folder in (pathlib.Path(one).resolve() for one in folders if one):
        if (folder / "lib" / "libcontextune.so").exists():
            break
    else:
        sys.exit("there is no contextune to test: pip install ./src/python, or build the preset `gpu`")
    kept = tempfile.TemporaryDirectory(prefix="contextune-package-")
    _kept.append(kept)
    package = pathlib.Path(kept.name) / "contextune"
    for kind, names in (("lib", ("libcontextune.so", "libcontextune_preload.so")), ("bin", ("contextune",))):
        (package / "native" / kind).mkdir(parents=True)
        for name in names:
            (package / "native" / kind / name).symlink_to(folder / kind / name)
    for file in (_CLONE / "src/python/contextune").iterdir():
        if file.suffix in (".py", ".typed"):
            (package / file.name).symlink_to(file)
    sys.path.insert(0, kept.name)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (kept.name, os.environ.get("PYTHONPATH"))))


_kept = []
