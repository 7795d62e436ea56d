"""Stored winners of programs of other shapes: kernels that are loaded anew for it, bodies that a program
repeats itself, ranks with stores of their own."""

import re
import shutil
import unittest

from stored_runs import BUILD, DEMO, SPACE, TENSOR_PARALLEL, StoredRuns, demo, named

BODIES = BUILD / "apps" / "rank_bodies"


class StoredShapesTest(StoredRuns):
    def test_kernels_that_have_to_be_loaded_first_run_as_soon_as_they_are_there(self):
        folder = self.work / "demo"
        shutil.copytree(DEMO.parent, folder)
        module = folder / "other.fatbin"
        module.write_text(f"simcuda image 1\nlibrary {folder / 'libdemo_kernels_sim.so'}\n")
        text, count = re.subn("(  launch.grid.x = .*)\n", "\\1\n  launch.module = \"other.fatbin\"\n",
                              SPACE.read_text(), count=1)
        self.assertEqual(count, 1)
        (folder / "space.lua").write_text(text)
        how = {"space": folder / "space.lua", "program": demo(20, folder / DEMO.name)}
        flags = ("--mode", "replay", "--no-confirm")
        first, out = self.run_program(*flags, **how)
        self.assertNotEqual(first.winners(), {})
        self.assertNotEqual(set(first.winners().values()), {"0"})
        again, same = self.run_program(*flags, **how)
        self.assertEqual(same, out)
        self.assertEqual(again.of("trial"), [])
        self.assertEqual(again.winners(), first.winners())
        # It was the module that ran: where it cannot be loaded, it is as if nothing were stored.
        module.write_text("no image")
        without, same = self.run_program(*flags, **how)
        self.assertEqual(same, out)
        self.assertEqual(set(without.winners().values()) - {"0"}, set())

    def test_a_body_in_which_a_config_breaks_the_context_blames_that_config(self):
        program = (BODIES, "1", "0", self.work / "meet")
        out = self.bare(program)
        fault = {"SIMCUDA_FAULT": "sticky:fill:block=128"}
        ends, log, printed = self.run_until_survived(program=program, variables=fault)
        self.assertEqual(printed, out)
        self.assertIn(ends, (1, 2))
        self.assert_blames_only(log, "fill.0", {"block": 128})
        again, printed = self.run_program(program=program, variables=fault)
        self.assertEqual(printed, out)
        self.assertEqual(again.of("trial"), [])

    def test_what_only_some_ranks_have_is_stored_by_the_first_of_them(self):
        for rank in range(4):
            shutil.copytree(DEMO.parent, self.work / f"rank-{rank}")
        for rank in 2, 3:
            with open(self.work / f"rank-{rank}" / "demo_kernels.fatbin.sim", "a",
                      encoding="utf-8") as image:
                image.write("registers 41\n")  # so that its kernels are others
        few = self.work / "few.lua"
        few.write_text(SPACE.read_text().replace("{ 128, 256, 512, 1024 }", "{ 128, 1024 }"))
        def start():
            script = f'exec {self.work}/rank-$CONTEXTUNE_RANK/{DEMO.name} "$@"'
            return self.run_program("-n", "4", "--distributed", "on", "--mode", "replay",
                                    "--no-confirm", space=few, program=(
                                        "/bin/sh", "-c", script, "sh", *demo(4)[1:]))
        first, out = start()
        self.assertEqual([len([line for line in lines if line.get("action") == "saved"])
                          for lines in first.ranks], [1, 0, 1, 0])
        keys = {(site["name"], str(site["key"])) for site in self.entry()[1]["sites"]}
        self.assertEqual(len(keys), 2 * len({name for name, _ in keys}))
        again, same = start()
        self.assertEqual(sorted(same.splitlines()), sorted(out.splitlines()))
        self.assertEqual(again.of("trial"), [])
        for rank in range(4):
            self.assertEqual(again.winners(rank), first.winners(rank))

    def test_ranks_that_have_stored_other_winners_take_those_of_the_first(self):
        def start(*flags):
            script = f'CONTEXTUNE_CACHE_DIR={self.work}/store-$CONTEXTUNE_RANK exec "$@"'
            return self.run_program(
                "-n", "2", "--distributed", "on", "--mode", "replay", "--no-confirm", *flags,
                program=("/bin/sh", "-c", script, "sh", TENSOR_PARALLEL, "--meet",
                         self.work / "meet", "--steps", "10", "--tokens", "32"),
                region="nvtx:step", space=DEMO.parent / "tensor_parallel.lua")
        first, out = start()
        shutil.rmtree(self.work / "store-1", ignore_errors=True)
        shutil.copytree(self.work / "store-0", self.work / "store-1")
        with self.edited("step", "store-1") as sites:
            site = named(sites, "expand")
            site["winner"] = next(trial["config"] for trial in site["trials"]
                                  if trial["config"] not in (site["winner"], {}))
        again, same = start()
        self.assertEqual(sorted(same.splitlines()), sorted(out.splitlines()))
        self.assertEqual(again.of("trial"), [])
        self.assertEqual(len(again.of("store", action="found")), 2)
        for rank in range(2):
            self.assertEqual(again.winners(rank), first.winners(0))
        self.assertEqual(len(again.of("fallback", reason="stored_differ")), 2)
        hashes = again.committed()
        self.assertNotEqual(hashes[0], [])
        self.assertEqual(hashes[0], hashes[1])


if __name__ == "__main__":
    unittest.main()
