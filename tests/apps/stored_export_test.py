"""What `contextune store export` makes of the files that real runs have written, for other tuners."""

import collections
import json
import re
import statistics
import subprocess
import unittest

from stored_runs import COMMAND, PATIENCE, SITES, TENSOR_PARALLEL, StoredRuns

WAYS = """
for _, name in ipairs({ "all_reduce", "reduce_scatter", "all_gather" }) do
  collective(name) {
    space = { algorithm = { "Ring" }, protocol = { "LL", "LL128", "Simple" }, channels = { 0, 4, 16 } },
  }
end
"""


def parameters(line, *names):
    """Of a config, as a line of the log and as a result have them."""
    return tuple((name, str(line[name])) for name in names if name in line)


class StoredExportTest(StoredRuns):
    def contextune(self, *arguments):
        return subprocess.run(list(map(str, (COMMAND, *arguments))), env=self.environment, text=True,
                              check=True, capture_output=True, timeout=PATIENCE).stdout

    def t4(self, name):
        path = self.work / "t4.json"
        self.contextune("store", "export", name, "--t4", path)
        return json.loads(path.read_text())["results"]

    def assert_results(self, results, log, *names):
        """What was measured has the times of the log's trials, and nothing else has any."""
        times = collections.defaultdict(list)
        for line in log.ranks[0]:
            if line.get("event") == "trial" and "time_us" in line:
                key = line["key"].replace(" device=0", "")  # it is any of its kind that is stored
                times[line["site"], key, parameters(line, *names)].append(float(line["time_us"]))
        measured = {}
        for result in results:
            place = (result["site"], result["key"], parameters(result["configuration"], *names))
            values = {one["name"]: (one["value"], one["unit"]) for one in result["measurements"]}
            if result["invalidity"] == "correct":
                measured[place] = values
                self.assertEqual(result["times"]["runtimes"], [values["time"][0]])
            else:
                self.assertEqual(result["times"]["runtimes"], [])
                self.assertNotIn("time", values)
        self.assertEqual(set(measured), set(times))
        for place, values in measured.items():
            of_log = times[place]
            for name, us in (("time", statistics.median(of_log)), ("time_min", min(of_log)),
                             ("time_max", max(of_log))):
                self.assertEqual(values[name][1], "ms")
                self.assertAlmostEqual(values[name][0] * 1e3, us, delta=us * 1e-3, msg=(place, name))
            self.assertEqual(values["samples"], (len(of_log), ""))

    def test_t4_has_what_a_run_measured_of_its_kernels(self):
        log, _ = self.run_program()
        results = self.t4("decode")
        self.assertEqual({result["site"] for result in results}, SITES)
        self.assert_results(results, log, "variant", "block", "per_sm")
        rotate = self.contextune("store", "export", "decode", "--site", "rotate", "--t4", self.work / "one.json")
        self.assertEqual(rotate.split()[0], str(sum(one["site"] == "rotate" for one in results)))

    def test_nccl_s_tuner_gets_the_winners_of_collectives_and_their_defaults(self):
        space = self.work / "ways.lua"
        space.write_text(WAYS)
        log, _ = self.run_program(
            "-n", "2", "--distributed", "on", "--mode", "replay", "--no-confirm",
            program=(TENSOR_PARALLEL, "--meet", self.work / "meet", "--steps", "40", "--tokens", "64"),
            region="nvtx:step", space=space)
        expected = set()
        for line in log.ranks[0]:
            if line.get("event") != "winner":
                continue
            low, high = re.search(r"bytes=(\d+)-(\d+)", line["key"]).groups()
            self.assertIn("ranks=2 nodes=1", line["key"])
            way = [line[name].lower() for name in ("algorithm", "protocol", "channels") if name in line]
            expected.add((line["site"].replace("_", ""), low, high, *way))
        self.assertEqual({row[0] for row in expected}, {"allreduce", "reducescatter", "allgather"})
        self.assertTrue(any(len(row) == 6 for row in expected), "no winner differs from its default")
        path = self.work / "nccl.conf"
        said = self.contextune("store", "export", "step", "--nccl-csv", path)
        self.assertEqual(said, f"{len(expected)} rows for NCCL_TUNER_CONFIG_FILE={path}\n")
        rows = [line.split(",") for line in path.read_text().splitlines() if not line.startswith("#")]
        for row in rows:
            self.assertEqual(row[6:], ["1", "2", "1", "-1"], row)  # nodes, ranks, operations, any buffers
            if (*row[:3],) in expected:
                expected.remove((*row[:3],))
                self.assertEqual(row[5], "0", row)  # NCCL's own way, which leaves channels to it
            else:
                expected.remove((*row[:6],))
        self.assertEqual(expected, set())
        from_logs = self.work / "from_logs.conf"
        self.contextune("logs", self.folder, "--nccl-csv", from_logs)
        self.assertEqual(from_logs.read_text(), path.read_text())
        self.assert_results(self.t4("step"), log, "algorithm", "protocol", "channels")


if __name__ == "__main__":
    unittest.main()
