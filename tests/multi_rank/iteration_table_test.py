"""What the log says each kernel ran in each pass, and `contextune logs --passes` shows, is what came to
the GPU, while CUPTI delivers its records late.

On the simulated driver by default, where the kernels themselves tell; with CONTEXTUNE_TEST_GPU=1 on this
machine's GPU and its CUPTI, where a library in front of the driver does (tests/gpu/launch_spy.cpp)."""

import os
import subprocess
import unittest

import job

ON_GPU = os.environ.get("CONTEXTUNE_TEST_GPU") == "1"
PROGRAM = job.BUILD / ("gpu" if ON_GPU else "apps") / "launched_configs"
LATE = {"SIMCUDA_LATE_RECORDS": "0.0005", "SIMCUDA_NOISE": "0", "CONTEXTUNE_SELECTION": "mean",
        "CONTEXTUNE_MARGIN": "0", "CONTEXTUNE_CUTOFF": "0"}
GOLDEN = [
    ["config-0 (iter-0)", "config-0 (iter-0)"],
    ["config-0 (iter-1)", "config-0 (iter-1)"],
    ["config-1 (iter-0)", "config-1 (iter-0)"],
    ["config-1 (iter-1)", "config-1 (iter-1)"],
    ["**winner**", "config-2 (iter-0)"],
    ["**winner**", "config-2 (iter-1)"],
]


def driver_behind_spy():
    """The folder of the spy, in which the machine's driver lies under the name that the spy needs."""
    folder = job.BUILD / "gpu" / "spy"
    libraries = subprocess.run(["ldconfig", "-p"], text=True, check=True, stdout=subprocess.PIPE).stdout
    driver = next(line.split(" => ")[1] for line in libraries.splitlines()
                  if line.strip().startswith("libcuda.so.1 ") and "x86-64" in line)
    link = folder / "driver_behind_spy.so"
    link.unlink(missing_ok=True)
    link.symlink_to(driver)
    return {"LD_LIBRARY_PATH": str(folder)}


def space(num_configs):
    kernels = (f'kernel "kernel_{i}" {{ space = {{ block = {{ {", ".join(str(32 * c) for c in range(1, n + 1))} }} }},\n'
               "  apply = function(config, launch) launch.block.x = config.block end }\n"
               for i, n in enumerate(num_configs))
    return "".join(kernels)


class Launched(job.Linked):
    """The program with kernels of so many configs, which writes what they were launched with."""

    def __init__(self, mode, num_configs):
        super().__init__()
        self.how = "body" if mode == "body" else "stop"
        self.num_configs = num_configs
        self.region = "" if mode == "body" else "nvtx:table"

    def argv(self, _steps, folder):
        (folder / "table.lua").write_text(space(self.num_configs))
        return ["sh", "-c", 'exec "$0" launches-${RANK} "$@"', PROGRAM, self.how, *self.num_configs]


def config_of(cell, winner):
    """What a cell says was launched; None: nothing."""
    if cell == "**winner**":
        return winner
    return int(cell.split()[0].removeprefix("config-"))


