"""Choices of some ranks of a job: those agree among themselves, wait for nobody else, and have winners
of their own, also where one rank is in several such groups."""

import re
import unittest

import choice_job
import job

PAIRS = "0-1 2-3"
CHAIN = "0-1 1-2 2-3"
# In groups of even places one implementation is the fastest, in the others another.
EXPECTED = {PAIRS: {"0-1": "even", "2-3": "odd"}, CHAIN: {"0-1": "even", "1-2": "odd", "2-3": "even"}}


def winners_of(log, value="implementation", site=""):
    """Of each group that this rank is in, that value of the winner at a site."""
    found = {}
    for line in job.winners(log):
        if f" site={site}" not in line:
            continue  # a stage's collective
        group = re.search(r"group=([0-9+-]+)", line).group(1)
        found.setdefault(group, []).append(re.search(rf" {value}=(\w+)", line).group(1))
    return found


def seconds_searched(log):
    return max(float(seconds) for seconds in re.findall(r" event=summary .*tuning_s=([0-9.]+)", log))


def blocks_of(log):
    return winners_of(log, "block", "sum ")


def of_rank(rank, expected):
    """Of the groups that this rank is in."""
    return {group: [winner] for group, winner in expected.items() if str(rank) in re.split("[-+]", group)}


class Groups(choice_job.ChoiceTestCase):
    """Functions, and regions with tunables, of some of the job's ranks."""

    program = "choice_groups"
    kinds = ("function", "stage")

    def run_job(self, *words, variables=None, **others):
        # Enough for the best to be known, even if the host holds up a rank once.
        return super().run_job(*words, variables={"CONTEXTUNE_N_REPEAT": "5", **(variables or {})}, **others)

    def assert_blocks(self, logs, expected):
        for rank, log in enumerate(logs):
            self.assertEqual(blocks_of(log), of_rank(rank, expected), log)
            self.assertEqual(job.told(log), [])
        self.assertEqual("".join(self.asked).strip(), "")

    def test_each_group_has_winners_of_its_own(self):
        for where in self.kinds:
            for declared in (True, False):
                with self.subTest(where=where, declared=declared):
                    logs = self.run_job(4, where, PAIRS, declared=declared)
                    self.assert_blocks(logs, {"0-1": "128", "2-3": "64"})

    def test_a_rank_may_be_in_several_groups(self):
        for where in self.kinds:
            with self.subTest(where=where):
                self.assert_blocks(self.run_job(4, where, CHAIN), {"0-1": "128", "1-2": "64", "2-3": "128"})

    def test_groups_may_be_named_by_their_ranks(self):
        for where in self.kinds:
            for declared in (True, False):
                with self.subTest(where=where, declared=declared):
                    logs = self.run_job(4, where, CHAIN, "named", -1, declared=declared)
                    self.assert_blocks(logs, {"0-1": "128", "1-2": "64", "2-3": "128"})

    def test_ranks_that_are_in_no_group_are_not_waited_for(self):
        for where in self.kinds:
            with self.subTest(where=where):
                logs = self.run_job(4, where, "0-2", variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "60"})
                self.assert_blocks(logs, {"0+2": "128"})

    def test_ranks_are_found_by_the_communicators_that_a_repeated_body_uses(self):
        # Nobody waits for ranks that are elsewhere, or nowhere.
        patient = {"CONTEXTUNE_PRESYNC_TIMEOUT": "60"}
        for where in ("own_stage", "own_function"):
            for groups in (PAIRS, CHAIN, "0-2"):
                for declared in (True, False):
                    with self.subTest(where=where, groups=groups, declared=declared):
                        logs = self.run_job(4, where, groups, variables=patient, declared=declared)
                        for rank, log in enumerate(logs):
                            own = sum(str(rank) in group for group in groups.split())
                            self.assertEqual(job.told(log), [])
                            sums = [line for line in job.winners(log) if " site=sum " in line]
                            self.assertEqual(len(sums), own, log)

    def test_ranks_that_come_to_a_region_without_collectives_tune_it(self):
        patient = {"CONTEXTUNE_PRESYNC_TIMEOUT": "60"}
        for declared in (True, False):
            with self.subTest(declared=declared):
                logs = self.run_job(4, "kernels", PAIRS, variables=patient, declared=declared)
                for log in logs:
                    self.assertEqual(len(job.winners(log)), 1, log)
                    self.assertEqual(job.told(log), [])

    def test_ranks_that_tune_elsewhere_are_not_waited_for(self):
        # The others are still at it when these two ask.
        logs = self.run_job(4, "own_stage", PAIRS, "plain", 0, "slow", 50,
                            variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "60"})
        self.assert_agreed(logs)
        for rank, log in enumerate(logs):
            self.assertEqual(len([line for line in job.winners(log) if " site=sum " in line]), 1, log)
            [told] = [line for line in job.lines(log, "region") if job.field(line, "ranks")]
            self.assertEqual(job.field(told, "ranks"), "0-1" if rank < 2 else "2-3")
            self.assertIn("nobody else of the job is on the way" if rank < 2
                          else "communicators that it uses", job.field(told, "text"))

    def test_a_body_that_gives_something_to_ranks_elsewhere_is_not_repeated(self):
        short = {"CONTEXTUNE_PRESYNC_TIMEOUT": "1"}
        for log, said in zip(self.run_job(4, "sends", PAIRS, variables=short), self.asked):
            self.assertEqual(job.winners(log), [])
            self.assertIn("The region's body is not repeated", log)
            self.assertIn("is not repeated", said)

    def test_a_body_is_not_repeated_where_a_rank_of_its_communicators_waits_no_longer(self):
        # Ranks 1 and 2 wait for those elsewhere, then go on; the others would wait for a minute.
        short = {rank: job.Peculiar(variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "0.3"}) for rank in (1, 2)}
        logs = self.run_job(4, "sends", PAIRS, variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "60"},
                            peculiar=short)
        for rank, log in enumerate(logs):
            self.assertEqual(job.winners(log), [])
            [(reason, text)] = [told for told in job.told(log) if "is not repeated" in told[1]]
            self.assertEqual(reason, "no_agreement")
            self.assertIn({0: "rank 1, of a communicator",
                           3: "rank 2, of a communicator"}.get(rank, "came to it in time"), text)

    def test_what_is_not_tuned_says_so_at_the_call(self):
        for where in self.kinds:
            with self.subTest(where=where):
                logs = self.run_job(4, where, PAIRS, "absent", 3,
                                    variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "1"})
                self.assertEqual([blocks_of(log) for log in logs], [{"0-1": ["128"]}] * 2 + [{}, {}])
                self.assertEqual([said.strip() for said in self.asked[:2]], ["", ""])
                # On a busy machine rank 0 may have ended before rank 2 asks it.
                self.assertRegex(self.asked[2], "came to it in time|rank 0 did not answer")


