"""A winner counts once what it computes was compared with what the default does: those that live mode has
found are compared by the first run that replays, and stored as that."""

import unittest

from stored_runs import StoredRuns, demo, fault, named

VISITS = demo(600)


class ComparedWinnersTest(StoredRuns):
    def sites(self):
        return {site["name"]: site for site in self.entry()[1]["sites"]}

    def tuned_live(self):
        log, _ = self.run_program("--mode", "live", "--no-confirm", "--margin", "0", "--max-slowdown", "0",
                                  program=VISITS)
        self.assertEqual(log.of("replay"), [])
        tuned = {name: site["winner"] for name, site in self.sites().items()
                 if not site["terms"]["compared"]}
        self.assertIn("rotate", tuned)
        return tuned

    def test_what_was_found_live_is_compared_once_before_it_counts(self):
        tuned = self.tuned_live()
        bare = self.bare()
        log, out = self.run_program("--mode", "replay", "--no-confirm")
        self.assertEqual(out, bare)
        self.assertEqual({line["text"].split("'")[1] for line in log.of("fallback", reason="not_compared")},
                         set(tuned))
        self.assertEqual(log.of("trial"), [])
        self.assertEqual({name: site["winner"] for name, site in self.sites().items() if name in tuned}, tuned)
        self.assertEqual({site["terms"]["compared"] for site in self.sites().values()}, {True})
        again, out = self.run_program("--mode", "replay", "--no-confirm")
        self.assertEqual(out, bare)
        self.assert_starts_tuned(again, log.winners())
        self.assertEqual(again.of("replay"), [])

    def test_one_that_is_wrong_here_is_found_and_taken_out_of_the_store(self):
        winner = self.tuned_live()["rotate"]
        bare = self.bare()
        wrong = fault("wrong_result", "rotate", winner)
        for _ in range(2):
            log, out = self.run_program("--mode", "replay", "--no-confirm", variables=wrong)
            self.assertEqual(out, bare)
            site = self.sites()["rotate"]
            self.assertNotEqual(site["winner"], winner)
            self.assertIn("wrong_result",
                          [trial["status"] for trial in site["trials"] if trial["config"] == winner])
        self.assertEqual(log.of("fallback", reason="not_compared"), [])

    def test_live_mode_uses_what_live_mode_has_found(self):
        tuned = self.tuned_live()
        log, _ = self.run_program("--mode", "live", "--no-confirm", program=VISITS)
        self.assertEqual(log.of("trial"), [])
        self.assertEqual(log.of("fallback", reason="not_compared"), [])
        self.assertEqual({name for name, site in self.sites().items() if not site["terms"]["compared"]},
                         set(tuned))

    def test_one_that_its_own_trial_refutes_is_never_run(self):
        self.run_program("--mode", "replay", "--no-confirm", "--margin", "0")
        with self.edited() as sites:
            site = named(sites, "rotate")
            site["winner"] = {"block": 512, "per_sm": 2}
            for trial in site["trials"]:
                if trial["config"] == site["winner"]:
                    trial["status"] = "wrong_result"
        wrong = fault("wrong_result", "rotate", site["winner"])
        log, out = self.run_program("--mode", "replay", "--no-confirm", variables=wrong)
        self.assertEqual(out, self.bare())
        (line,) = log.of("fallback", reason="refuted_winner")
        self.assertIn("whose own trial says wrong_result", line["text"])
        self.assertNotEqual(self.sites()["rotate"]["winner"], site["winner"])
        again, _ = self.run_program("--mode", "replay", "--no-confirm", variables=wrong)
        self.assertEqual(again.of("fallback", reason="refuted_winner"), [])


if __name__ == "__main__":
    unittest.main()
