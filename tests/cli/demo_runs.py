"""Runs of the demo on the simulated driver under `contextune run`, with the real library."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"])
COMMAND = BUILD / "bin" / "contextune"
DEMO = BUILD / "demo" / "contextune_demo"
SMALL_DEMO = (DEMO, "--rows", 64)  # computed on the host: a quarter will do
PATIENCE = 100


class DemoRuns(unittest.TestCase):
    prints_errors = False

    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="contextune-demo-run-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CONTEXTUNE_", "CUDA_", "LD_PRELOAD", "NVTX_"))
        } | {"LD_LIBRARY_PATH": str(BUILD / "simcuda"), "CONTEXTUNE_STORE": "off"}

    def execute(self, *argv, **variables):
        result = subprocess.run(
            list(map(str, argv)), capture_output=True, text=True, cwd=self.work,
            env=self.environment | variables, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        if not self.prints_errors:
            self.assertEqual(result.stderr, "")
        return result.stdout

    def run_under(self, flags, program, **variables):
        """The processes in the logs, and the report, of a run that printed what the program does alone."""
        shutil.rmtree(self.work / ".autotune_logs", ignore_errors=True)
        bare = self.execute(*program)
        self.assertEqual(self.execute(COMMAND, "run", "--report", "report.txt", *flags, "--", *program,
                                      **variables), bare)
        contents = json.loads(self.execute(COMMAND, "logs", "--json"))
        self.assertEqual(contents["num_bad_lines"], 0)
        return contents["processes"], (self.work / "report.txt").read_text()
