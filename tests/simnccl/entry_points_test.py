"""Every function of nccl.h is in the simulated library, under both of its names, or its README says
that it is not.

usage: entry_points_test.py NCCL_H LIBRARY README
"""

import ctypes
import re
import sys
from pathlib import Path

header, library, readme = (Path(argument) for argument in sys.argv[1:])
code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
declared = set(re.findall(r"^\w[\w *]*\b(nccl[A-Z]\w*) *\(", code, flags=re.MULTILINE))
simulated = ctypes.CDLL(str(library))
there = {name for name in declared if hasattr(simulated, name) and hasattr(simulated, "p" + name)}
sentence = readme.read_text().split("do not exist:")[1].split(".")[0]
lacking = set(re.findall(r"`(nccl\w+)`", sentence))

assert len(declared) > 25, declared
unsaid = declared - there - lacking
assert not unsaid, f"not there, and the README does not say so: {unsaid}"
assert not there & lacking, f"there, and the README says they are not: {there & lacking}"
