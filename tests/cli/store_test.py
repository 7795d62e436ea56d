"""`contextune store` tells what is stored, compares, joins, checks, removes and exports it."""

import json
import os
import pathlib
import subprocess
import unittest

from harness import CommandTest

WRITE_STORE = os.environ["CONTEXTUNE_WRITE_STORE"]
DAY = 86400
FIRST = 1795000000  # 2026-11-18T11:06:40Z


class StoreTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"
        self.environment["CONTEXTUNE_CACHE_DIR"] = str(self.cache)

    def write(self, *sites, folder=None, name="decode", gpu="NVIDIA H200", driver="13.0", when=FIRST):
        subprocess.run([WRITE_STORE, folder or self.cache, name, gpu, driver, str(when), *sites],
                       check=True)

    def store(self, *arguments, status=0, errors=""):
        result = self.contextune("store", *arguments)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        if errors is not None:
            self.assertRegex(result.stderr, errors if errors else r"\A\Z")
        return result.stdout

    def read(self, *arguments, status=0, errors=""):
        return json.loads(self.store(*arguments, "--json", status=status, errors=errors))

    def files(self, folder=None):
        root = pathlib.Path(folder or self.cache)
        return sorted(str(path.relative_to(root)) for path in root.rglob("*.json*")
                      if not path.name.startswith("."))


class Pins(StoreTest):
    def run_with(self, pin):
        result = self.run_program("sh", "-c", "echo started", flags=["--force", pin],
                                  env=self.environment | {"CONTEXTUNE_STORE": "tune"})
        self.assertEqual((result.returncode, result.stdout), (0, "started\n"), result.stderr)
        return result.stderr

    def test_a_pin_that_was_no_config_of_its_site_is_doubted_before_the_start(self):
        self.assertNotIn("option force", self.run_with("saxpy=block=100"))
        self.write("saxpy", "256")
        self.assertIn('contextune: option force: "block=100" was no config of "saxpy" when it was '
                      "last tuned, and counts only if it is one now; stored are block=128 "
                      "share=0.5, block=256 share=0.5, block=4096 share=0.5\n",
                      self.run_with("saxpy=block=100"))
        for pin in ("saxpy=block=256", "saxpy{n=1024}=block=4096", "saxpy=9", "gemm=block=100"):
            self.assertNotIn("option force", self.run_with(pin))