class IterationTable(unittest.TestCase):
    maxDiff = None

    def run_job(self, mode, num_ranks, num_configs):
        """For each rank: rows of its table, winners, and what every entry launched."""
        program = Launched(mode, num_configs)
        variables = LATE | {"CONTEXTUNE_SPACE": "table.lua"} | (driver_behind_spy() if ON_GPU else {})
        with job.Job(num_ranks, mode, 0, variables, program=program, declared=num_ranks > 1) as ranks:
            for rank in range(num_ranks):
                self.assertTrue(ranks.reaches(rank, "stage=finished"),
                                ranks.log(rank) + ranks.errors(rank).read_text())
            (ranks.folder / "stop").touch()
            self.assertEqual(ranks.unfinished(range(num_ranks)), [])
            results = []
            for rank in range(num_ranks):
                self.assertEqual((ranks.output(rank).read_text(), ranks.errors(rank).read_text()),
                                 ("done\n", ""))
                entries = [tuple(map(int, line.split()))
                           for line in (ranks.folder / f"launches-{rank}").read_text().splitlines()]
                results.append((*self.table_of(ranks, rank, num_configs), entries))
                if mode == "replay" and not ON_GPU:  # its kernels overwrite
                    (line,) = job.lines(ranks.log(rank), "replay")
                    self.assertEqual(job.field(line, "timed_after"), "itself", line)
            self.assertEqual(job.contradictions([ranks.log(rank) for rank in range(num_ranks)]), [])
        return results

    def table_of(self, ranks, rank, num_configs):
        logs = ranks.logs / f"rank-{rank}.log"
        shown = subprocess.run([job.COMMAND, "logs", "--passes", logs], text=True, check=True,
                               stdout=subprocess.PIPE, timeout=job.LIMIT).stdout
        rows = {}
        for line in shown.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("| pass"):
                sites = cells[1:]
            elif line.startswith("| "):
                rows.setdefault(cells[0], {}).update(zip(sites, cells[1:]))
        names = [f"kernel_{i}" for i in range(len(num_configs))]
        winners = {job.field(line, "site"): int(job.field(line, "config"))
                   for line in job.lines(ranks.log(rank), "winner")}
        self.assertEqual(sorted(winners), sorted(names), ranks.log(rank))
        table = [[row[name] for name in names] for number, row in rows.items() if number != "final"]
        self.assertEqual(list(rows)[:-1], [str(i) for i in range(len(table))])
        return table, [winners[name] for name in names]

    def check_cells(self, table, winners, entries, before_each=0):
        """The rows are entries one after another, each with so many untimed ones of the same configs
        before it; before them only defaults and screened configs."""
        rows = [tuple(config_of(cell, winner) for cell, winner in zip(row, winners))
                for row in table for _ in range(1 + before_each)]
        found = [at for at in range(len(entries)) if entries[at:at + len(rows)] == rows]
        self.assertTrue(found, f"the table\n{rows}\nis not what was launched:\n{entries}")
        # What follows runs winners, and defaults of what still waits for its results.
        for entry in entries[found[-1] + len(rows):]:
            for config, winner in zip(entry, winners):
                self.assertIn(config, (0, winner), entry)
        self.assertEqual(entries[-1], tuple(winners))
        if ON_GPU:
            print(f"{sum(map(len, table))} cells are what was launched, winners {winners}")

    def check_winners(self, winners, fastest):
        """In the model the last config of each kernel is the fastest one; on a GPU there is noise."""
        if not ON_GPU:
            self.assertEqual(winners, fastest)

    def test_a_body_and_a_replay_run_the_table_of_the_readme_though_results_come_late(self):
        for mode in ("body", "replay"):
            for num_ranks in (1, 2):
                with self.subTest(mode=mode, ranks=num_ranks):
                    for table, winners, entries in self.run_job(mode, num_ranks, (2, 3)):
                        self.assertEqual(table, GOLDEN)
                        self.check_winners(winners, [1, 2])
                        self.check_cells(table, winners, entries,
                                         before_each=int(mode == "replay"))

    def test_live_the_table_shows_whether_the_default_ran_while_results_were_to_come(self):
        [(table, winners, entries)] = self.run_job("live", 1, (2, 3))
        self.assertEqual(table[:4], GOLDEN[:4])
        for (first, second), (_, golden) in zip(table[4:6], GOLDEN[4:]):
            self.assertEqual(second, golden)
            self.assertIn(first, ("config-0", "**winner**"))
        self.check_winners(winners, [1, 2])
        self.check_cells(table, winners, entries)

    def test_live_on_two_ranks_the_table_is_what_each_ran(self):
        for table, winners, entries in self.run_job("live", 2, (2, 3)):
            self.assertEqual([row[1] for row in table], [row[1] for row in GOLDEN])
            self.check_winners(winners, [1, 2])
            self.check_cells(table, winners, entries)

    def test_of_kernels_with_many_configs_each_runs_its_best_one_once_it_is_through(self):
        num_configs = (2, 3, 5, 9, 24)
        for mode in ("body", "replay"):
            for num_ranks in (1, 2):
                with self.subTest(mode=mode, ranks=num_ranks):
                    for table, winners, entries in self.run_job(mode, num_ranks, num_configs):
                        self.check_winners(winners, [n - 1 for n in num_configs])
                        rows = [[config_of(*cell) for cell in zip(row, winners)] for row in table]
                        self.assertEqual(rows, [[p // 2 if p // 2 < n else winner
                                                 for n, winner in zip(num_configs, winners)]
                                                for p in range(48)])
                        self.check_cells(table, winners, entries,
                                         before_each=int(mode == "replay"))


if __name__ == "__main__":
    unittest.main()
