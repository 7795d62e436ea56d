"""What the rank log must say of a random region."""

import collections
import dataclasses
import re

# What a region that is replayed may be told besides.
ALWAYS_ALLOWED = {
    "launch_failed", "wrong_result", "not_compared", "not_confirmed", "graph_times", "graph_order"}
# Kernels that are wrong only in each other's company: one of them may have to go.
WRONG_IN_COMPANY = {"leave", "clear"}
FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')
# Why a region is not replayed. Others are about single sites, or live tuning.
DECLINES = {
    "managed_memory", "host_call", "stream_memory", "replay_allocation", "other_thread",
    "host_memory", "host_reads", "unsupported_transfer", "capture", "not_deterministic",
    "shared_memory", "replay_memory", "replay_failed", "not_idle", "unknown_memory",
    "array_memory", "graph_unreplayable", "recording_too_long", "collective", "device_side_effect", "several_devices",
    "unknown_kernel", "internal_error", "sticky_error"}


@dataclasses.dataclass
class Output:
    """What a program says of itself."""

    region: str
    expected: list
    visits: int
    wrong: set

    def may_be_declined(self):
        """Whether it is right too when it is tuned live after its first visit."""
        return self.expected == ["replay"] and (self.visits == 1 or not self.wrong)


def read_output(line):
    region, expected, visits, wrong = line.split(" ")[:4]
    return Output(region, expected.removeprefix("expect=").split(","),
                  int(visits.removeprefix("visits=")),
                  set(filter(None, wrong.removeprefix("wrong=").split(","))))


def read_log(path):
    """The lines of each region, as dictionaries."""
    regions = collections.defaultdict(list)
    if not path.exists():
        return regions
    with path.open() as lines:
        for line in lines:
            fields = {name: value.strip('"') for name, value in FIELD.findall(line)}
            if "region" in fields:
                regions[fields["region"]].append(fields)
    return regions


def of_event(lines, event):
    return [line for line in lines if line["event"] == event]


def complaints(program, lines):
    """What is not as it must be, one text each."""
    replays = len(of_event(lines, "replay"))
    expects_replay = "replay" in program.expected
    # A visit may show only in part which configs are right.
    if (replays > 0) != expects_replay:
        why = {line.get("text") for line in of_event(lines, "fallback") if line["reason"] in DECLINES}
        yield f"expected {program.expected}, was replayed {replays} times: {reasons(lines)}, {why}"
        return
    told = reasons(lines)
    declines = set(program.expected) - {"replay"}
    if "unsupported_launch" in declines:
        # The same word is said of single sites.
        found = {line["reason"] for line in of_event(lines, "fallback") if "site" not in line}
        if "unsupported_launch" not in found:
            yield f"expected {program.expected}: {told}"
        declines.discard("unsupported_launch")
    if set(told) & DECLINES != declines:
        yield f"expected {program.expected}: {told}"
    if not expects_replay:
        return
    if "graph_times" in told:
        told.pop("no_samples", None)
    strange = set(told) - ALWAYS_ALLOWED - declines - {"unsupported_launch"}
    if strange:
        yield f"was told {strange}"
    found_wrong = {line.get("site") for line in of_event(lines, "fallback")
                   if line["reason"] == "wrong_result"}
    for kernel in sorted(program.wrong - found_wrong):
        yield f"no config of {kernel} was found to be wrong"
    for kernel in sorted(site for site in found_wrong - program.wrong - WRONG_IN_COMPANY if site):
        yield f"a config of {kernel} was taken for wrong"
    for line in of_event(lines, "winner"):
        if line.get("site") in program.wrong and line.get("block") == "96":
            yield f"a wrong config of {line['site']} won"


def reasons(lines):
    return dict(collections.Counter(line["reason"] for line in of_event(lines, "fallback")))
