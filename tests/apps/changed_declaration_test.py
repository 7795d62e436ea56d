"""What becomes of stored winners, and of configs that were stored as failed, when the space file or the
options are others than when they were found."""

import json
import unittest

from stored_runs import StoredRuns, demo

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

    def site(self, name):
        (path,) = (self.work / "store" / "decode").glob("*.json")
        (site,) = (one for one in json.loads(path.read_text())["sites"] if one["name"] == name)
        return site

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

    def test_what_an_earlier_contextune_has_stored_counts_and_is_watched_from_then_on(self):
        self.run_with(SPACE)
        (path,) = (self.work / "store" / "decode").glob("*.json")
        entry = json.loads(path.read_text())
        entry["schema"] = 2
        for site in entry["sites"]:
            self.assertNotEqual(site.pop("declaration"), "")
        path.write_text(json.dumps(entry))
        self.assert_tuned_again(SPACE, set())
        self.assertNotEqual(self.site("rotate")["declaration"], "")
        self.assert_tuned_again(SPACE.replace("= grid(config)", "= 1"), {"rotate"})


if __name__ == "__main__":
    unittest.main()
