"""The space files of the pages do what these say of them, and so does the command of README.md:
unmodified programs on the simulated driver and the simulated NCCL, under `contextune run`."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"])
PATIENCE = 100


class ReadmeSpacesTest(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="contextune-readme-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        for file in HERE.glob("*.lua"):
            shutil.copy(file, self.work)
        (self.work / "engine").symlink_to(BUILD / "apps" / "engine")
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_", "NCCL_", "CUDA_"))}
        self.environment = kept | {
            "LD_LIBRARY_PATH": f"{BUILD / 'simnccl'}:{BUILD / 'simcuda'}", "SIMNCCL_DEADLINE_S": "40",
            "PATH": f"{BUILD / 'bin'}:{kept['PATH']}", "CONTEXTUNE_CACHE_DIR": str(self.work / "store")}

    def run_in_shell(self, command):
        done = subprocess.run(command, shell=True, cwd=self.work, env=self.environment, text=True,
                              capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def lines(self, event, rank=0):
        log = (self.work / ".autotune_logs" / f"rank-{rank}.log").read_text()
        return "\n".join(line for line in log.splitlines() if f" event={event} " in line)

    def test_the_first_command_tunes_the_first_space(self):
        bare = self.run_in_shell("./engine --model 3")
        text = (HERE.parent.parent / "README.md").read_text()
        (command,) = re.findall(r"^contextune run --region nvtx:decode --space .* --model x$", text,
                                re.MULTILINE)
        tuned = self.run_in_shell(command.replace("--model x", "--model 3"))
        self.assertEqual(tuned.stdout, bare.stdout)
        # The launch as written, and 16 products less the one that prune rules out.
        self.assertRegex(self.lines("site"), r'site=saxpy_grid_stride .* key=65536" configs=16 ')
        self.assertRegex(self.lines("winner"), r"site=saxpy_grid_stride .* block=\d+ per_sm=\d")
        # Whether CUPTI can be let go of depends on when.
        fallbacks = [line for line in self.lines("fallback").splitlines()
                     if " reason=cupti_stays " not in line]
        self.assertEqual(fallbacks, [])

    def test_ranks_try_what_is_declared_of_a_collective(self):
        program = BUILD / "demo" / "tensor_parallel"
        if not program.exists():
            self.skipTest("there is no simulated NCCL")
        self.run_in_shell(
            "contextune run -n 2 --region nvtx:step --space all_gather.lua --mode replay -- "
            f"{program} --meet {self.work / 'meet'} --steps 40 --tokens 32")
        for rank in 0, 1:
            self.assertRegex(self.lines("site", rank), "site=all_gather .* configs=10 ")
            self.assertRegex(self.lines("winner", rank), "site=all_gather ")
            self.assertNotIn("rule_error", self.lines("fallback", rank))


if __name__ == "__main__":
    unittest.main(verbosity=2)
