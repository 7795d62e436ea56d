"""Programs that are linked without CMake against an installed tree: with the line that the README has
for it, and wrongly.

Usage: link_test.py README PREFIX LIBDIR LIBCUDA INCLUDE_DIR...
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

here = pathlib.Path(__file__).parent
readme, prefix, libdir, libcuda, *includes = (pathlib.Path(argument) for argument in sys.argv[1:])


class LinkedWithoutCmake(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "libcuda.so").symlink_to(libcuda)
        self.environment = dict(
            os.environ, PKG_CONFIG_PATH=str(prefix / libdir / "pkgconfig"),
            CPLUS_INCLUDE_PATH=":".join(str(one) for one in includes),
            LIBRARY_PATH=str(self.folder), LD_LIBRARY_PATH=f"{libcuda.parent}:{prefix / libdir}",
            CONTEXTUNE_STORE="off", CONTEXTUNE_LOG_DIR=str(self.folder / "logs"))

    def shell(self, line):
        return subprocess.run(line, shell=True, cwd=self.folder, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def linked_program(self, source, line):
        (self.folder / "program.cpp").write_text((here / source).read_text())
        built = self.shell(line)
        self.assertEqual(built.returncode, 0, f"{line}\n{built.stdout}")
        return self.shell("./a.out")

    def line_of_the_readme(self, compiler):
        lines = [line for line in readme.read_text().splitlines() if line.startswith(compiler)]
        self.assertEqual(len(lines), 1, f"{readme} has no line that begins with {compiler}")
        self.assertIn("pkg-config", lines[0])
        return lines[0]

    def fallbacks(self):
        lines = (self.folder / "logs" / "rank-0.log").read_text().splitlines()
        return [line for line in lines if "event=fallback" in line]

    def test_the_line_of_the_readme_links_a_program_that_is_tuned(self):
        run = self.linked_program("client/client.cpp", self.line_of_the_readme("c++ "))
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("tuned in", run.stdout)

    def test_the_line_of_the_readme_for_nvcc_links_the_frontend_first(self):
        tools = f"{os.environ['PATH']}:{includes[0].parent / 'bin'}"
        if shutil.which("nvcc", path=tools) is None:
            self.skipTest("there is no nvcc")
        self.environment["PATH"] = tools
        (self.folder / "program.cu").write_text(
            "#include <contextune/contextune.hpp>\n__global__ void nothing() {}\n"
            'int main() { CONTEXTUAL_AUTOTUNE("nothing") nothing<<<1, 1>>>(); }\n')
        built = self.shell(self.line_of_the_readme("nvcc "))
        self.assertEqual(built.returncode, 0, built.stdout)
        needed = self.shell("readelf -d a.out | grep NEEDED").stdout.splitlines()
        self.assertIn("libcontextune_preload.so", needed[0])
        self.assertIn("libcontextune.so", needed[1])

    def tells(self, linked, *told):
        flags = f"-std=c++20 -I{prefix}/include -L{prefix / libdir}"
        run = self.linked_program("wrongly_linked.cpp", f"c++ {flags} {linked}")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("state 1: ", run.stdout)
        fallbacks = self.fallbacks()
        self.assertEqual([line for line in fallbacks if "loaded_late" in line], [])
        said = [line for line in fallbacks if "reason=linked_wrongly" in line]
        self.assertEqual(len(said), 1, fallbacks)
        for text in (*told, "pkg-config --libs contextune"):
            self.assertIn(text, run.stdout)
            self.assertIn(text, said[0])

    def test_a_program_without_the_frontend_is_told_that_it_lacks_it(self):
        self.tells("program.cpp -lcontextune_client -lcontextune -lcuda",
                   "The program is linked with libcontextune.so, but not with "
                   "libcontextune_preload.so")

    def test_a_program_whose_linker_left_the_frontend_out_is_told_that(self):
        self.tells("-Wl,--as-needed -lcontextune_preload program.cpp -lcontextune_client "
                   "-lcontextune -lcuda",
                   "not with libcontextune_preload.so", "--as-needed")

    def test_a_program_that_links_the_driver_first_is_told_the_order(self):
        self.tells("-Wl,--no-as-needed program.cpp -lcuda -lcontextune_client "
                   "-lcontextune_preload -lcontextune",
                   "libcuda.so is linked before libcontextune_preload.so")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