class LooksAt(StoreTest):
    def test_the_list_has_a_line_for_each_file(self):
        self.write("saxpy", "256", "gemm", "default")
        self.write("saxpy", "256", name="prefill", gpu="NVIDIA H100")
        rows = self.store("list").splitlines()
        self.assertEqual(len(rows), 3)
        self.assertRegex(rows[1], r"^decode +region +NVIDIA H200 +2 +1 +2026-11-18T11:06:40Z +10.0 % +"
                                  + self.files()[0])
        self.assertRegex(rows[2], r"^prefill .*NVIDIA H100 +1 +1 ")
        read = self.read("list")
        self.assertEqual([entry["file"] for entry in read["entries"]], self.files())
        self.assertEqual(read["entries"][0]["hardware"], {"gpu": "NVIDIA H200"})
        self.assertEqual(read["entries"][0]["num_tuned"], 1)

    def test_show_tells_winners_and_with_history_what_they_replaced(self):
        self.write("saxpy", "512")
        self.write("saxpy", "256", driver="13.1", when=FIRST + DAY)
        output = self.store("show", "decode")
        self.assertRegex(output, r"saxpy +n=1024 +block=256 share=0.5 +fastest +3.00 us +4.00 us +25.0 %")
        self.assertNotIn("block=512", output)
        self.assertIn("10.0 % (at least 8.0 % at 95 %, 8 pairs, kept, 2026-11-19", output)
        output = self.store("show", "decode", "--history")
        self.assertRegex(output, r"before +block=512 share=0.5 .* 2026-11-18T11:06:40Z")
        self.assertEqual(output.count("software  driver="), 2)

    def test_show_tells_what_another_way_of_launching_gained(self):
        self.write("launches", "chained gathered=16", name="auto")
        self.assertRegex(self.store("show", "auto"),
                         r"launches +program=engine +chained=true gathered=16 +region +- +- +42.0 %")

    def test_a_name_in_brackets_is_a_name(self):
        for name in ("[a]", "[a,b]", "[]"):
            self.write("saxpy", "256", name=name)
        self.write("gemm", "256", name="a")
        for name in ("[a]", "[a,b]", "[]"):
            self.assertIn("saxpy", self.store("show", name))
        self.assertIn("saxpy", self.store("--cache-dir", self.cache, "show", "--history", "--", "[a]"))
        self.store("remove", "[a]")
        self.assertIn("gemm", self.store("show", "a"))
        self.assertIn("saxpy", self.store("show", "[a,b]"))

    def test_what_was_not_measured_or_was_dropped_is_no_figure(self):
        self.write("saxpy", "256", "gemm", "default")
        (name,) = self.files()
        path = self.cache / name
        text = path.read_text()
        self.assertRegex(self.store("show", "decode"), r"gemm .* 4.00 us +4.00 us +- ")
        self.assertEqual(self.read("list")["entries"][0]["gain"], 0.1)
        for verdict, pairs, gain in (("skipped", 0, 0.0), ("defaults", 8, -0.38)):
            entry = json.loads(text)
            entry["confirm"] |= {"verdict": verdict, "pairs": pairs, "gain": gain}
            path.write_text(json.dumps(entry))
            self.assertRegex(self.store("list").splitlines()[1], f"Z +- +{name}")
            self.assertIsNone(self.read("list")["entries"][0]["gain"])
        self.assertIn("-38.0 %", self.store("show", "decode"))
        entry["confirm"] |= {"verdict": "skipped", "pairs": 0}
        path.write_text(json.dumps(entry))
        self.assertIn("region    - (not compared, skipped, ", self.store("show", "decode"))

    def test_a_function_is_told_by_its_keys(self):
        self.write("gemm", "256", name="function:gemm")
        self.assertRegex(self.store("list").splitlines()[1],
                         r"^gemm +function +NVIDIA H200 +1 +1 +2026-11-18T11:06:40Z +up to 25.0 % ")
        self.assertIsNone(self.read("list")["entries"][0]["gain"])
        output = self.store("show", "gemm")
        self.assertIn("(function 'gemm' on NVIDIA H200, 1 key)", output)
        self.assertRegex(output, r"function +key +winner")
        self.assertRegex(output, r"gemm +n=1024 +block=256 share=0.5 +fastest")

    def test_show_for_programs_is_the_document(self):
        self.write("saxpy", "256")
        entry = self.read("show", "decode")["entries"][0]
        self.assertEqual(entry["file"], self.files()[0])
        with open(self.cache / self.files()[0]) as file:
            self.assertEqual(entry["entry"], json.load(file))

    def test_a_file_can_be_named_where_a_name_is_on_several_gpus(self):
        self.write("saxpy", "256")
        self.write("saxpy", "512", gpu="NVIDIA H100")
        self.assertEqual(self.store("show", "decode").count("region 'decode'"), 2)
        self.assertEqual(self.store("show", self.files()[0]).count("region 'decode'"), 1)

    def test_names_cannot_command_the_terminal(self):
        self.write("\x1b[31mred", "256", name="\x1b]0;title\x07")
        for arguments in (["list"], ["show", "\x1b]0;title\x07"], ["check"],
                          ["diff", self.cache, self.folder]):
            result = self.contextune("store", *arguments)
            self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_what_is_not_there_is_said(self):
        self.store("list", status=1, errors=f"{self.cache}: there is no such store")
        self.write("saxpy", "256")
        self.store("show", "prefill", status=1, errors="nothing is stored of 'prefill'")
        self.store("show", "../../etc/passwd", status=1, errors="nothing is stored of")
        self.store("diff", self.cache, "/no/store", status=1, errors="/no/store: there is no such store")

    def test_the_folder_is_found_as_programs_find_it(self):
        del self.environment["CONTEXTUNE_CACHE_DIR"]
        xdg = self.folder / "xdg"
        home = self.folder / "home"
        self.write("saxpy", "256", folder=xdg / "contextune", name="of-xdg")
        self.write("saxpy", "256", folder=home / ".cache" / "contextune", name="of-home")
        self.write("saxpy", "256", name="of-flag")
        self.environment["HOME"] = str(home)
        self.environment.pop("XDG_CACHE_HOME", None)
        self.assertIn("of-home", self.store("list"))
        self.environment["XDG_CACHE_HOME"] = "xdg"  # relative: none, as the specification has it
        self.assertIn("of-home", self.store("list"))
        self.environment["XDG_CACHE_HOME"] = str(xdg)
        self.assertIn("of-xdg", self.store("list"))
        self.assertIn("of-flag", self.store("list", "--cache-dir", self.cache))
        del self.environment["XDG_CACHE_HOME"]
        del self.environment["HOME"]
        self.store("list", status=1, errors="give --cache-dir")


