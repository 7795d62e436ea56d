"""Whatever happens to one rank, and whenever, the others end as they do without contextune, and their
logs name the rank and the reason."""

import concurrent.futures
import os
import signal
import unittest

import faults
import job
import tampering
from faults import SHORT, Peculiar

VICTIMS = (0, 1)  # 0 coordinates
NUM_RANKS = 3
SOME_MOMENTS = ("while it joins", "after the first agreement", "in the middle of the table",
                "while the others wait for an agreement")
# Of one wait: presync_timeout of SHORT or 5 s, and the 15 s for a verdict.
LONGEST_WAIT = 5 + 1 + 15


def all_at_once(cases):
    """Results by name; most of a case is waiting."""
    with concurrent.futures.ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        running = {name: pool.submit(*case) for name, case in cases.items()}
        return {name: future.result() for name, future in running.items()}


class Faults(unittest.TestCase):
    maxDiff = None

    def assert_well(self, outcome):
        self.assertEqual(outcome.wrong, [])
        self.assertLess(outcome.longest_wait, LONGEST_WAIT)

    def assert_named(self, outcome, rank, reasons=("no_agreement",)):
        # Who comes when rank 0 has heard of it, and ends, hears nothing but that.
        has_ended = rank != 0 and " launches_outside=" in outcome.logs[0]
        names = (f"rank {rank}", "rank 0") if has_ended else (f"rank {rank}",)
        if rank == 0:
            names += ("the coordinating rank",)
        for survivor, told in outcome.told.items():
            self.assertTrue(
                any(reason in reasons and name in text for reason, text in told for name in names),
                f"rank {survivor} says {told}")
            self.assertEqual(outcome.winners[survivor], [])

    def assert_tuned(self, outcome):
        for survivor, winners in outcome.winners.items():
            self.assertEqual(len(winners), 3, outcome.logs[survivor])
            self.assertEqual(winners, next(iter(outcome.winners.values())))
            self.assertEqual(outcome.told[survivor], [])

    def check_signal(self, number, moments=tuple(faults.MOMENTS)):
        cases = {(victim, moment): (faults.hit, "replay", NUM_RANKS, victim, moment, number)
                 for victim in VICTIMS for moment in moments}
        for (victim, moment), outcome in all_at_once(cases).items():
            with self.subTest(victim=victim, moment=moment):
                self.assert_well(outcome)
                # The others may have had all winners before it was hit.
                if moment == "after the winners" or all(outcome.winners.values()):
                    self.assert_tuned(outcome)
                elif not outcome.too_late:
                    self.assert_named(outcome, victim)

    def check_signal_in_live_mode(self, number):
        cases = {(victim, moment): (faults.hit, "live", 2, victim, moment, number)
                 for victim in VICTIMS for moment in SOME_MOMENTS}
        for (victim, moment), outcome in all_at_once(cases).items():
            with self.subTest(victim=victim, moment=moment):
                self.assert_well(outcome)

    def test_a_rank_is_killed(self):
        self.check_signal(signal.SIGKILL)

    def test_a_rank_is_killed_in_live_mode(self):
        self.check_signal_in_live_mode(signal.SIGKILL)

    def test_a_rank_stands_still_until_the_others_have_ended(self):
        self.check_signal(signal.SIGSTOP, SOME_MOMENTS)

    def test_a_rank_stands_still_in_live_mode(self):
        self.check_signal_in_live_mode(signal.SIGSTOP)

    def test_ranks_with_collectives_hang_without_one_that_was_killed_as_they_do_untuned(self):
        cases = {(victim, moment): (faults.hit, "collectives", 2, victim, moment, signal.SIGKILL)
                 for victim in VICTIMS for moment in ("in the middle of the table", "after the winners")}
        for (victim, moment), outcome in all_at_once(cases).items():
            with self.subTest(victim=victim, moment=moment):
                self.assert_well(outcome)

    def test_ranks_with_collectives_go_on_with_one_that_stood_still(self):
        steps, pause = None, 1.2
        cases = {(victim, moment): (faults.hit, "collectives", 2, victim, moment, signal.SIGSTOP, steps,
                                    {}, 0.0, pause)
                 for victim in VICTIMS
                 for moment in ("after the first agreement", "in the middle of the table")}
        for (victim, moment), outcome in all_at_once(cases).items():
            with self.subTest(victim=victim, moment=moment):
                self.assert_well(outcome)

    def test_ranks_with_collectives_that_are_not_alike(self):
        kinds = {
            "comes late": Peculiar(late=1),
            "without the shim": Peculiar(shim=False),
            "another space": Peculiar(
                variables={"CONTEXTUNE_SPACE": str(job.HERE / "other_collectives.lua")}),
            "other buckets": Peculiar(variables={"CONTEXTUNE_BUCKETS": "exact"}),
            "tuned apart": Peculiar(variables={"CONTEXTUNE_DISTRIBUTED": "off"}),
            "told how by its user": Peculiar(variables={"NCCL_ALGO": "RING,TREE"}),
        }
        cases = {(victim, name): (faults.peculiar, "collectives", 2, victim, what)
                 for victim in VICTIMS for name, what in kinds.items()}
        for (victim, name), outcome in all_at_once(cases).items():
            with self.subTest(name, victim=victim):
                self.assert_well(outcome)

    def test_a_rank_is_not_there_or_not_alike(self):
        kinds = {
            "comes late": (Peculiar(waits=True), SHORT),
            "without the shim": (Peculiar(shim=False), SHORT),
            "ends early": (Peculiar(argv=["sh", "-c", "exit 0"]), SHORT),
            "another space": (Peculiar(variables={"CONTEXTUNE_SPACE": str(job.HERE / "other.lua")}), {}),
            "other options": (Peculiar(variables={"CONTEXTUNE_N_REPEAT": "3"}), {}),
            "another secret": (Peculiar(variables={"CONTEXTUNE_SECRET": "x" * 32}), SHORT),
        }
        cases = {}
        for mode in ("replay", "live"):
            for victim in VICTIMS:
                for name, (what, variables) in kinds.items():
                    cases[mode, victim, name] = (faults.peculiar, mode, 2, victim, what, variables,
                                                 name != "ends early")
        for (mode, victim, name), outcome in all_at_once(cases).items():
            with self.subTest(name, mode=mode, victim=victim):
                self.assert_well(outcome)
                for survivor in outcome.winners:
                    self.assertEqual(outcome.winners[survivor], [])
                    self.assertNotEqual(outcome.told[survivor], [])
                # Where nobody waits, nobody can tell who did not come.
                if mode == "replay":
                    # Who has the wrong secret is known to nobody but the one who was turned away.
                    self.assert_named(outcome, 0 if name == "another secret" and victim == 0 else victim)

    def test_a_rank_that_ends_in_the_middle_of_its_visits(self):
        short = Peculiar(argv=[*job.DEMO, "--steps", 10])
        for victim, outcome in all_at_once(
                {victim: (faults.peculiar, "live", 2, victim, short, {}, False)
                 for victim in VICTIMS}).items():
            with self.subTest(victim=victim):
                self.assert_well(outcome)

    def test_a_config_that_fails_on_one_rank_wins_on_none(self):
        fails = {
            "launch_failed": {"SIMCUDA_FAULT": "launch_fail:project_x2;launch_fail:project_x4"},
            "wrong_result": {"SIMCUDA_FAULT": "wrong_result:project_x2;wrong_result:project_x4"},
        }
        cases = {(reason, victim): (faults.peculiar, "replay", 3, victim, Peculiar(variables=fault))
                 for reason, fault in fails.items() for victim in VICTIMS}
        for (reason, victim), outcome in all_at_once(cases).items():
            with self.subTest(reason, victim=victim):
                self.assert_well(outcome)
                self.assert_tuned(outcome)
                for log in outcome.logs:
                    self.assertIn(f"reason={reason}", log)
                    self.assertIn(f"It was seen on rank {victim}.", log)
                    self.assertNotRegex(log, "event=winner .*variant=project_x")

    def test_a_rank_that_cannot_write_its_log_is_tuned_like_the_others(self):
        for victim, outcome in all_at_once(
                {victim: (faults.peculiar, "replay", 2, victim,
                          Peculiar(variables={"CONTEXTUNE_LOG_DIR": "/proc/nowhere"}))
                 for victim in VICTIMS}).items():
            with self.subTest(victim=victim):
                self.assert_well(outcome)
                self.assert_tuned(outcome)

    def test_a_rank_whose_disk_is_full_is_tuned_like_the_others(self):
        for victim in VICTIMS:
            with self.subTest(victim=victim):
                outcome = faults.on_a_full_disk("replay", 2, victim)
                self.assert_well(outcome)
                self.assert_tuned(outcome)

    def test_a_child_that_inherited_the_variables_is_turned_away(self):
        for victim, outcome in all_at_once(
                {victim: (faults.peculiar, "replay", 2, victim,
                          faults.with_a_child(faults.STEPS["replay"]), {}, True, 2)
                 for victim in VICTIMS}).items():
            with self.subTest(victim=victim):
                self.assert_well(outcome)
                self.assert_tuned(outcome)
                self.assertIn("reason=no_agreement", outcome.logs[victim])

    def test_what_a_rank_says_is_cut_short_changed_said_again_or_late(self):
        cases = {(mode, how): (faults.tampered, mode, 2, 1, how, after, how != "held", None, SHORT)
                 for mode, after, hows in (("replay", 1500, tampering.HOWS),
                                           ("collectives", 4000, ("cut", "delayed")))
                 for how in hows}
        for case, outcome in all_at_once(cases).items():
            with self.subTest(case):
                self.assert_well(outcome)

    def test_a_rank_in_another_mode(self):
        for victim, outcome in all_at_once(
                {victim: (faults.peculiar, "replay", 2, victim, Peculiar(
                    variables={"CONTEXTUNE_MODE": "live"}), {}, True, 1, 60)
                 for victim in VICTIMS}).items():
            with self.subTest(victim=victim):
                self.assert_well(outcome)
                self.assert_named(outcome, victim)

    def test_a_stranger_changes_nothing(self):
        for mode, outcome in all_at_once(
                {mode: (faults.called_by_a_stranger, mode, 2, 1, steps)
                 for mode, steps in (("replay", 6), ("live", 8000))}).items():
            with self.subTest(mode):
                self.assert_well(outcome)
                self.assert_tuned(outcome)


if __name__ == "__main__":
    unittest.main(verbosity=2)
