"""What becomes of stored winners when a module, a source or a header that the space file names was
edited, or when only some of several ranks were."""

import shutil
import unittest

from stored_runs import DEMO, StoredRuns, large_demo, named


# The simulated driver loads the module, and refuses what NVRTC has built: that config fails.
SPACE = """
kernel "rotate" {
  space = { block = { 128, 512, 1024 } },
  apply = function(config, launch)
    launch.block.x = config.block
    if config.block == 1024 then OTHER end
  end,
}

kernel "attend" {
  space = { block = { 128, 1024 } },
  apply = function(config, launch) launch.block.x = config.block end,
}
"""
MODULE = SPACE.replace("OTHER", 'launch.module = "other.fatbin"')
SOURCE = SPACE.replace("OTHER", 'launch.source = "rotate.cu"')


class ChangedFilesTest(StoredRuns):
    program = large_demo(20)

    def setUp(self):
        super().setUp()
        self.module = self.work / "other.fatbin"
        image = (DEMO.parent / "demo_kernels.fatbin.sim").read_text()
        self.module.write_text(image.replace("library ", f"library {DEMO.parent}/"))
        (self.work / "rotate.cu").write_text('#include "tile.h"\n__global__ void rotate() {}\n')
        (self.work / "tile.h").write_text("#define TILE 4\n")

    def run_with(self, text, *flags, **how):
        path = self.work / "space.lua"
        path.write_text(text)
        log, out = self.run_program("--mode", "replay", "--confirm-min-pairs", "2", *flags,
                                    space=path, **{"program": large_demo(300)} | how)
        return log, sorted(out.splitlines())

    def edit(self, name):
        with open(self.work / name, "a", encoding="utf-8") as file:
            file.write("# edited\n")

    def assert_tuned_again_after_an_edit(self, text, *names):
        first, out = self.run_with(text)
        self.assertEqual({line["site"] for line in first.of("trial")}, {"rotate", "attend"})
        for name in names:
            with self.subTest(name):
                same, _ = self.run_with(text)
                self.assertEqual(same.of("trial"), [])
                self.edit(name)
                log, printed = self.run_with(text)
                self.assertEqual(printed, out)
                (named,) = log.of("fallback", reason="other_declaration")
                self.assertIn("'rotate'", named["text"])
                self.assertEqual({line["site"] for line in log.of("trial")}, {"rotate"})

    def test_a_module_that_was_edited_has_its_kernel_tuned_again_and_no_other(self):
        self.assert_tuned_again_after_an_edit(MODULE, "other.fatbin")

    def test_a_source_that_was_edited_has_its_kernel_tuned_again_and_no_other(self):
        self.assert_tuned_again_after_an_edit(SOURCE, "rotate.cu", "tile.h")

    def test_what_is_edited_beside_them_changes_nothing(self):
        self.run_with(MODULE)
        self.edit("rotate.cu")
        same, _ = self.run_with(MODULE)
        self.assertEqual((same.of("trial"), same.of("fallback", reason="other_declaration")),
                         ([], []))

    def run_ranks(self, text, edited):
        """Two ranks, of which the second has the module of another folder."""
        for rank in 0, 1:
            folder = self.work / f"space-{rank}"
            folder.mkdir(exist_ok=True)
            (folder / "space.lua").write_text(text)
            shutil.copy(self.module, folder)
            if rank == edited:
                with open(folder / "other.fatbin", "a", encoding="utf-8") as file:
                    file.write("# edited\n")
        script = f'CONTEXTUNE_SPACE={self.work}/space-$CONTEXTUNE_RANK/space.lua exec "$@"'
        return self.run_with(text, "-n", "2", "--distributed", "on",
                             program=("/bin/sh", "-c", script, "sh", *large_demo(300)))

    def assert_together(self, log):
        self.assertEqual(log.winners(0), log.winners(1))
        hashes = log.committed()
        self.assertNotEqual(hashes[0], [])
        self.assertEqual(hashes[0], hashes[1])

    def of_ranks(self, log, reason):
        return [len([line for line in lines if line.get("reason") == reason])
                for lines in log.ranks]

    def test_ranks_of_which_only_some_were_edited_do_not_just_take_what_is_stored(self):
        first, out = self.run_ranks(MODULE, None)
        self.assertNotEqual(first.of("trial"), [])
        with self.edited() as sites:
            named(sites, "rotate")["winner"] = {"block": 512}  # as if it had turned out the fastest
        same, _ = self.run_ranks(MODULE, None)
        self.assertEqual(same.of("trial"), [])
        self.assertEqual({line["verdict"] for line in same.of("confirm")}, {"skipped"})
        with self.subTest("not the first"):
            log, printed = self.run_ranks(MODULE, 1)
            self.assertEqual(printed, out)
            self.assertEqual(self.of_ranks(log, "other_declaration"), [0, 1])
            self.assertEqual(self.of_ranks(log, "stored_differ"), [1, 1])
            self.assertNotIn("skipped", {line["verdict"] for line in log.of("confirm")})
            self.assert_together(log)
        with self.subTest("the first"):
            log, printed = self.run_ranks(MODULE, 0)
            self.assertEqual(printed, out)
            self.assertEqual(self.of_ranks(log, "other_declaration"), [1, 0])
            self.assertEqual({line["site"] for line in log.of("trial")}, {"rotate"})
            self.assert_together(log)


if __name__ == "__main__":
    unittest.main()
