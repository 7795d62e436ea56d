"""The pages' tables and examples are those that the code has, and their links lead somewhere. Between
<!-- options --> and <!-- /options --> stands the output of `contextune options --markdown`, and the same
for reasons. Tables of files name files that are there. Between <!-- example FILE --> and <!-- /example --> stands what that file has below the line
that says so. With --write they are put there. The iteration table is the one that `contextune logs
--passes` is tested with."""

import os
import pathlib
import re
import subprocess
import sys

from harness import GOLDEN_TABLE

readme = pathlib.Path(sys.argv[1])
root = readme.parent
pages = [readme] + sorted(page for folder in ("include", "preload", "src", "tools") for page in (root / folder).rglob("*.md"))
failed = False


def fail(text):
    global failed
    print(text)
    failed = True


def put_tables(page, text):
    for table in ("options", "reasons"):
        begin, end = f"<!-- {table} -->", f"<!-- /{table} -->"
        if begin not in text:
            continue
        tables.append(table)
        wanted = subprocess.run([os.environ["CONTEXTUNE_COMMAND"], table, "--markdown"],
                                capture_output=True, text=True, check=True).stdout.strip()
        before, after = text.split(begin)[0], text.split(end)[1]
        if "--write" not in sys.argv and text.split(begin)[1].split(end)[0].strip() != wanted:
            fail(f"{page}: what stands between {begin} and {end} is not what `contextune {table} "
                 "--markdown` prints; run this script with --write")
        text = f"{before}{begin}\n{wanted}\n{end}{after}"
    return text


def put_examples(page, text):
    for part in text.split("<!-- example ")[1:]:
        name, there = part.split("<!-- /example -->")[0].split(" -->", 1)
        source = (root / name).read_text().split(" The README shows what follows", 1)[1]
        language = {".lua": "lua", ".py": "python"}.get(pathlib.Path(name).suffix, "cpp")
        wanted = f"```{language}\n{source.split(chr(10), 1)[1].strip()}\n```"
        if "--write" not in sys.argv and there.strip() != wanted:
            fail(f"{page}: the example of {name} is not what the file has; run this script with --write")
        text = text.replace(there.strip(), wanted)
    return text


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


def follow_links(page, text):
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            fail(f"{page}: ({link}) leads nowhere")


def name_files(page, text):
    """Rows below a heading `file` name sources of their folder, and the front page's paths start at its own."""
    names = re.findall(r"`([a-z]+/[\w/.-]+)`", text) if page == readme else []
    in_table = False
    for line in text.splitlines():
        cell = line.split("|")[1].strip() if line.startswith("|") else ""
        in_table = bool(cell) and (in_table or cell == "file")
        names += re.findall(r"`([\w/.-]+)`", cell) if in_table else []
    for name in names:
        path = page.parent / name
        if not name.startswith("build/") and not path.exists() and not list(path.parent.glob(path.name + ".*")):
            fail(f"{page}: there is no {name}")


def most_lines(page):
    if page == readme:
        return 200
    is_room = page.name == "README.md" and page.relative_to(root).parts[0] in ("src", "preload")
    return 40 if is_room else None


tables = []
for page in pages:
    text = page.read_text()
    written = put_examples(page, put_tables(page, text))
    if "--write" in sys.argv:
        page.write_text(written)
    follow_links(page, text)
    name_files(page, text)
    if most_lines(page) and len(text.splitlines()) > most_lines(page):
        fail(f"{page}: {len(text.splitlines())} lines instead of at most {most_lines(page)}")
if sorted(tables) != ["options", "reasons"]:
    fail(f"there must be one page with the options and one with the reasons: {tables}")
words = lambda table: [[cell.strip() for cell in row.split("|")] for row in table.splitlines() if "--" not in row]
golden = words(GOLDEN_TABLE)
lines = readme.read_text().splitlines()
if not any(words("\n".join(lines[i:i + len(golden) + 1])) == golden
           for i, line in enumerate(lines) if line.startswith("| pass |")):
    fail(f"{readme}: the iteration table is not that of the tests")
sys.exit(1 if failed else 0)
