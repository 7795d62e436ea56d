"""Runs the winners of two tunings of a region in turns, and compares how long the region takes.

Usage: winners_in_turns.py LOGS_A LOGS_B PAIRS TIMES COMMAND...
LOGS are the rank logs of the tunings. In COMMAND, which runs the program under contextune and has it
write the region's times to the file TIMES, one number a line, `@winners@` stands for a value of --force.
Ends with 0 if the winners are the same, or if in the median of the pairs those of A take at most 1 %
longer than those of B; the last line says which differ, and the ratio with its spread.
"""
import glob
import re
import statistics
import subprocess
import sys

AS_FAST = 1.01
FIELD = re.compile(r'(\w+)=("[^"]*"|\S+)')


def winners_of(folder):
    """Configs by site and key."""
    winners = {}
    for file in glob.glob(f"{folder}/rank-*.log"):
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                fields = dict(FIELD.findall(line))
                if fields.get("event") == "winner":
                    winners[fields["site"].strip('"'), fields["key"]] = fields["config"]
    return winners


def forced(winners):
    """What --force has to say for that; None if it pins sites, and one has several winners."""
    by_site = {}
    for (site, _), config in winners.items():
        if by_site.setdefault(site, config) != config:
            return None
    return ",".join(f"{site}={config}" for site, config in by_site.items())


def run(command, force, times):
    """The region's time with these winners: the median of the second half of the entries."""
    done = subprocess.run([force if word == "@winners@" else word for word in command],
                          capture_output=True, text=True, timeout=240)
    if done.returncode != 0:
        sys.exit(f"status {done.returncode} with --force {force}: {done.stderr[-200:]}")
    with open(times, encoding="utf-8") as lines:
        entries = [float(line) for line in lines]
    return statistics.median(entries[len(entries) // 2:])


def main():
    first, second = winners_of(sys.argv[1]), winners_of(sys.argv[2])
    pairs, times, command = int(sys.argv[3]), sys.argv[4], sys.argv[5:]
    if not first or first.keys() != second.keys():
        print(f"{len(first)} sites with a winner, and {len(second)} of the other tuning")
        return 1
    differ = [f"{site} {config} not {second[site, key]}" for (site, key), config in first.items()
              if config != second[site, key]]
    if not differ:
        print(f"all {len(first)} winners the same")
        return 0
    forces = forced(first), forced(second)
    if None in forces:
        print("; ".join([*differ, "a site has other winners by key, which --force cannot say"]))
        return 1
    for force in forces:
        run(command, force, times)  # what the machine does for the first time
    ratios = []
    for pair in range(pairs):
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        took = {which: run(command, forces[which], times) for which in order}
        ratios.append(took[0] / took[1])
    ratio = statistics.median(ratios)
    print("; ".join([*differ, f"in turns {ratio:.3f} of the other's time "
                              f"({min(ratios):.3f} to {max(ratios):.3f}, {pairs} pairs)"]))
    return 1 if ratio > AS_FAST else 0


sys.exit(main())
