"""Ranks that do an operation together which has several implementations: all of them run the same one
at the same time, what is wrong on one is chosen by none, and whatever becomes of one of them the others
get on with the program, with the result that it has without contextune."""

import unittest

import choice_job
import faults
import job


class ChoiceRanks(choice_job.ChoiceTestCase):
    program = "choice_ranks"

    def assert_winner(self, logs, implementation):
        for log in logs:
            winners = job.winners(log)
            self.assertEqual(winners, job.winners(logs[0]))
            self.assertEqual(len(winners), 1, log)
            self.assertIn(f"implementation={implementation} ", winners[0] + " ")

    def assert_default(self, logs, reason):
        for log in logs:
            self.assertNotIn("implementation=", "".join(job.winners(log)))
            self.assertIn(f"reason={reason}", log)

    def test_two_ranks_find_the_fastest_outside_of_a_region(self):
        logs = self.run_job(2, "alone")
        self.assert_winner(logs, "fastest")
        self.assert_agreed(logs)

    def test_calls_in_a_row_are_judged_by_what_they_take_of_the_host_as_well_without_cupti(self):
        logs = self.run_job(2, "alone", "row", -1, "hesitates", -1)
        self.assert_winner(logs, "better")
        self.assert_agreed(logs)
        for log in logs:
            self.assertNotIn("event=timer action=open", log)
            self.assertRegex(log, "event=trial .*implementation=fastest .*launches=8 time_us=.* timer=events")
        self.assert_winner(self.run_job(2, "alone", "hesitates", -1), "fastest")

    def test_what_fails_on_one_rank_in_the_middle_of_a_row_is_chosen_by_none(self):
        logs = self.run_job(2, "alone", "row", -1, "kernels", -1, "tires", 1)
        self.assert_winner(logs, "better")
        self.assertRegex(logs[1], "reason=launch_failed .*implementation=fastest.* failed: tired")
        self.assertEqual(self.asked[0], self.asked[1])  # as one may wait for the other in each

    def test_four_ranks_find_the_fastest_in_a_repeated_region(self):
        self.assert_winner(self.run_job(4, "region"), "fastest")

    def test_in_a_live_region_nothing_is_tried(self):
        logs = self.run_job(2, "live", "then_live", -1)
        self.assertEqual(self.ran, ["plain", "plain"])
        self.assert_default(logs, "live_choice region=sums")

    def test_in_a_live_region_what_was_found_elsewhere_runs(self):
        for where in ("alone", "region"):
            with self.subTest(where=where):
                self.assert_winner(self.run_job(2, where, "then_live", -1), "fastest")
                self.assertEqual(self.ran, ["fastest", "fastest"])

    def test_timings_that_all_ranks_ask_for_are_measured_on_all_and_count_in_a_live_region(self):
        logs = self.run_job(2, "live", "asks", -1)
        self.assert_winner(logs, "fastest")
        self.assertEqual(self.asked, ["fastest", "fastest"])
        self.assertEqual(self.ran, ["fastest", "fastest"])
        self.assert_agreed(logs)
        for log in logs:
            self.assertNotIn("reason=live_choice", log)

    def test_timings_that_one_rank_asks_for_keep_it_no_longer_than_it_waits_for_others(self):
        for asks in (0, 1):
            with self.subTest(asks=asks):
                logs = self.run_job(2, "live", "asks", asks, variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "1"})
                self.assert_default(logs[asks:asks + 1], "no_agreement")
                self.assertEqual(self.ran, ["plain", "plain"])
                self.assertNotEqual(self.asked[asks], "fastest")

    def test_in_a_live_region_it_is_searched_alone_if_its_author_says_so(self):
        self.assert_winner(self.run_job(2, "live", "immediate", -1, "then_live", -1), "fastest")
        self.assertEqual(self.ran, ["fastest", "fastest"])

    def test_at_another_size_all_run_what_the_nearest_runs(self):
        logs = self.run_job(2, "alone", "grows", -1, "then_live", -1)
        self.assert_winner(logs, "fastest")
        self.assertEqual(self.ran, ["fastest", "fastest"])
        self.assert_agreed(logs)

    def test_sizes_that_are_named_before_are_measured_by_all_at_the_first_call(self):
        logs = self.run_job(2, "alone", "hinted", -1)
        self.assert_winner(logs, "fastest")
        self.assertEqual(self.ran, ["fastest", "fastest"])
        self.assert_agreed(logs)

    def test_a_winner_of_another_size_that_is_wrong_on_one_rank_is_searched_on_all(self):
        logs = self.run_job(2, "alone", "grows", -1, "wrong_later", 1)
        self.assertEqual(self.ran, ["better", "better"])
        for log in logs:
            self.assertRegex(log, "reason=wrong_result .*implementation=fastest")

    def test_an_operator_who_asks_for_live_mode_gets_it(self):
        logs = self.run_job(2, "alone", "then_live", -1, variables={"CONTEXTUNE_MODE": "live"})
        self.assertEqual(self.ran, ["plain", "plain"])
        self.assert_default(logs, "live_choice")

    def test_what_is_wrong_on_one_rank_is_chosen_by_none(self):
        for where in ("alone", "region"):
            with self.subTest(where=where):
                logs = self.run_job(4, where, "wrong", 2)
                self.assert_winner(logs, "better")
                for log in logs:
                    self.assertRegex(log, "reason=wrong_result .*implementation=fastest")

    def test_ranks_that_support_other_implementations_run_the_default(self):
        for where in ("alone", "region"):
            with self.subTest(where=where):
                self.assert_default(self.run_job(2, where, "unsupported", 1), "ranks_differ")

    def test_one_that_throws_while_the_others_wait_is_abandoned(self):
        logs = self.run_job(2, "alone", "throws", 1, variables={"CONTEXTUNE_TRIAL_TIMEOUT": "2"})
        self.assert_winner(logs, "better")
        for log in logs:
            self.assertRegex(log, "reason=launch_failed .*implementation=fastest")

    def test_a_rank_that_does_not_ask_lets_the_others_run_the_default(self):
        logs = self.run_job(2, "alone", "absent", 1, variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "1"})
        self.assert_default(logs[:1], "no_agreement")

    def test_a_rank_without_contextune_lets_the_others_run_the_default(self):
        off = job.Peculiar(variables={"CONTEXTUNE_DISABLE": "1"})
        logs = self.run_job(2, "alone", variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "1"}, peculiar={1: off})
        self.assert_default(logs[:1], "no_agreement")

    def test_a_rank_that_dies_while_results_are_compared(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                survivors = faults.others(3, victim)
                logs = self.run_job(3, "alone", "kernels", -1, "dies", victim, survivors=survivors,
                                    variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "2"})
                self.assert_default([logs[rank] for rank in survivors], "no_agreement")


if __name__ == "__main__":
    unittest.main()
