"""What one run has found out the next one starts with, and what a config has taken down is not tried
again. Unmodified programs on the simulated driver under `contextune run`, with a real store."""

import fcntl
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from stored_runs import DEMO, PATIENCE, PROGRAM, SITES, SPACE, TENSOR_PARALLEL, StoredRuns, demo


class StoredWinnersTest(StoredRuns):
    def test_a_second_run_starts_tuned_whoever_repeats_the_region(self):
        bare = self.bare()
        for mode in "replay", "live":
            program = demo(600 if mode == "live" else 20)
            with self.subTest(mode):
                shutil.rmtree(self.work / "store", ignore_errors=True)
                first, out = self.run_program("--mode", mode, "--max-slowdown", "0", program=program)
                self.assertEqual({site for site, _ in first.winners()} - {"normalise"}, SITES)
                self.assertNotEqual(first.of("trial"), [])
                self.assertEqual([line["sites"] for line in first.of("store", action="saved")], ["4"])
                again, same = self.run_program("--mode", mode, program=program)
                self.assertEqual(out, same)
                self.assert_starts_tuned(again, first.winners())
                self.assertEqual(again.of("replay"), [])
        self.assertEqual(self.run_program()[1], bare)

    def test_winners_that_a_slow_store_has_not_taken_when_the_program_ends_are_told(self):
        for mode in "replay", "live":
            with self.subTest(mode):
                shutil.rmtree(self.work / "store", ignore_errors=True)
                self.run_program("--mode", mode, "--max-slowdown", "0", program=demo(600))
                path, stored = self.entry()
                with open(path.with_name(f".{path.name}.lock"), "ab") as lock:
                    fcntl.lockf(lock, fcntl.LOCK_EX)
                    log, _ = self.run_program("--mode", mode, "--max-slowdown", "0",
                                              "--always-tune", program=demo(600))
                (told,) = log.of("fallback", reason="store_unwritable")
                self.assertIn("before all that was found could be written", told["text"])
                self.assertEqual(told["region"], "decode")
                self.assertEqual(self.entry(), (path, stored))

    def test_a_run_from_the_store_says_what_the_region_gained_when_it_was_tuned(self):
        first, _ = self.run_program("--confirm-min-pairs", "2")
        (measured,) = first.confirmations()
        again, _ = self.run_program()
        (found,) = again.of("store", action="found")
        for name in ("verdict", "before_us", "after_us", "gain", "bound", "pairs"):
            self.assertEqual(found[name], measured[name])
        self.assertRegex((self.work / "report").read_text(),
                         "    stored: region time .* with the defaults, .* with the winners, .*: ")

    def test_what_one_site_gained_is_not_stored_as_what_all_of_the_process_did(self):
        log, _ = self.run_program("--mode", "live", "--max-slowdown", "0", region="process",
                                  program=demo(600))
        self.assertNotEqual([line for line in log.of("confirm") if line["pairs"] != "0"], [])
        self.assertIsNone(self.entry("process")[1]["confirm"])

    def test_ranks_vote_on_what_is_stored_and_start_tuned(self):
        program = (TENSOR_PARALLEL, "--meet", self.work / "meet", "--steps", "40", "--tokens", "32")
        flags = ("-n", "4", "--distributed", "on")
        how = {"program": program, "region": "nvtx:step", "space": DEMO.parent / "tensor_parallel.lua"}
        first, out = self.run_program(*flags, "--mode", "replay", **how)
        again, same = self.run_program(*flags, "--mode", "replay", **how)
        self.assertEqual(sorted(out.splitlines()), sorted(same.splitlines()))
        self.assertEqual(len(again.ranks), 4)
        self.assertEqual(again.of("trial"), [])
        for rank in range(4):
            self.assertEqual(again.winners(rank), first.winners(rank))
        hashes = again.committed()
        self.assertNotEqual(hashes[0], [])
        for others in hashes[1:]:
            self.assertEqual(others, hashes[0])

    def test_other_software_has_the_winners_confirmed_and_other_hardware_has_them_tuned(self):
        first, _ = self.run_program("--confirm-min-pairs", "2")
        other = {"CUDA_SCALE_LAUNCH_QUEUES": "4x"}
        confirmed, _ = self.run_program("--confirm-min-pairs", "2", variables=other)
        self.assertEqual(confirmed.of("trial"), [])
        (line,) = confirmed.confirmations()
        if line["verdict"] == "kept":
            self.assertEqual(confirmed.winners(), first.winners())
        self.assertEqual([line["same_software"] for line in confirmed.of("store", action="found")],
                         ["0"])
        again, _ = self.run_program("--version-check", variables={"CUDA_DEVICE_MAX_CONNECTIONS": "2"})
        self.assertNotEqual(again.of("trial"), [])
        two, _ = self.run_program(variables={"SIMCUDA_DEVICES": "2"})
        self.assertNotEqual(two.of("trial"), [])
        self.assertEqual(two.of("store", action="found"), [])

    def test_a_config_that_is_added_to_a_space_is_measured_alone(self):
        text = SPACE.read_text()
        before = re.search(r"block\s*=\s*\{([^}]*)\}", text)
        values = before.group(1).split(",")
        fewer = self.work / "fewer.lua"
        fewer.write_text(text.replace(before.group(0), "block = {" + ",".join(values[:-1]) + "}", 1))
        first, _ = self.run_program(space=fewer)
        site = next(line["site"] for line in first.of("site"))
        again, _ = self.run_program()
        stored = first.winners()
        changed = {line["site"] for line in again.of("trial")}
        self.assertEqual(len(changed), 1)
        (site,) = changed
        self.assertLess(len(again.tried(site)), int(again.of("site", site=site)[0]["configs"]))
        for (name, key), config in again.winners().items():
            if name != site:
                self.assertEqual(config, stored[name, key])

    def test_the_store_can_be_ignored_only_read_or_left_alone(self):
        log, _ = self.run_program("--store", "off", "--no-confirm")
        self.assertFalse((self.work / "store").exists())
        log, _ = self.run_program("--store", "stored")
        self.assertEqual(log.of("trial"), [])
        self.assertEqual(set(log.winners().values()), {"0"})
        self.assertNotIn("stored", {line["reason"] for line in log.of("winner")})
        first, _ = self.run_program("--no-confirm")
        read, _ = self.run_program("--store", "stored")
        self.assertEqual(read.of("trial"), [])
        self.assertEqual(read.winners(), first.winners())
        again, _ = self.run_program("--always-tune", "--no-confirm")
        self.assertNotEqual(again.of("trial"), [])
        self.assertEqual(len(again.of("store", action="saved")), 1)

    def test_what_takes_the_process_down_is_found_named_and_skipped(self):
        bare = self.bare()
        for kind in "abort", "sticky":
            with self.subTest(kind):
                shutil.rmtree(self.work / "store", ignore_errors=True)
                fault = {"SIMCUDA_FAULT": f"{kind}:rotate:block=512,grid=132"}
                ends, log, out = self.run_until_survived("--no-confirm", variables=fault)
                self.assertEqual(out, bare)
                self.assertIn(ends, (1, 2))
                self.assert_blames_only(log, "rotate", {"block": 512, "per_sm": 1})
                again, out = self.run_program("--no-confirm", variables=fault)
                self.assertEqual(out, bare)
                self.assert_starts_tuned(again, log.winners())

    def test_a_limit_on_the_size_of_files_is_no_end_of_the_program(self):
        bare = self.bare()
        for limit in 0, 600:
            done = subprocess.run(
                list(map(str, PROGRAM)), text=True, capture_output=True, cwd=self.work,
                timeout=PATIENCE, env=self.preloaded(
                    SPACE, self.work / ".autotune_logs", CONTEXTUNE_N_WARMUP="0",
                    CONTEXTUNE_REFINE="off", CONTEXTUNE_CONFIRM="off"),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual((done.returncode, done.stdout), (0, bare))

    def test_an_end_that_somebody_wanted_blames_nobody(self):
        for how in signal.SIGINT, signal.SIGKILL, "the whole group":
            with self.subTest(how):
                # What a config is tried for takes long, so that it is seen.
                process = self.start("--trial-timeout", "600", "--mode", "replay",
                                     variables={"SIMCUDA_FAULT": "hang:rotate:block=512,grid=132"})
                journal = self.work / "store" / "journal"
                deadline = time.monotonic() + PATIENCE
                trying = []
                while not trying and process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.001)
                    trying = [file for file in journal.glob("*.trying")
                              if "config" in file.read_text() or "site" in file.read_text()]
                self.assertEqual(len(trying), 1)
                if how == "the whole group":
                    # As the kernel does for want of memory: nobody is left to see how it ended.
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    os.kill(int(trying[0].name.split("-")[0]), how)
                self.assertNotEqual(self.end(process)[0], 0)
        log, _ = self.run_program()
        self.assertEqual(log.of("fallback", reason="config_crashed"), [])
        self.assertNotIn("blamed", self.known())


if __name__ == "__main__":
    unittest.main()
