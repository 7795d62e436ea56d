"""Device memory that algorithms of NCCL take for their connections: what takes too much is given up, which
is said and stored with the bound that it was too much for."""

import tempfile
import unittest

import job
from shapes import ShapeTest


class ConnectionMemory(ShapeTest):
    def with_large_trees(self, name="group_of_one", more_faults="", **more):
        """The ranks' logs, where what connects a tree takes 32 MiB on rank 1."""
        return self.check(name, steps=4000,
                          SIMNCCL_FAULTS="connect_memory:TREE:rank=1,memory=33554432" + more_faults, **more)

    def statuses_of_trees(self, logs):
        return [{job.field(line, "status") for line in job.lines(log, "trial")
                 if job.field(line, "algorithm") == "Tree"} for log in logs]

    def test_an_algorithm_whose_connections_take_too_much_memory_on_one_rank(self):
        logs = self.with_large_trees(CONTEXTUNE_COMM_MEMORY="16M")
        # Each log has what it took, what it may take, where that was seen, and what to do about it.
        self.assert_said(logs, "comm_memory", "took 32 MiB of device memory for its connections")
        self.assert_said(logs, "comm_memory", "16 MiB")
        self.assert_said(logs, "comm_memory", "rank 1")
        self.assert_said(logs, "comm_memory", "--comm-memory")
        self.assertEqual(self.statuses_of_trees(logs), [{"memory"}] * 2)
        for log in logs:
            self.assertNotIn("could not be launched", log)
        self.assert_leased(logs)

    def test_what_took_too_much_memory_is_tried_again_where_it_may_take_more(self):
        with tempfile.TemporaryDirectory() as store:
            kept = {"CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": store}
            given_up = self.with_large_trees(CONTEXTUNE_COMM_MEMORY="16M", **kept)
            self.assertEqual(self.statuses_of_trees(given_up), [{"memory"}] * 2)
            again = self.with_large_trees(CONTEXTUNE_COMM_MEMORY="16M", **kept)
            self.assertEqual([job.lines(log, "trial") for log in again], [[]] * 2)
            self.assertNotIn("comm_memory", again[1])
            more = self.with_large_trees(CONTEXTUNE_COMM_MEMORY="64M", **kept)
            for statuses in self.statuses_of_trees(more):
                self.assertIn(None, statuses)  # measured
                self.assertNotIn("memory", statuses)
            known = self.with_large_trees(CONTEXTUNE_COMM_MEMORY="64M", **kept)
            self.assertEqual([job.lines(log, "trial") for log in known], [[]] * 2)

    def test_what_took_too_much_memory_beside_others_in_a_group(self):
        with tempfile.TemporaryDirectory() as store:
            def run(bound):
                logs = self.with_large_trees(
                    "several_in_a_group", ";slow:RING/LL:factor=30", CONTEXTUNE_COMM_MEMORY=bound,
                    CONTEXTUNE_STORE="tune", CONTEXTUNE_CACHE_DIR=store, CONTEXTUNE_REFINE="true",
                    CONTEXTUNE_CONFIRM="true")
                return logs, self.done_with_trees()
            self.assertEqual(self.statuses_of_trees(run("16M")[0]), [{"memory"}] * 2)
            self.assertEqual(run("16M")[1], 0)
            logs, trees = run("64M")
            self.assertGreater(trees, 0)
            self.assertNotIn("comm_memory", logs[1])

    def done_with_trees(self):
        return len([line for lines in self.done for line in lines if "TREE" in line])

    def test_too_little_memory_for_what_is_not_connected(self):
        logs = self.check("group_of_one", steps=4000, CONTEXTUNE_COMM_MEMORY="1000G")
        self.assert_said(logs, "comm_memory", "are not tried")
        self.assertEqual(self.done_with_trees(), 0)
        self.assert_leased(logs)

    def test_what_there_was_no_memory_for_is_tried_when_there_is(self):
        with tempfile.TemporaryDirectory() as store:
            kept = {"CONTEXTUNE_STORE": "tune", "CONTEXTUNE_CACHE_DIR": store}
            self.check("group_of_one", steps=4000, CONTEXTUNE_COMM_MEMORY="1000G", **kept)
            again = self.check("group_of_one", steps=4000, CONTEXTUNE_COMM_MEMORY="1000G", **kept)
            self.assertEqual([job.lines(log, "trial") for log in again], [[]] * 2)
            logs = self.check("group_of_one", steps=4000, **kept)
            self.assertEqual(self.statuses_of_trees(logs), [{None, "missing"}] * 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
