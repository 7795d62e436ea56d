"""Kernels are listed without a GPU."""

import json
import os
import pathlib
import unittest

from harness import CommandTest

# Made of entry_waits.cu where there is a compiler.
CUBIN = pathlib.Path(os.environ["CONTEXTUNE_TEST_IMAGES"]) / "entry_waits.cubin"


class Kernels(CommandTest):
    def test_files_without_kernels_are_named_with_what_is_wrong(self):
        folder = os.path.dirname(__file__)
        for path, wrong in ((os.environ["CONTEXTUNE_COMMAND"], "it has no code for a GPU"),
                            (__file__, "it is no program, library, cubin or fatbin"),
                            (folder, "cannot be read: it is no regular file"),
                            ("/nowhere/kernels.so", "cannot be read: No such file or directory")):
            result = self.contextune("kernels", path)
            self.assertEqual((result.returncode, result.stdout), (1, ""), path)
            self.assertTrue(result.stderr.startswith(f"contextune kernels: {path}"), result.stderr)
            self.assertIn(wrong, result.stderr)

    def test_a_file_has_to_be_given(self):
        result = self.contextune("kernels", "--all")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("no file was given", result.stderr)

    @unittest.skipUnless(CUBIN.exists(), "there is no nvcc")
    def test_kernels_are_listed_with_registers_and_what_is_against_a_wait(self):
        result = self.contextune("kernels", str(CUBIN))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], str(CUBIN))
        self.assertEqual(lines[1].split(), ["arch", "registers", "wait", "kernel"])
        rows = {line.split()[-1]: line for line in lines[2:9]}
        self.assertRegex(rows["plain"], r"^  sm_90 +\d+  yes: in_place +plain$")
        self.assertRegex(rows["stack"], r"^  sm_90 +\d+  yes: moved +stack$")
        self.assertRegex(rows["waits"], r"^  sm_90 +\d+  no: own_wait +waits$")
        self.assertRegex(rows["triggers"], r"^  sm_90 +\d+  no: own_trigger +triggers$")
        self.assertEqual({line.index(name) for name, line in rows.items()}, {lines[1].index("kernel")})
        self.assertEqual(lines[9], "  sm_90: 7 kernels, 5 can be given a wait at the entry: 4 in place, "
                                   "1 moved, 0 by a detour")

    @unittest.skipUnless(CUBIN.exists(), "there is no nvcc")
    def test_programs_get_json_also_where_a_file_is_missing(self):
        result = self.contextune("kernels", "--json", str(CUBIN), "/nowhere", str(CUBIN))
        self.assertEqual(result.returncode, 1)
        kernels = json.loads(result.stdout)
        self.assertEqual(len(kernels), 14)
        waits = [one for one in kernels if one["symbol"] == "waits"][0]
        self.assertGreater(waits.pop("registers"), 0)
        self.assertEqual(waits, {"file": str(CUBIN), "architecture": "sm_90", "symbol": "waits",
                                 "wait": False, "form": None, "reason": "own_wait"})
        self.assertEqual([one["form"] for one in kernels[:7] if one["wait"]].count("in_place"), 4)
        self.assertEqual(json.loads(self.contextune("kernels", "--json", "/nowhere").stdout), [])


if __name__ == "__main__":
    unittest.main()
