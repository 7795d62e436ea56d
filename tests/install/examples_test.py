"""The installed examples are built as their users build them, with CMake and with make, and run on the
simulated driver.

Usage: examples_test.py PREFIX LIBDIR LIBCUDA SIMULATED_KERNELS INCLUDE_DIR
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

prefix, libdir, libcuda, kernels, include = (pathlib.Path(argument) for argument in sys.argv[1:])
EXAMPLES = ["region", "function", "choice", "region_in_c", "ranks", "unmodified"]


class Examples(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        # Installed once, and moved: what the build wrote down of its prefix must not count.
        self.prefix = self.folder / "moved"
        shutil.copytree(prefix, self.prefix)
        self.source = self.prefix / "share/doc/contextune/examples"
        (self.folder / "libcuda.so").symlink_to(libcuda)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("CONTEXTUNE_", "SIMCUDA_"))} | {
            "LD_LIBRARY_PATH": f"{libcuda.parent}:{self.prefix / libdir}", "CONTEXTUNE_STORE": "off",
            "PKG_CONFIG_PATH": str(self.prefix / libdir / "pkgconfig")}

    def call(self, *words, cwd, **environment):
        done = subprocess.run([str(word) for word in words], cwd=cwd, env=self.environment | environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}")
        return done.stdout

    def with_simulated_kernels(self, folder):
        for file in kernels.iterdir():
            if file.is_file():
                (folder / file.name).symlink_to(file)
        return folder

    def log(self, folder, rank=0):
        path = folder / ".autotune_logs" / f"rank-{rank}.log"
        lines = path.read_text().splitlines()
        path.unlink()
        return lines

    def winners(self, lines, *sites):
        for site in sites:
            won = [line for line in lines if "event=winner" in line and f"site={site} " in line]
            self.assertTrue(won, f"{site}\n" + "\n".join(lines))
            self.assertIn("simulated=yes", won[0])

    def test_cmake_finds_a_moved_installation_and_every_example_is_tuned(self):
        build = self.folder / "build"
        self.call("cmake", "-S", self.source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                  f"-DCUDA_INCLUDE_DIR={include}", f"-DCUDA_DRIVER={self.folder}/libcuda.so", cwd=self.folder)
        self.call("cmake", "--build", build, "--parallel", "2", cwd=self.folder)
        self.with_simulated_kernels(build)

        self.assertIn("1 + 2 * 3: all 1048576 values are 7", self.call("./region", cwd=build))
        self.winners(self.log(build), "scale", "add")
        self.assertIn("2 * 3: all 65536 values are 6", self.call("./function", cwd=build))
        self.winners(self.log(build), "scaled_copy")
        self.assertIn("1 + 2 * 3: all 1048576 values are 7", self.call("./choice", cwd=build))
        self.winners(self.log(build), "accumulate")
        self.assertIn("2 * 3: all 1048576 values are 6", self.call("./region_in_c", cwd=build))
        self.winners(self.log(build), "scale")

        command = self.prefix / "bin/contextune"
        said = self.call(command, "run", "-n", "2", "--distributed", "on", "--", "./ranks", cwd=build)
        blocks = {said.split(f"rank {rank} of 2 runs block=")[1].split()[0] for rank in (0, 1)}
        self.assertEqual(len(blocks), 1, said)
        for rank in (0, 1):
            self.winners(self.log(build, rank), "scaled_copy")
        said = self.call(command, "run", "--region", "nvtx:step", "--space", "unmodified.lua", "--",
                         "./unmodified", "3000", cwd=build)
        self.assertIn("the sum of 2 * 3: all 4096 values are 18000", said)
        self.winners(self.log(build), "scaled_copy", "add")

    def test_make_finds_it_with_pkg_config(self):
        folder = self.folder / "examples"
        shutil.copytree(self.source, folder)
        self.with_simulated_kernels(folder)
        # Those in C, and one in C++: the others are built alike.
        self.call("make", "-j2", "region_in_c", "unmodified", "ranks", "CXXFLAGS=-O0", f"CUDA_HOME={include.parent}",
                  f"CUDA_DRIVER=-L{self.folder} -lcuda", cwd=folder)
        for program in ("region_in_c", "ranks"):
            self.assertIn("2 * 3: all 1048576 values are 6", self.call(f"./{program}", cwd=folder))
            self.winners(self.log(folder), "scale" if program == "region_in_c" else "scaled_copy")
        self.assertIn("values are 60\n", self.call("./unmodified", "10", cwd=folder))
        flags = self.call("pkg-config", "--cflags", "--libs", "contextune", cwd=folder)
        self.assertIn("moved", flags)
        self.assertNotIn(str(prefix), flags)

    def test_every_example_is_built_both_ways(self):
        sources = {path.stem for path in self.source.iterdir() if path.suffix in (".c", ".cpp")}
        self.assertEqual(sources, set(EXAMPLES))
        for build in ("CMakeLists.txt", "Makefile"):
            text = (self.source / build).read_text()
            for name in EXAMPLES:
                self.assertIn(name, text, build)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
