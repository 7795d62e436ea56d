"""The README's tables are those that the code has: between <!-- options --> and <!-- /options -->
stands the output of `contextune options --markdown`, and the same for reasons."""

import os
import pathlib
import subprocess
import sys

readme = pathlib.Path(sys.argv[1])
if not readme.exists():
    print(f"{readme} does not exist yet")
    sys.exit(4)
text = readme.read_text()
failed = False
for table in ("options", "reasons"):
    begin, end = f"<!-- {table} -->", f"<!-- /{table} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        print(f"{readme}: there must be one {begin} and one {end}")
        failed = True
        continue
    there = text.split(begin)[1].split(end)[0].strip()
    wanted = subprocess.run([os.environ["CONTEXTUNE_COMMAND"], table, "--markdown"],
                            capture_output=True, text=True, check=True).stdout.strip()
    if there != wanted:
        print(f"{readme}: what stands between {begin} and {end} is not what `contextune {table} "
              "--markdown` prints; put that output there")
        failed = True
sys.exit(1 if failed else 0)
