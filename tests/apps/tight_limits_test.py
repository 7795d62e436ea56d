"""Programs with little stack or memory compute under the shim what they compute alone."""

import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get(
    "CONTEXTUNE_TEST_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
PROGRAM = BUILD / "apps" / "tight_limits"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
SPACE = pathlib.Path(__file__).resolve().parent / "awkward_programs.lua"
PATIENCE = 100


def plain_environment():
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_"))}
    kept["LD_LIBRARY_PATH"] = str(BUILD / "simcuda")
    kept["CONTEXTUNE_STORE"] = "off"
    return kept


class TightLimitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="contextune-apps-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, what, **more):
        return subprocess.run([PROGRAM, what], env=plain_environment() | more, cwd=self.folder,
                              text=True, capture_output=True, timeout=PATIENCE)

    def log_of_unchanged(self, what, space=SPACE, **more):
        bare = self.run_program(what)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertNotIn("MISSING", bare.stdout)
        tuned = self.run_program(
            what, LD_PRELOAD=str(SHIM), NVTX_INJECTION64_PATH=str(SHIM), CONTEXTUNE_REGION="nvtx:R",
            CONTEXTUNE_SPACE=str(space), CONTEXTUNE_LOG_DIR=str(self.folder), **more)
        self.assertEqual((tuned.returncode, tuned.stdout, tuned.stderr),
                         (0, bare.stdout, bare.stderr))
        return "".join(file.read_text() for file in self.folder.glob("rank-*.log"))

    def test_a_thread_of_48_kib(self):
        self.assertIn("event=winner", self.log_of_unchanged("stack"))

    def test_a_deeply_nested_space_file_on_a_thread_of_48_kib(self):
        deep = self.folder / "deep.lua"
        for opens, closes in (("(", ")"), ("{", "}"), ("do ", "end "), ("f(function() ", "end) ")):
            deep.write_text(("local x = 1 + " if opens in "({" else "") + opens * 5000 + closes * 5000)
            with self.subTest(opens=opens):
                self.assertIn("is nested too deeply", self.log_of_unchanged("stack", deep))

    def test_a_deeply_nested_regular_expression_on_a_thread_of_48_kib(self):
        log = self.log_of_unchanged("stack", CONTEXTUNE_ONLY="(" * 2000 + "advance" + ")" * 2000)
        self.assertIn("nested more than 50 deep", log)

    def test_memory_of_which_a_few_megabytes_are_left(self):
        self.log_of_unchanged("data")


if __name__ == "__main__":
    unittest.main(verbosity=2)
