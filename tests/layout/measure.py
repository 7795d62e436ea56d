"""What the tree is made of, in figures that two commits can be compared by.

    measure.py [SOURCE_DIR]

Prints, of src and preload: files and lines of each room (a folder), includes that close a cycle over files
or rooms, and the public functions and members of the ten largest classes in headers, by either of the two.
A class is measured by its text: what clang-format has laid out, no templates that declare others."""

import collections
import pathlib
import re
import sys

ENDINGS = (".hpp", ".cpp", ".h", ".c", ".def", ".S")
root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
texts = {path.relative_to(root / "src" if (root / "src") in path.parents else root).as_posix(): path.read_text()
         for folder in ("src", "preload") for path in sorted((root / folder).rglob("*")) if path.suffix in ENDINGS}


def room(file):
    return file.rpartition("/")[0]


def included(file):
    for name in re.findall(r'^#include "([^"]+)"', texts[file], re.MULTILINE):
        beside = f"{room(file)}/{name}"
        if name in texts or beside in texts:
            yield name if name in texts else beside


def cycles(edges):
    """Groups of nodes that reach one another (Tarjan), the largest first."""
    index, low, stack, found, counter = {}, {}, [], [], 0
    for start in sorted(edges):
        if start in index:
            continue
        work = [(start, iter(sorted(edges[start])))]
        index[start] = low[start] = counter = counter + 1
        stack.append(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = counter = counter + 1
                    stack.append(target)
                    work.append((target, iter(sorted(edges[target]))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = [stack.pop()]
                    while group[-1] != node:
                        group.append(stack.pop())
                    if len(group) > 1:
                        found.append(sorted(group))
    return sorted(found, key=len, reverse=True)


def body_of(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1:at]
    return ""


def classes():
    """(public functions, members, name, file) of each class that a header defines."""
    for file, text in texts.items():
        if not file.endswith(".hpp"):
            continue
        plain = re.sub(r"//[^\n]*|\"(\\.|[^\"\\\n])*\"", "", text).replace("operator=", "operator_")
        for match in re.finditer(r"^\s*(class|struct) (\w+)[^;{()]*\{", plain, re.MULTILINE):
            access, functions, members, depth, in_list = match[1] == "struct", 0, 0, 0, 0
            statement = ""
            for sign in body_of(plain, match.end() - 1):
                in_list += {"(": 1, ")": -1}.get(sign, 0)
                if in_list > 0 or sign == ")":
                    statement += sign if depth == 0 else ""
                    continue
                if depth == 0 and sign == ":" and statement.strip() in ("public", "private", "protected"):
                    access, statement = statement.strip() == "public", ""
                    continue
                depth += {"{": 1, "}": -1}.get(sign, 0)
                if depth == 0 and sign in ";}":
                    said = " ".join(statement.split())
                    is_type = re.match(r"(template <.*> )?(class|struct|enum|union|using|friend|static_assert)\b", said)
                    if re.search(r"\) = delete$", said):
                        pass
                    elif "(" in re.sub(r"\{.*|=.*|<[^<>]*>", "", said) and not is_type:
                        functions += access
                    elif said and not is_type:
                        members += 1
                    statement = ""
                elif depth == 0 or sign == "{":
                    statement += sign
            yield functions, members, match[2], file


print("room                               files   lines")
rooms = collections.defaultdict(list)
for file in texts:
    rooms[room(file)].append(texts[file].count("\n"))
for name, lines in sorted(rooms.items()):
    print(f"{name:34} {len(lines):5} {sum(lines):7}")
print(f"{'in all':34} {len(texts):5} {sum(map(sum, rooms.values())):7}")

of_files = {file: set(included(file)) for file in texts}
of_rooms = collections.defaultdict(set, {name: set() for name in rooms})
for file, targets in of_files.items():
    of_rooms[room(file)] |= {room(target) for target in targets} - {room(file)}
for kind, edges in (("files", of_files), ("rooms", of_rooms)):
    found = cycles(edges)
    print(f"\ncycles over {kind}: {len(found)}")
    for group in found:
        print(f"  {len(group)}: {' '.join(group)}")

for most in (0, 1):
    print("\npublic functions  members  class")
    for one in sorted(classes(), key=lambda one: (one[most], one), reverse=True)[:10]:
        print("{:16} {:8}  {} ({})".format(*one))
