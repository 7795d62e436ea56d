"""Compares what two tunings of a region chose, from their rank logs.

Usage: same_winners.py LOGS_A LOGS_B
Ends with 0 if every site has the same winner in both or, by the trials of either log, one that is as
fast as the other's; the last line says how many are the same and what the others differ by.
"""
import collections
import glob
import re
import statistics
import sys

AS_FAST = 1.05  # single launches of some microseconds differ by that much from run to run
FIELD = re.compile(r'(\w+)=("[^"]*"|\S+)')


class Tuning:
    def __init__(self, folder):
        self.winners = {}
        self.times = collections.defaultdict(list)
        for file in glob.glob(f"{folder}/rank-*.log"):
            with open(file, encoding="utf-8") as lines:
                for line in lines:
                    self.read(dict(FIELD.findall(line)))

    def read(self, fields):
        site = (fields.get("region"), fields.get("site"), fields.get("key"))
        if fields.get("event") == "winner":
            self.winners[site] = fields["config"]
        elif fields.get("event") == "trial" and "time_us" in fields:
            self.times[site, fields["config"]].append(float(fields["time_us"]))

    def ratio(self, site, config, other):
        """Time of one config by that of another; 1 if one of them was not tried here."""
        if not self.times[site, config] or not self.times[site, other]:
            return 1.0
        return statistics.median(self.times[site, config]) / statistics.median(self.times[site, other])


def main():
    first, second = Tuning(sys.argv[1]), Tuning(sys.argv[2])
    if not first.winners or first.winners.keys() != second.winners.keys():
        print(f"{len(first.winners)} sites with a winner, and {len(second.winners)} of the other tuning")
        return 1
    same, slower, remarks = 0, 0, []
    for site, winner in first.winners.items():
        other = second.winners[site]
        if winner == other:
            same += 1
            continue
        ratio = min(first.ratio(site, winner, other), second.ratio(site, winner, other))
        slower += ratio > AS_FAST
        remarks.append(f"{site[1]} {winner} not {other}: {100 * (ratio - 1):+.1f} %")
    print("; ".join([f"{same} of {len(first.winners)} winners the same", *remarks]))
    return 1 if slower else 0


sys.exit(main())
