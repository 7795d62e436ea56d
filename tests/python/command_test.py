"""The command that the wheel brings along, and an import that needs nothing else."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.executable).parent


def run(*command, **variables):
    return subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=os.environ | variables)


class Command(unittest.TestCase):
    def test_the_command_is_on_the_path_of_the_environment(self):
        shown = run(BIN / "contextune", "--version")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("0.", shown.stdout)

    def test_the_module_runs_the_command(self):
        shown = run(sys.executable, "-m", "contextune", "--version")
        self.assertEqual(shown.stdout, run(BIN / "contextune", "--version").stdout)

    def test_a_tool_that_imports_all_modules_does_not_become_the_command(self):
        seen = run(sys.executable, "-c", "import contextune.__main__; print('still here')")
        self.assertEqual(seen.stdout, "still here\n", seen.stderr)

    def test_the_exit_status_of_a_program_is_that_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = run(sys.executable, "-m", "contextune", "run", "--log-dir", folder, "--quiet", "--",
                        sys.executable, "-c", "import sys; sys.exit(7)")
        self.assertEqual(ended.returncode, 7, ended.stderr)

    def test_a_program_that_is_run_is_preloaded_with_the_frontend_of_the_package(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = run(sys.executable, "-m", "contextune", "run", "--log-dir", folder, "--quiet", "--",
                        sys.executable, "-c", "import os; print(os.environ['LD_PRELOAD'])")
        import contextune
        frontend = pathlib.Path(contextune.__file__).parent / "native/lib/libcontextune_preload.so"
        self.assertEqual(ended.stdout.strip(), str(frontend))

    def test_importing_the_package_loads_neither_pytorch_nor_triton_nor_the_library(self):
        seen = run(sys.executable, "-c",
                   "import sys, contextune\n"
                   "maps = open('/proc/self/maps').read()\n"
                   "print({'torch', 'triton'} & set(sys.modules), 'libcontextune' in maps)")
        self.assertEqual(seen.stdout.strip(), "set() False", seen.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
