"""The README's tables are those that the code has: between <!-- options --> and <!-- /options -->
stands the output of `contextune options --markdown`, and the same for reasons. Between
<!-- example FILE --> and <!-- /example --> stands what that file has below the line that says so. With
--write they are put there. The iteration table is the one that `contextune logs --passes` is tested with."""

import os
import pathlib
import subprocess
import sys

from harness import GOLDEN_TABLE

readme = pathlib.Path(sys.argv[1])
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
    if "--write" in sys.argv:
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n{wanted}\n{end}{after}"
        readme.write_text(text)
    elif there != wanted:
        print(f"{readme}: what stands between {begin} and {end} is not what `contextune {table} "
              "--markdown` prints; run this script with --write")
        failed = True
for part in text.split("<!-- example ")[1:]:
    name, there = part.split("<!-- /example -->")[0].split(" -->", 1)
    source = (readme.parent / name).read_text().split(" The README shows what follows", 1)[1]
    language = "lua" if name.endswith(".lua") else "cpp"
    wanted = f"```{language}\n{source.split(chr(10), 1)[1].strip()}\n```"
    if "--write" in sys.argv:
        readme.write_text(readme.read_text().replace(there.strip(), wanted))
    elif there.strip() != wanted:
        print(f"{readme}: the example of {name} is not what the file has; run this script with --write")
        failed = True
words = lambda table: [[cell.strip() for cell in row.split("|")] for row in table.splitlines() if "--" not in row]
golden = words(GOLDEN_TABLE)
if not any(words("\n".join(text.splitlines()[i:i + len(golden) + 1])) == golden
           for i, line in enumerate(text.splitlines()) if line.startswith("| pass |")):
    print(f"{readme}: the iteration table is not that of the tests")
    failed = True
sys.exit(1 if failed else 0)