class Checks(StoreTest):
    def test_a_good_store_has_no_problem(self):
        self.write("saxpy", "256")
        self.assertEqual(self.store("check"), "1 file, 0 problems\n")
        self.assertEqual(self.read("check")["files"],
                         [{"file": self.files()[0], "state": "good", "problem": None}])

    def test_every_file_is_checked_and_nothing_is_changed(self):
        for name in ("a", "b", "c", "d"):
            self.write("saxpy", "256", name=name)
        files = [self.cache / name for name in self.files()]
        text = files[0].read_text()
        files[0].write_text(text.replace('"samples":5', '"samples":-5', 1))
        files[1].write_text(files[1].read_text()[:100])
        files[2].write_text('{"schema": 99}')
        files[2].with_name("notes.txt").write_text("not a file of ours")
        files[0].with_name(files[0].name + ".unreadable-1").write_text("kept")
        before = {file: file.read_bytes() for file in self.cache.rglob("*") if file.is_file()}
        output = self.store("check", status=1).splitlines()
        self.assertRegex(output[0], f"^{files[0]}: /sites/0/trials/0/samples: is -5, and must be from 0")
        self.assertRegex(output[1], f"^{files[1]}: line [0-9]+, column ")
        self.assertRegex(output[2], f"^{files[2]}: /schema: is 99, and this contextune knows")
        self.assertRegex(output[3], "unreadable-1: was set aside")
        self.assertEqual(output[4], "4 files, 3 problems")
        states = [file["state"] for file in self.read("check", status=1)["files"]]
        self.assertEqual(states, ["damaged", "damaged", "newer", "good"])
        after = {file: file.read_bytes() for file in self.cache.rglob("*") if file.is_file()}
        self.assertEqual(before, after)

    def test_a_winner_that_its_own_trial_refutes_is_a_problem_and_is_not_merged(self):
        self.write("saxpy", "256", "gemm", "4096")
        file = self.cache / self.files()[0]
        problem = (f"{file}: /sites/0/winner: is 'block=4096 share=0.5' of 'gemm n=1024', "
                   "whose own trial says failed")
        self.assertEqual(self.store("check", status=1), f"{problem}\n1 file, 1 problem\n")
        self.assertEqual(self.read("check", status=1)["files"],
                         [{"file": self.files()[0], "state": "good", "problem": problem}])
        into = self.folder / "into"
        self.store("merge", self.cache, "--cache-dir", into, status=1, errors="whose own trial says failed")
        self.assertEqual(self.store("check", "--cache-dir", into), "1 file, 0 problems\n")

    def test_a_file_in_the_wrong_place_is_found(self):
        self.write("saxpy", "256")
        os.rename(self.cache / "decode", self.cache / "other")
        self.assertIn("its contents belong into decode/", self.store("check", status=1))

    def test_what_others_may_write_is_a_problem(self):
        self.write("saxpy", "256")
        (self.cache / "decode").chmod(0o777)
        self.assertIn("may be written by everybody", self.store("check", status=1))
        self.cache.chmod(0o777)
        self.store("check", status=1, errors="may be written by everybody")


class Compares(StoreTest):
    def setUp(self):
        super().setUp()
        self.other = self.folder / "other"

    def test_two_stores(self):
        self.write("same", "256", "changed", "256", "only-a", "256")
        self.write("same", "256", "changed", "512", "only-b", "256", folder=self.other)
        self.write("saxpy", "256", folder=self.other, name="prefill")
        output = self.store("diff", self.cache, self.other, status=1)
        self.assertIn("A: block=256 share=0.5  B: block=512 share=0.5  (changed n=1024)", output)
        self.assertIn("only in A: block=256 share=0.5  (only-a n=1024)", output)
        self.assertIn("only in B: block=256 share=0.5  (only-b n=1024)", output)
        self.assertRegex(output, "only in B: prefill/.*'prefill'")
        self.assertIn("1 site has the same winner, 4 differences", output)
        read = self.read("diff", self.cache, self.other, status=1)
        self.assertEqual((read["same"], len(read["differences"])), (1, 4))

    def test_stores_with_the_same_winners_are_the_same(self):
        self.write("saxpy", "256")
        self.write("saxpy", "256", folder=self.other, when=FIRST + DAY, driver="1.0")
        self.assertEqual(self.store("diff", self.cache, self.other),
                         "1 site has the same winner, 0 differences\n")

    def test_two_files_of_other_hardware(self):
        self.write("saxpy", "256")
        self.write("saxpy", "512", folder=self.other, gpu="NVIDIA H100")
        a = self.cache / self.files()[0]
        b = self.other / self.files(self.other)[0]
        output = self.store("diff", a, b, status=1)
        self.assertIn("A: block=256 share=0.5  B: block=512 share=0.5", output)
        b.write_text("garbage")
        self.store("diff", a, b, status=1, errors=f"{b}: line 1")
        self.store("diff", a, self.other, status=1, errors="two of a kind")


