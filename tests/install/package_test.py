"""What cpack packs, and what the target uninstall removes.

Usage: package_test.py BUILD CMAKE
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

build, cmake = pathlib.Path(sys.argv[1]), sys.argv[2]
repository = pathlib.Path(__file__).parents[2]
PLACES = ["bin/contextune", "lib/libcontextune.so", "lib/libcontextune_preload.so", "lib/libcontextune_client.a",
          "lib/cmake/contextune/contextune-config.cmake", "lib/pkgconfig/contextune.pc",
          "include/contextune/contextune.h", "share/bash-completion/completions/contextune",
          "share/fish/vendor_completions.d/contextune.fish", "share/doc/contextune/README.md",
          "share/doc/contextune/copyright", "share/doc/contextune/examples/CMakeLists.txt"]


def call(*words, **options):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=240, **options)


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)


class Package(Scratch):
    def pack(self, generator, *settings):
        done = call(pathlib.Path(cmake).parent / "cpack", "-G", generator, "-B", self.folder, *settings,
                    "--config", build / "CPackConfig.cmake", cwd=build)
        self.assertEqual(done.returncode, 0, done.stdout)

    def unpacked_files(self, top):
        return {str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir()}

    def test_the_archive_is_a_prefix(self):
        self.pack("TGZ")
        [archive] = self.folder.glob("contextune-*-linux-*.tar.gz")
        self.assertEqual(call("tar", "-xzf", archive, "-C", self.folder).returncode, 0)
        files = self.unpacked_files(self.folder / archive.name.removesuffix(".tar.gz"))
        self.assertLess({*PLACES, "share/man/man1/contextune-run.1", "share/zsh/site-functions/_contextune"}, files)
        self.assertEqual([file for file in files if "test" in file or file.endswith(".o")], [])

    @unittest.skipIf(shutil.which("dpkg-shlibdeps") is None, "dpkg-dev is not installed")
    def test_the_package_is_one_for_debian(self):
        self.pack("DEB", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")  # quick
        [package] = self.folder.glob("contextune_*.deb")
        fields = call("dpkg-deb", "--field", package).stdout
        version = re.search(r"project\(contextune VERSION (\S+)", (repository / "CMakeLists.txt").read_text())[1]
        for field in ("Package: contextune", f"Version: {version}", "Section: devel", "Priority: optional"):
            self.assertIn(field + "\n", fields)
        # Of the libraries that it is linked with; CUDA's are opened at run time.
        self.assertEqual(re.findall(r"(\S+) \(", re.search(r"^Depends: (.*)$", fields, re.MULTILINE)[1]), ["libc6"])
        self.assertTrue(all(len(line) <= 80 for line in fields.splitlines()), fields)

        root = self.folder / "root"
        self.assertEqual(call("dpkg-deb", "--extract", package, root).returncode, 0)
        files = self.unpacked_files(root)
        self.assertLess({f"usr/{place}" for place in PLACES} | {"usr/share/zsh/vendor-completions/_contextune"}, files)
        pages = [file for file in files if "/man/" in file]
        self.assertIn("usr/share/man/man1/contextune-run.1.gz", pages)
        self.assertTrue(all(page.endswith(".1.gz") for page in pages), pages)
        changes = gzip.decompress((root / "usr/share/doc/contextune/changelog.gz").read_bytes()).decode()
        self.assertTrue(changes.startswith(f"contextune ({version}) "), changes)
        for file in ("bin/contextune", "lib/libcontextune.so", "lib/libcontextune_preload.so"):
            self.assertNotIn(".symtab", call("readelf", "--wide", "--sections", root / "usr" / file).stdout, file)
        said = call(root / "usr/bin/contextune", "run", "--quiet", "--", "env", cwd=self.folder).stdout
        self.assertIn(f"LD_PRELOAD={root}/usr/lib/libcontextune_preload.so", said.replace("/bin/../", "/"))


class Uninstall(Scratch):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "contextune" / "prefix"  # a name that is not contextune's own folder
        self.manifest = self.folder / "install_manifest.txt"

    def install(self, destination=""):
        done = call(cmake, "--install", build, "--prefix", self.prefix,
                    env=os.environ | {"DESTDIR": destination})
        self.assertEqual(done.returncode, 0, done.stdout)
        shutil.copy(build / "install_manifest.txt", self.manifest)

    def uninstall(self, destination="", manifest=None):
        return call(cmake, f"-DMANIFEST={manifest or self.manifest}", "-P",
                    repository / "tools/cmake/contextune_uninstall.cmake",
                    env=os.environ | {"DESTDIR": destination})

    def test_it_removes_what_was_installed_and_nothing_else(self):
        self.install()
        theirs = self.prefix / "share/doc/contextune/examples/mine.cpp"
        theirs.touch()
        (self.prefix / "bin/contextune").unlink()
        done = self.uninstall()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"Removed \d+ files; 1 were gone already")
        self.assertEqual([path for path in self.prefix.rglob("*") if not path.is_dir()], [theirs])
        folders = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_dir()}
        self.assertEqual({folder for folder in folders if folder.split("/")[-1] == "contextune" or "examples" in folder},
                         {"share/doc/contextune", "share/doc/contextune/examples"})
        self.assertLess({"bin", "lib/pkgconfig", "share/man/man1"}, folders)  # others' as well
        done = self.uninstall()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("Removed 0 files", done.stdout)

    def test_it_looks_below_a_staging_folder(self):
        stage = str(self.folder / "stage")
        self.install(stage)
        self.install()
        done = self.uninstall(stage)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([path for path in pathlib.Path(stage).rglob("*") if not path.is_dir()], [])
        self.assertTrue((self.prefix / "bin/contextune").exists())

    def test_a_build_that_was_not_installed_is_told(self):
        done = self.uninstall(manifest="/nowhere/install_manifest.txt")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("There is no /nowhere/install_manifest.txt: nothing was installed", " ".join(done.stdout.split()))

    def test_the_build_has_it_as_a_target(self):
        self.install()
        (build / "install_manifest.txt").write_text("")  # of this test; the installed tree of others stays
        done = call(cmake, "--build", build, "--target", "uninstall")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("Removed 0 files", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
