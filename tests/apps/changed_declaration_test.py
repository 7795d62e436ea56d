"""What becomes of stored winners, and of configs that were stored as failed, when the space file or the
options are others than when they were found."""

import json
import shutil
import subprocess
import unittest

from stored_runs import COMMAND, StoredRuns, demo

SPACE = """
local function grid(config) return config.per_sm * device.num_sms end

kernel "rotate" {
  space = {
    block = { 128, 1024 },
    per_sm = { 2, 8 },
  },
  apply = function(config, launch)
    launch.block.x = config.block
    launch.grid.x = grid(config)
  end,
}

kernel "attend" {
  space = { block = { 128, 1024 } },
  apply = function(config, launch)
    launch.block.x = config.block
  end,
}
"""


class ChangedDeclarationTest(StoredRuns):
    def run_with(self, text, *flags, program=demo(4), **how):
        path = self.work / "space.lua"
        path.write_text(text)
        return self.run_program("--mode", "replay", "--confirm-min-pairs", "2", *flags,
                                program=program, space=path, **how)

    def assert_tuned_again(self, text, sites):
        log, out = self.run_with(text)
        self.assertEqual(out, self.bare(demo(4)))
        self.assertEqual({line["site"] for line in log.of("trial")}, sites)
        named = {line["text"].split("'")[1] for line in log.of("fallback",
                                                               reason="other_declaration")}
        self.assertEqual(named, sites)
        again, _ = self.run_with(text)
        self.assertEqual(again.of("trial"), [])
        return log

    def test_a_kernel_whose_apply_was_edited_is_tuned_and_no_other(self):
        first, _ = self.run_with(SPACE)
        self.assertEqual({line["site"] for line in first.of("trial")}, {"rotate", "attend"})
        self.assert_tuned_again(SPACE, set())
        # Of values that were the winner's before, and mean something else now.
        self.assert_tuned_again(SPACE.replace("= grid(config)", "= 1"), {"rotate"})
        self.assertEqual(self.site("attend")["replaced"], [])
        self.assertEqual(len(self.site("rotate")["replaced"]), 1)
        self.assert_tuned_again(SPACE, {"rotate"})
        self.assert_tuned_again(SPACE.replace("return config.per_sm *", "return 2 *"), {"rotate"})

    def test_a_region_that_is_entered_once_is_tuned_by_the_next_run(self):
        once = demo(1)
        self.run_with(SPACE, program=once)
        edited = SPACE.replace("launch.block.x = config.block\n  end",
                               "launch.block.x = config.block / 2\n  end")
        self.assertNotEqual(edited, SPACE)
        looked, out = self.run_with(edited, program=once)
        self.assertEqual(out, self.bare(once))
        self.assertEqual(len(looked.of("fallback", reason="other_declaration")), 1)
        tuned, _ = self.run_with(edited, program=once)
        self.assertEqual({line["site"] for line in [*looked.of("trial"), *tuned.of("trial")]},
                         {"attend"})
        done, _ = self.run_with(edited, program=once)
        self.assertEqual(done.of("trial"), [])

    def test_lines_that_move_and_configs_that_are_added_change_nothing_else(self):
        first, _ = self.run_with(SPACE)
        self.assert_tuned_again("-- A comment.\n" + SPACE + "\n-- Another one.\n", set())
        log, _ = self.run_with(SPACE.replace("per_sm = { 2, 8 }", "per_sm = { 2, 4, 8 }"))
        self.assertEqual({line["site"] for line in log.of("trial")}, {"rotate"})
        self.assertEqual(log.of("fallback", reason="other_declaration"), [])
        # Beside the default and what has won.
        tried = {(line["block"], line["per_sm"]) for line in log.of("trial")
                 if line["config"] != "0"}
        (won,) = ({(line["block"], line["per_sm"])} if line["config"] != "0" else set()
                  for line in first.of("winner", site="rotate"))
        self.assertEqual(tried - won, {("128", "4"), ("1024", "4")})

    def test_an_added_config_is_measured_alone_where_prune_looks_at_the_launch_as_well(self):
        space = SPACE.replace("  apply", "  prune = function(config, launch)\n"
                              "    return launch.block.x + config.block > 0\n  end,\n  apply")
        grown = space.replace("per_sm = { 2, 8 }", "per_sm = { 2, 4, 8 }")
        for program in (demo(4), demo(1)):
            shutil.rmtree(self.work / "store", ignore_errors=True)
            first, _ = self.run_with(space, program=program)
            self.assertTrue(any("kept=" in line["key"] for line in first.of("winner")))
            won = {(line["block"], line["per_sm"]) for line in first.of("winner", site="rotate")
                   if line["config"] != "0"}
            tried = set()
            for _ in range(2):
                log, _ = self.run_with(grown, program=program)
                tried |= {(line["site"], line["block"], line["per_sm"]) for line in log.of("trial")
                          if line["config"] != "0"}
            self.assertEqual(tried - {("rotate", *config) for config in won},
                             {("rotate", "128", "4"), ("rotate", "1024", "4")})
            done, _ = self.run_with(grown, program=program)
            self.assertEqual(done.of("trial"), [])

    def faults(self, kind, *grids):
        return {"SIMCUDA_FAULT": ";".join(f"{kind}:rotate:block=1024,grid={grid}" for grid in grids)}

    def statuses(self, name):
        return {trial["status"] for trial in self.site(name)["trials"]}

    def test_a_config_that_was_wrong_is_tried_again_within_a_tolerance(self):
        variables = self.faults("wrong_result", 2 * 132)
        self.run_with(SPACE, variables=variables)
        self.assertIn("wrong_result", self.statuses("rotate"))
        same, _ = self.run_with(SPACE, variables=variables)
        self.assertEqual(same.of("trial"), [])
        log, _ = self.run_with(SPACE, "--tolerance", "f32:0.5")
        self.assertEqual({line["site"] for line in log.of("trial")}, {"rotate"})
        self.assertNotIn("wrong_result", self.statuses("rotate"))
        # A winner that was found so is none without it.
        strict, _ = self.run_with(SPACE)
        won = {site for (site, _), config in log.winners().items()
               if config != "0" and site == "rotate"}
        self.assertEqual({line["site"] for line in strict.of("trial")}, won)
        self.assertEqual(len(strict.of("fallback", reason="loose_tolerance")), len(won))

    def test_a_config_that_could_not_be_launched_is_tried_again_where_it_is_declared_anew(self):
        self.run_with(SPACE, variables=self.faults("launch_fail", 2 * 132))
        self.assertIn("failed", self.statuses("rotate"))
        same, _ = self.run_with(SPACE)
        self.assertEqual(same.of("trial"), [])
        self.run_with(SPACE.replace("return config.per_sm *", "return 2 * config.per_sm *"))
        self.assertNotIn("failed", self.statuses("rotate"))

    def test_a_config_that_took_a_process_down_is_tried_again_once_it_is_forgiven(self):
        fault = self.faults("abort", 2 * 132)
        for _ in range(6):
            path = self.work / "space.lua"
            path.write_text(SPACE)
            status, _, _ = self.end(self.start("--mode", "replay", "--no-confirm", program=demo(4),
                                               space=path, variables=fault))
            if status == 0:
                break
        self.assertEqual(status, 0)
        again, _ = self.run_with(SPACE, "--no-confirm", variables=fault)
        self.assertEqual(again.of("trial"), [])
        subprocess.run([COMMAND, "store", "blamed", "--forget"], check=True, env=self.environment,
                       capture_output=True)
        log, _ = self.run_with(SPACE, "--no-confirm")
        self.assertEqual({line["site"] for line in log.of("trial")}, {"rotate"})
        self.assertNotIn("crashed", self.statuses("rotate"))

    def test_a_winner_that_was_not_confirmed_is_by_a_run_that_confirms(self):
        first, _ = self.run_with(SPACE, "--no-confirm", "--margin", "0")
        won = {site for (site, _), config in first.winners().items() if config != "0"}
        self.assertEqual({name for name in ("rotate", "attend")
                          if not self.site(name)["terms"]["confirmed"]}, won)
        same, _ = self.run_with(SPACE, "--no-confirm", "--margin", "0")
        self.assertEqual([line["verdict"] for line in same.of("confirm")], ["skipped"])
        only, _ = self.run_with(SPACE, "--store", "stored")
        self.assertEqual(only.winners(), same.winners())
        self.assertEqual([line["verdict"] for line in only.of("confirm")], ["skipped"])
        log, _ = self.run_with(SPACE)
        self.assertNotEqual(log.of("confirm")[0]["verdict"], "skipped")
        for name in ("rotate", "attend"):
            self.assertTrue(self.site(name)["terms"]["confirmed"])
        again, _ = self.run_with(SPACE)
        self.assertEqual(again.of("trial"), [])
        self.assertEqual([line["verdict"] for line in again.of("confirm")], ["skipped"])

    def test_what_an_earlier_contextune_has_stored_counts_and_is_watched_from_then_on(self):
        self.run_with(SPACE)
        path, entry = self.entry()
        entry["schema"] = 2
        for site in entry["sites"]:
            self.assertNotEqual(site.pop("declaration"), "")
            del site["terms"], site["progress"]
        path.write_text(json.dumps(entry))
        self.assert_tuned_again(SPACE, set())
        self.assertNotEqual(self.site("rotate")["declaration"], "")
        self.assert_tuned_again(SPACE.replace("= grid(config)", "= 1"), {"rotate"})


if __name__ == "__main__":
    unittest.main()
