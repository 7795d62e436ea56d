"""A trace of Chrome's JSON trace events, read and checked by the format's own rules."""

import json
from collections import defaultdict
from decimal import Decimal

PHASES = set("XBEiMCsf")


class Trace:
    def __init__(self, text):
        # Every digit counts: a nanosecond in a trace of days is lost in a float.
        whole = json.loads(text, parse_float=Decimal)
        self.about = whole["otherData"]
        self.events = whole["traceEvents"]
        self.processes = self.names("process_name", lambda event: event["pid"])
        self.tracks = self.names("thread_name", lambda event: (event["pid"], event["tid"]))
        self.slices = [event for event in self.events if event["ph"] == "X"]
        self.instants = [event for event in self.events if event["ph"] == "i"]
        self.counters = [event for event in self.events if event["ph"] == "C"]

    def names(self, kind, key):
        return {key(event): event["args"]["name"] for event in self.events
                if event["ph"] == "M" and event["name"] == kind}

    def on(self, name, events=None):
        """The slices of all tracks of that name, by process."""
        found = defaultdict(list)
        for event in self.slices if events is None else events:
            if self.tracks[event["pid"], event["tid"]] == name:
                found[event["pid"]].append(event)
        return found

    def check(self, test):
        """Begins and ends match, nothing overlaps on a track, flows connect, and all is named."""
        for event in self.events:
            test.assertIn(event["ph"], PHASES)
            test.assertIn(event["pid"], self.processes)
            test.assertIsInstance(event["name"], str)
            if event["ph"] in "XBEisf":
                test.assertIn((event["pid"], event["tid"]), self.tracks)
            if event["ph"] != "M":
                test.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "X":
                test.assertGreaterEqual(event["dur"], 0)
            if event["ph"] == "i":
                test.assertIn(event["s"], ("t", "p", "g"))
            if event["ph"] == "C":
                test.assertTrue(event["args"])
                for value in event["args"].values():
                    test.assertIsInstance(value, (int, Decimal))
        test.assertTrue(all(self.processes.values()) and all(self.tracks.values()))
        # Perfetto knows a thread by its number alone; that of its process is the main thread's.
        numbers = [track for _, track in self.tracks]
        test.assertEqual(len(numbers), len(set(numbers)))
        test.assertFalse(set(numbers) & set(self.processes))
        self.check_slices(test)
        self.check_flows(test)

    def check_slices(self, test):
        tracks = defaultdict(list)
        open_slices = defaultdict(list)
        for event in self.events:
            track = event["pid"], event.get("tid")
            if event["ph"] == "X":
                tracks[track].append((event["ts"], event["ts"] + event["dur"], event["name"]))
            elif event["ph"] == "B":
                open_slices[track].append(event)
            elif event["ph"] == "E":
                begin = open_slices[track].pop()
                tracks[track].append((begin["ts"], event["ts"], begin["name"]))
        test.assertFalse(any(open_slices.values()), "a slice does not end")
        for track, slices in tracks.items():
            slices.sort()
            for before, after in zip(slices, slices[1:]):
                test.assertLessEqual(before[1], after[0], (self.tracks[track], before, after))

    def check_flows(self, test):
        ends = defaultdict(dict)
        for event in self.events:
            if event["ph"] in "sf":
                test.assertNotIn(event["ph"], ends[event["id"]])
                ends[event["id"]][event["ph"]] = event
        for flow in ends.values():
            test.assertEqual(set(flow), {"s", "f"})
            test.assertEqual(*[(flow[end]["name"], flow[end]["cat"]) for end in "sf"])
            test.assertLessEqual(flow["s"]["ts"], flow["f"]["ts"])
            test.assertEqual(flow["f"]["bp"], "e")
            for end in flow.values():
                self.slice_at(test, end)
        return ends

    def slice_at(self, test, event):
        """The slice in which an end of a flow lies."""
        (found,) = [one for one in self.slices
                    if (one["pid"], one["tid"]) == (event["pid"], event["tid"])
                    and one["ts"] < event["ts"] < one["ts"] + one["dur"]]
        return found

    def flows(self, test):
        """The slices that each flow connects."""
        return [(self.slice_at(test, flow["s"]), self.slice_at(test, flow["f"]))
                for flow in self.check_flows(test).values()]

    def trials(self, track, config):
        """Its measured trials, by rank."""
        found = defaultdict(list)
        for pid, slices in self.on(track).items():
            rank = int(self.processes[pid].split()[1].rstrip(","))
            found[rank] += [one for one in slices if one["args"].get("config") == config
                            and one["args"].get("status") == "measured" and "iteration" in one["args"]]
        return found
