"""Winners that were stored and have failed since: they are taken out of their file at once, for whoever
reads it next."""

import unittest

from stored_runs import StoredRuns, fault, large_demo

ONCE = large_demo(1)
REPLAY = ("--mode", "replay", "--no-confirm")


class FailedWinnersTest(StoredRuns):
    program = large_demo(20)

    def tuned_winner(self):
        """A site whose stored winner is not the default, its winner, and what the program prints."""
        log, out = self.run_program(*REPLAY, program=ONCE)
        name = next(site for (site, _), config in sorted(log.winners().items())
                    if config != "0" and site in ("rotate", "attend"))
        winner = self.site(name)["winner"]
        return name, winner, out

    def assert_open(self, name, winner, status):
        site = self.site(name)
        self.assertEqual((site["reason"], site["winner"]), ("no_samples", {}))
        self.assertEqual(site["replaced"][0]["winner"], winner)
        self.assertEqual([trial["status"] for trial in site["trials"] if trial["config"] == winner],
                         [status])

    def test_one_that_cannot_be_launched_any_more_is_tuned_again_by_the_next_run(self):
        name, winner, out = self.tuned_winner()
        failed, same = self.run_program(*REPLAY, program=large_demo(300),
                                        variables=fault("launch_fail", name, winner))
        self.assertEqual(len(failed.of("fallback", reason="winner_failed")), 1)
        self.assertEqual(same, self.bare(large_demo(300)))
        self.assert_open(name, winner, "failed")
        tuned, same = self.run_program(*REPLAY, program=ONCE)
        self.assertEqual(same, out)
        self.assertEqual({line["site"] for line in tuned.of("trial")}, {name})
        self.assertNotEqual(self.site(name)["reason"], "no_samples")
        done, _ = self.run_program(*REPLAY, program=ONCE)
        self.assertEqual(done.of("trial"), [])

    def test_one_that_has_taken_a_process_down_is_not_run_again(self):
        name, winner, out = self.tuned_winner()
        crash = fault("abort", name, winner)
        self.run_until_survived(*REPLAY, "--always-tune", program=ONCE, variables=crash)
        # Whoever only looks at what is stored finds the winner gone, too.
        again, same = self.run_program(*REPLAY, program=ONCE, variables=crash)
        self.assertEqual((again.of("trial"), same), ([], out))
        self.assertNotEqual(self.site(name)["winner"], winner)

    def test_one_that_is_blamed_is_taken_out_by_who_finds_it(self):
        name, winner, out = self.tuned_winner()
        path, _ = self.entry()
        text = path.read_text()
        crash = fault("abort", name, winner)
        self.run_until_survived(*REPLAY, "--always-tune", program=ONCE, variables=crash)
        # As if it had come from another machine's store since.
        path.write_text(text)
        _, same = self.run_program(*REPLAY, program=ONCE, variables=crash)
        self.assertEqual(same, out)
        self.assert_open(name, winner, "crashed")


if __name__ == "__main__":
    unittest.main()
