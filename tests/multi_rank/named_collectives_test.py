"""--only and --exclude reach collectives as they reach kernels, and all ranks have to say the same."""

import unittest

import job
from shapes import ShapeTest


class NamedCollectives(ShapeTest):
    def tried(self, log):
        return {job.field(line, "site") for line in job.lines(log, "trial") if job.field(line, "config") != "0"}

    def assert_only_gathers_are_tried(self, option, **variables):
        logs = self.check("different_sites", steps=3000, **variables)
        for log in logs:
            self.assertEqual(self.tried(log), {"all_gather"}, log)
            self.assertNotIn("name_unmatched", log)
        self.assert_said(logs, "excluded", f"'all_reduce' keeps its default: {option}")

    def test_what_is_excluded_by_the_name_of_its_site_keeps_its_default(self):
        self.assert_only_gathers_are_tried("--exclude", CONTEXTUNE_EXCLUDE="^all_reduce$")

    def test_what_is_excluded_by_the_name_of_nccls_function_keeps_its_default(self):
        self.assert_only_gathers_are_tried("--exclude", CONTEXTUNE_EXCLUDE="AllReduce")

    def test_what_only_does_not_name_keeps_its_default(self):
        self.assert_only_gathers_are_tried("--only", CONTEXTUNE_ONLY="gather")

    def test_a_name_of_no_collective_that_was_done_is_reported_with_those_that_were(self):
        logs = self.check("different_sites", steps=1500, CONTEXTUNE_EXCLUDE="^reduce_scatter$")
        self.assert_said(logs, "name_unmatched", "all_reduce")
        self.assert_leased(logs)

    def test_ranks_that_exclude_something_else_agree_on_nothing(self):
        for declared in (True, False):
            with self.subTest(declared=declared):
                peculiar = {1: job.Peculiar(variables={"CONTEXTUNE_EXCLUDE": "all_reduce"})}
                logs = self.check("different_sites", declared=declared, peculiar=peculiar)
                for log in logs:
                    self.assertEqual(self.tried(log), set(), log)
                self.assert_said(logs, "no_agreement", "has other options or another space than")


if __name__ == "__main__":
    unittest.main(verbosity=2)
