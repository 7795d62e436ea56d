"""`contextune run` with the real library and the demo on the simulated driver: what a person is told of
how the region was tuned is what happened."""

import json
import unittest

from demo_runs import COMMAND, DEMO, SMALL_DEMO, DemoRuns

QUICK = ("--n-warmup", "0", "--n-repeat", "1", "--no-refine", "--no-confirm")


class ReplayRun(DemoRuns):
    def tuned(self, *flags, steps, space=DEMO.parent / "demo.lua"):
        """The region, and the report."""
        flags = ("--region", "nvtx:decode", "--space", space, *QUICK, *flags)
        (process,), report = self.run_under(flags, (*SMALL_DEMO, "--steps", steps))
        (region,) = process["regions"]
        return region, report

    def test_a_program_that_visits_its_region_once_is_tuned(self):
        region, report = self.tuned(steps=1)
        self.assertEqual((region["mode"], region["stage"]), ("replay", "finished"))
        (replay,) = region["replays"]
        self.assertEqual((replay["visit"], replay["operations"]), (1, 5))
        self.assertGreaterEqual(replay["replays"], region["passes"])
        self.assertLess(0, replay["dirty_bytes"])
        self.assertLess(replay["dirty_bytes"], replay["footprint_bytes"])
        self.assertRegex(report, rf"replayed in 1 visit: {replay['replays']} replays of 5 operations, "
                                 r"[0-9.]+ MiB put back before each, the program stood still for "
                                 r"[0-9.]+ m?s \(simulated\)")
        self.assertEqual({site["name"] for site in region["sites"] if site["winner"]},
                         {"rotate", "remember", "attend", "project"})

    def test_live_is_told_apart(self):
        region, report = self.tuned("--mode", "live", "--max-slowdown", "0", steps=60)
        self.assertEqual((region["mode"], region["why_live"], region["replays"]), ("live", None, []))
        self.assertIn(f"live over {region['entries']} visits\n", report)

    def test_what_stands_in_the_way_of_a_replay_is_told(self):
        region, report = self.tuned("--replay-memory", "64K", "--max-slowdown", "0", steps=60)
        self.assertEqual((region["mode"], region["why_live"]), ("live", "replay_memory"))
        self.assertIn(f"live over {region['entries']} visits, because replay_memory", report)

    def test_a_pin_that_only_the_program_can_judge_is_refused_in_it_with_the_list(self):
        space = self.work / "asks-the-device.lua"
        space.write_text("local sms = device.num_sms\n" + (DEMO.parent / "demo.lua").read_text())
        region, report = self.tuned("--force", "rotate=block=128,attend=block=77,project=99", steps=1,
                                    space=space)
        self.assertRegex(report, r'force_unmatched, decode, rotate: "block=128" means several configs of '
                                 r'"rotate", which is not pinned: \d+ \(block=128 per_sm=\d+\), ')
        self.assertRegex(report, r'force_unmatched, decode, attend: "attend" has no config "block=77" and '
                                 r'is not pinned; it has 0 \(as launched\), 1 \(block=')
        self.assertIn('"project" has no config "99"', report)
        # They are tuned as if nothing had been pinned.
        for site in region["sites"]:
            self.assertNotEqual(site["winner"]["reason"], "pinned")
            self.assertNotEqual(site["trials"], [])

    def test_a_pinned_site_is_shown_and_an_excluded_one_is_named(self):
        region, report = self.tuned("--force", "attend=block=128 per_sm=8", "--exclude", "rotate",
                                    steps=1)
        winners = {site["name"]: site["winner"] for site in region["sites"]}
        self.assertEqual(winners["attend"]["reason"], "pinned")
        self.assertNotIn("rotate", winners)
        self.assertIn("excluded, decode, rotate: The kernel is not tuned: --exclude finds something in its name.",
                      report)

    def test_pinned_launches_say_how_many_went_so(self):
        program = (*SMALL_DEMO, "--steps", 10)
        bare = self.execute(*program)
        logs = self.work / "logs"
        self.assertEqual(self.execute(COMMAND, "run", "--region", "auto", "--log-dir", logs,
                                      "--report", "report.txt", "--force", "launches=gathered=16", "--",
                                      *program), bare)
        self.assertRegex((logs / "rank-0.log").read_text(),
                         r" event=submission region=auto launches=\S+ state=pinned .*chained=0 held=\d+ ")

    def test_the_ranks_of_a_job_have_a_log_each_and_are_compared(self):
        program = (*SMALL_DEMO, "--steps", 2)
        bare = self.execute(*program)
        output = self.execute(COMMAND, "run", "-n", 2, "--region", "nvtx:decode", "--space",
                              DEMO.parent / "demo.lua", "--report", "report.txt", *QUICK, "--", *program)
        self.assertEqual(sorted(output.splitlines()), sorted((bare * 2).splitlines()))
        self.assertEqual({log.name for log in (self.work / ".autotune_logs").iterdir()},
                         {"rank-0.log", "rank-1.log"})
        (comparison,) = json.loads(self.execute(COMMAND, "logs", "--json"))["comparisons"]
        self.assertEqual((comparison["ranks"], len(comparison["runs"])), ([0, 1], 1))
        self.assertTrue(comparison["together"])
        (region,) = comparison["regions"]
        self.assertEqual({site["name"] for site in region["sites"]},
                         {"rotate", "remember", "attend", "project"})
        self.assertGreater(region["batches"], 0)
        self.assertEqual(region["same_batches"], region["batches"])
        self.assertIn("on 2 ranks", (self.work / "report.txt").read_text())


if __name__ == "__main__":
    unittest.main()