class Changes(StoreTest):
    def setUp(self):
        super().setUp()
        self.other = self.folder / "other"

    def test_a_merge_takes_the_later_winner_and_keeps_the_other(self):
        self.write("old-here", "256", "new-here", "512", "only-here", "256")
        self.write("new-here", "256", when=FIRST + 2 * DAY)
        self.write("old-here", "512", "new-here", "1024", "only-there", "256", folder=self.other,
                   when=FIRST + DAY)
        self.write("saxpy", "256", folder=self.other, name="prefill")
        output = self.store("merge", self.other)
        self.assertRegex(output, "decode/.*: 1 added, 1 newer than what was there, 1 older, 0 known")
        self.assertRegex(output, "prefill/.*: 1 added, 0 newer")
        sites = {site["name"]: site for site in
                 self.read("show", "decode")["entries"][0]["entry"]["sites"]}
        self.assertEqual({name: site["winner"]["block"] for name, site in sites.items()},
                         {"old-here": 512, "new-here": 256, "only-here": 256, "only-there": 256})
        self.assertEqual([old["winner"]["block"] for old in sites["old-here"]["replaced"]], [256])
        self.assertEqual([old["winner"]["block"] for old in sites["new-here"]["replaced"]], [1024, 512])
        again = self.store("merge", self.other)
        self.assertEqual(self.store("check"), "2 files, 0 problems\n")
        self.assertIn("1 added", output)
        self.assertRegex(again, "decode/.*: 0 added, 0 newer than what was there, 1 older, 2 known")

    def test_a_merge_takes_what_is_good_and_says_what_is_not(self):
        self.write("saxpy", "256", folder=self.other)
        self.write("saxpy", "256", folder=self.other, name="damaged")
        damaged = next((self.other / "damaged").glob("*.json"))
        damaged.write_text("garbage")
        self.store("merge", self.other, status=1, errors=f"{damaged}: line 1")
        self.assertEqual(len(self.files()), 1)
        self.assertEqual(damaged.read_text(), "garbage")
        self.store("merge", self.cache, status=1, errors="is the store itself")
        self.store("merge", self.folder / "none", status=1, errors="no such store")

    def test_another_user_s_store_can_be_merged(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to give files away")
        self.write("saxpy", "256", folder=self.other)
        for path in [self.other, *self.other.rglob("*")]:
            os.chown(path, 12345, 12345)
        self.store("merge", self.other)
        self.assertEqual(self.files(), self.files(self.other))

    def test_remove_says_what_it_removed_and_removes_no_more(self):
        self.write("saxpy", "256")
        self.write("saxpy", "256", gpu="NVIDIA H100")
        self.write("saxpy", "256", name="prefill")
        output = self.store("remove", "decode").splitlines()
        self.assertEqual(len(output), 2)
        self.assertRegex(output[0], r"^removed decode/[0-9a-f]{16}\.json \(region 'decode' on NVIDIA")
        self.assertEqual(os.listdir(self.cache), ["prefill"])
        victim = self.folder / "victim.json"
        victim.write_text("{}")
        for name in ("../victim.json", str(victim), "prefill", ".."):
            self.store("remove", name, status=0 if name == "prefill" else 1, errors=None)
        self.assertEqual(victim.read_text(), "{}")
        self.assertEqual(os.listdir(self.cache), [])


class Exports(StoreTest):
    def test_t4_has_what_the_schema_asks_for(self):
        self.write("saxpy", "256", "gemm", "default")
        self.assertIn("6 results", self.store("export", "decode", "--t4", self.work / "t4.json"))
        with open(self.work / "t4.json") as file:
            t4 = json.load(file)
        self.assertRegex(t4["schema_version"], r"^[0-9]+\.[0-9]+\.[0-9]+$")
        self.assertEqual(len(t4["results"]), 6)
        for result in t4["results"]:
            self.assertLessEqual({"configuration", "times", "invalidity", "correctness"}, set(result))
            self.assertIn(result["invalidity"], ["timeout", "compile", "runtime", "correctness",
                                                 "constraints", "correct"])
            self.assertIsInstance(result["configuration"]["block"], int)
            self.assertIsInstance(result["configuration"]["share"], float)
            self.assertIsInstance(result["times"]["runtimes"], list)
            self.assertEqual(result["objectives"], ["time"])
            for measurement in result["measurements"]:
                self.assertEqual(set(measurement), {"name", "value", "unit"})
        first = t4["results"][3]
        self.assertEqual((first["site"], first["timestamp"]), ("saxpy", "2026-11-18T11:06:40Z"))
        self.assertEqual(first["measurements"][0], {"name": "time", "value": 4e-3, "unit": "ms"})
        failed = t4["results"][5]
        self.assertEqual((failed["invalidity"], failed["times"]["runtimes"]), ("runtime", []))
        self.assertIn("3 results", self.store("export", "decode", "--site", "gemm", "--t4",
                                              self.work / "gemm.json"))

    def test_collectives_go_to_nccl_s_tuner(self):
        self.write("saxpy", "256", "all_reduce", "Ring LL128 8", "all_gather", "default Tree LL")
        path = self.work / "nccl.conf"
        self.assertIn("2 rows for NCCL_TUNER_CONFIG_FILE=", self.store("export", "decode", "--nccl-csv", path))
        rows = path.read_text().splitlines()
        self.assertEqual(rows[1:], ["allgather,32769,65536,tree,ll,0,1,4,1,-1",
                                    "allreduce,32769,65536,ring,ll128,8,1,4,1,-1"])

    def test_a_collective_of_which_only_a_crash_is_noted_keeps_its_default(self):
        self.write("all_gather", "crashed Tree LL")
        self.assertRegex(self.store("list").splitlines()[1], r"NVIDIA H200 +1 +0 ")
        path = self.work / "nccl.conf"
        self.assertIn("1 row", self.store("export", "decode", "--nccl-csv", path))
        self.assertEqual(path.read_text().splitlines()[1:], ["allgather,32769,65536,tree,ll,0,1,4,1,-1"])

    def test_a_default_that_is_not_known_is_counted(self):
        self.write("all_reduce", "Ring LL128 8", "all_gather", "default")
        output = self.store("export", "decode", "--nccl-csv", self.work / "nccl.conf",
                            errors="1 collective keeps a default that the store does not know")
        self.assertIn("1 row", output)

    def test_nothing_is_written_for_nothing(self):
        self.write("saxpy", "256")
        self.store("export", "decode", "--nccl-csv", self.work / "out", status=1,
                   errors="no collective is stored")
        self.store("export", "decode", "--site", "none", "--t4", self.work / "out", status=1,
                   errors="no result")
        self.assertFalse((self.work / "out").exists())
        self.store("export", "decode", "--t4", self.work / "no" / "out", status=1, errors="cannot write")
        self.write("saxpy", "512", gpu="NVIDIA H100")
        self.store("export", "decode", "--t4", self.work / "out", status=1,
                   errors="several kinds of hardware; give one of decode/")
        self.assertIn("3 results", self.store("export", self.files()[0], "--t4", self.work / "out"))


class Usage(StoreTest):
    def test_help_begins_with_examples(self):
        result = self.contextune("store", "--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("  contextune store list\n", result.stdout[:200])
        for action in ("list", "show", "diff", "merge", "check", "remove", "export"):
            self.assertIn(f"\n  {action} ", result.stdout)
        self.assertLess(max(map(len, result.stdout.splitlines())), 105)

    def test_wrong_use_is_answered(self):
        for arguments in ([], ["walk"], ["show"], ["show", "a", "b"], ["list", "a"], ["diff", "a"],
                          ["merge"], ["export", "a"], ["export", "a", "--t4", "x", "--nccl-csv", "y"],
                          ["list", "--history"], ["remove", "a", "--json"], ["--cache-dir"]):
            result = self.contextune("store", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("contextune store", result.stderr)


if __name__ == "__main__":
    unittest.main()