class ChoiceGroups(choice_job.ChoiceTestCase):
    program = "choice_groups"

    def assert_groups(self, logs, expected):
        for rank, log in enumerate(logs):
            self.assertEqual(winners_of(log), of_rank(rank, expected), log)

    def test_disjoint_pairs_have_winners_of_their_own(self):
        for where in ("alone", "region"):
            with self.subTest(where=where):
                logs = self.run_job(4, where, PAIRS)
                self.assert_groups(logs, EXPECTED[PAIRS])
                self.assert_agreed(logs)

    def test_a_rank_may_be_in_several_groups(self):
        for where in ("alone", "region"):
            with self.subTest(where=where):
                logs = self.run_job(4, where, CHAIN)
                self.assert_groups(logs, EXPECTED[CHAIN])
                self.assert_agreed(logs)

    def test_groups_may_be_named_by_their_ranks(self):
        for declared in (True, False):
            with self.subTest(declared=declared):
                logs = self.run_job(4, "alone", CHAIN, "named", -1, declared=declared)
                self.assert_groups(logs, EXPECTED[CHAIN])
                self.assert_agreed(logs)

    def test_a_search_that_takes_longer_than_the_others_wait_costs_no_other_group(self):
        # Rank 2 waits for rank 1, and rank 3 for rank 2: both for the search of the first group.
        logs = self.run_job(4, "alone", CHAIN, "slow", 80, variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "0.5"})
        self.assert_groups(logs, EXPECTED[CHAIN])
        self.assert_agreed(logs)
        self.assertGreater(seconds_searched(logs[0]), 1.0, logs[0])

    def test_groups_of_several_threads_do_not_wait_for_one_another(self):
        logs = self.run_job(4, "alone", "0-1 2-3 1-2 0-3", "threads", -1)
        self.assert_agreed(logs)
        for rank, log in enumerate(logs):
            self.assertEqual(len(winners_of(log)), 2, log)

    def test_groups_in_a_ring_do_not_wait_for_one_another(self):
        # Each rank is late with what it does in one group, and in the other goes on before its peer:
        # with what the default left, and with what is there before the next run.
        for late in ("DtoH", "HtoD"):
            with self.subTest(late=late):
                peculiar = {rank: job.Peculiar(variables={
                    "SIMCUDA_FAULT": f"copy_late:{late}:bytes={4096 * (group + 1)},times=4"})
                    for rank, group in ((1, 0), (3, 1), (2, 2), (0, 3))}
                logs = self.run_job(4, "alone", "0-1 2-3 1-2 3-0", "threads", -1, "sizes", -1,
                                    peculiar=peculiar)
                self.assert_agreed(logs)
                for log in logs:
                    self.assertEqual(len(winners_of(log)), 2, log)

    def test_communicators_may_be_split_off_another(self):
        self.assert_groups(self.run_job(4, "alone", CHAIN, "split", -1), EXPECTED[CHAIN])

    def test_what_is_wrong_on_one_rank_is_given_up_by_its_group_alone(self):
        for where in ("alone", "region"):
            with self.subTest(where=where):
                logs = self.run_job(4, where, PAIRS, "wrong", 1)
                self.assert_groups(logs, {"0-1": "odd", "2-3": "odd"})
                for rank in (0, 1):
                    self.assertRegex(logs[rank], "reason=wrong_result .*implementation=even")
                for rank in (2, 3):
                    self.assertNotIn("reason=wrong_result", logs[rank])

    def test_ranks_that_are_in_no_group_are_not_waited_for(self):
        logs = self.run_job(4, "alone", "0-2", variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "60"})
        for rank in (0, 2):
            self.assertEqual(list(winners_of(logs[rank]).values()), [["even"]], logs[rank])
            self.assertIn("group=0+2", logs[rank])
        for rank in (1, 3):
            self.assertEqual(job.winners(logs[rank]), [])

    def test_one_that_does_not_ask_leaves_its_group_alone_with_the_default(self):
        logs = self.run_job(4, "alone", PAIRS, "absent", 3, variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "1"})
        for rank in (0, 1):
            self.assertEqual(winners_of(logs[rank]), {"0-1": ["even"]})
        self.assertEqual(job.winners(logs[2]), [])
        self.assertIn("no_agreement", [reason for reason, _ in job.told(logs[2])])

    def test_rank_0_leads_others_while_it_does_not_ask_itself(self):
        logs = self.run_job(4, "alone", "0-3 1-2", "absent", 0, variables={"CONTEXTUNE_PRESYNC_TIMEOUT": "1"})
        for rank in (1, 2):
            self.assertEqual(winners_of(logs[rank]), {"1-2": ["odd"]})
        self.assertEqual(job.winners(logs[3]), [])

    def test_ranks_that_are_not_those_of_the_communicator(self):
        for log in self.run_job(4, "alone", PAIRS, "claims", 4):
            self.assertEqual(job.winners(log), [])
            [(reason, text)] = job.told(log)
            self.assertEqual(reason, "no_rendezvous")
            self.assertIn("done by 4 ranks, and its communicator has 2", text)

    def test_two_choices_of_one_name_and_group(self):
        logs = self.run_job(4, "alone", PAIRS, "twice", -1)
        self.assert_agreed(logs)
        for rank, log in enumerate(logs):
            self.assertEqual({winner for all_ in winners_of(log).values() for winner in all_},
                             {"even" if rank < 2 else "odd"})


if __name__ == "__main__":
    unittest.main()
