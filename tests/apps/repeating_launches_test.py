"""A program in which launches repeat is found out about while it runs, and later runs know it."""

import re
import signal
import subprocess
import time
import unittest

import awkward_programs_test as awkward

PROGRAM = awkward.BUILD / "apps" / "repeating_launches"
COMMAND = awkward.BUILD / "bin" / "contextune"
LAUNCHES_OF_STEP = 8


def output(arguments, **variables):
    done = subprocess.run([PROGRAM, *map(str, arguments)], text=True, capture_output=True,
                          env=awkward.environment() | variables, timeout=awkward.PATIENCE)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout, done.stderr)
    return done.stdout


class RepeatingLaunchesTest(awkward.ProgramTest):
    def setUp(self):
        super().setUp()
        self.runs = 0

    def settings(self, logs):
        return dict(LD_PRELOAD=str(awkward.SHIM), CONTEXTUNE_REGION="auto", CONTEXTUNE_STORE="tune",
                    CONTEXTUNE_CACHE_DIR=str(self.folder / "store"), CONTEXTUNE_LOG_DIR=str(logs))

    def start(self, *arguments, **variables):
        """A run that does not come to its end."""
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL,
                                   env=awkward.environment() | self.settings(self.folder / "ended") | variables)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def assert_left_alone_after(self, *arguments):
        """The next runs of a program that did not come to its end."""
        for _ in range(2):
            log, totals = self.run_of(*arguments)
            self.assertIn("reason=config_crashed region=auto site=launches", log)
            self.assertEqual((totals["launches"], totals["state"]), ("as written", "fatal"))
            self.assert_nothing_was_changed(totals)

    def assert_nothing_was_changed(self, totals):
        for none in ("chained", "held", "images", "images_left"):
            self.assertEqual(totals[none], "0", none)

    def run_of(self, *arguments, **variables):
        """The log of a run that printed what the bare one does, and its last line about launches."""
        self.runs += 1
        logs = self.folder / f"logs-{self.runs}"
        tuned = output(arguments, **self.settings(logs) | variables)
        self.assertEqual(tuned, output(arguments))
        log = (logs / "rank-0.log").read_text()
        self.assertNotIn("event=fault", log)
        (line,) = re.findall(r" event=submission .*", log)
        launches = re.search(r'launches=("[^"]*"|\S+)', line)[1].strip('"')
        return log, dict(re.findall(r"(\w+)=(\w+)", line)) | {"launches": launches}

    def settle(self, *arguments, **variables):
        """The log of the run that settles it. Short and noisy runs may take several."""
        for _ in range(6):
            log, totals = self.run_of(*arguments, **variables)
            if totals["state"] == "settled":
                return log, totals
        self.fail(log)

    def start_as_found(self, *arguments, **variables):
        """The log of a run that goes on from a settled one. On a busy machine that one may have had its answer
        before all kernels' images were read, and then the next compares it again."""
        for _ in range(3):
            log, totals = self.run_of(*arguments, **variables)
            if 'event=region region=auto text="as found in an earlier run"' in log:
                return log, totals
        self.fail(log)

    def test_what_pays_is_found_stored_and_used_from_the_first_launch(self):
        for steps in range(4000, 4600, 100):
            log, totals = self.settle(steps, "short")
            if "gathered" in totals["launches"]:
                break
        else:
            self.skipTest("the machine is too busy to tell what gathering gains")
        self.assertRegex(log, r'event=region region=auto text="(every (8|2,048) launches( and 1 wait)? from advect; '
                              r'[\d,]+ entries; (\d+|less than 1) % of the elapsed time|as found in an earlier run)"')
        self.assertIn("verdict=kept", log)
        self.assertRegex(log, r'event=submission .* screened="[^"]*gathered=\d+ [0-9.]+[^"]*" why="[^"]*faster')
        log, totals = self.start_as_found(steps, "short")
        self.assertEqual(totals["state"], "settled")
        gone = int(totals["held"]) + int(totals["chained"])
        self.assertGreater(gone, steps * LAUNCHES_OF_STEP // 2)
        # With other arguments it may do other things.
        log, _ = self.run_of(20, "short")
        self.assertNotIn("as found in an earlier run", log)
        for _ in range(5):  # where its graphs are built late, it has been survived before them
            self.assertEqual(self.start(steps, "short", SIMCUDA_FAULT="abort:advect:graph=1,after=8").wait(),
                             -signal.SIGABRT)
            log, _ = self.run_of(steps, "short")
            if "reason=config_crashed" in log:
                break
        self.assert_left_alone_after(steps, "short")

    def test_a_winner_of_another_driver_is_compared_again(self):
        for steps in (4000, 4100, 4200):
            _, totals = self.settle(steps, "short")
            if totals["launches"] != "as written":
                break
        else:
            self.skipTest("the machine is too busy to tell what gathering gains")
        log, _ = self.run_of(steps, "short", SIMCUDA_VERSION="13.1")
        self.assertIn("reason=doubted_winner region=auto site=launches", log)

    def test_what_was_survived_is_not_left_out_because_of_another_end(self):
        for steps in range(4000, 4600, 100):
            _, totals = self.settle(steps, "short")
            if "gathered" in totals["launches"]:
                break
        else:
            self.skipTest("the machine is too busy to tell what gathering gains")
        self.assertEqual(self.start(steps, "short", SIMCUDA_FAULT="abort:advect:graph=1,after=2000").wait(),
                         -signal.SIGABRT)
        _, totals = self.start_as_found(steps, "short")
        self.assertGreater(int(totals["held"]), 0)

    def test_a_crash_while_ways_are_tried_leaves_later_runs_as_written(self):
        for steps in (4000, 8000, 16000, 32000):  # a busy machine may come late to graphs
            status = self.start(steps, "short", SIMCUDA_FAULT="abort:advect:graph=1").wait()
            if status != 0:
                break
        self.assertEqual(status, -signal.SIGABRT)
        self.assert_left_alone_after(steps, "short")
        report = self.folder / "report"
        flags = ("--store", "tune", "--cache-dir", self.folder / "store", "--log-dir", self.folder / "run", "--report", report)
        subprocess.run([COMMAND, "run", *flags, "--", PROGRAM, str(steps), "short"], check=True,
                       stdout=subprocess.DEVNULL, env=awkward.environment(), timeout=awkward.PATIENCE)
        self.assertIn("launches: as written, since an earlier run did not come to its end otherwise",
                      report.read_text())
        self.assertIn("config_crashed, auto, launches: Launches stay as written", report.read_text())

    def test_work_that_never_ends_while_ways_are_tried_leaves_later_runs_as_written(self):
        known = self.folder / "store" / "journal" / "known"
        log = self.folder / "ended" / "rank-0.log"
        deadline = time.monotonic() + awkward.PATIENCE

        def is_known():
            return known.exists() and "gathered" in known.read_text() and \
                "reason=trial_timeout region=auto site=launches" in log.read_text()

        for steps in (32000, 64000, 128000, 256000):  # a busy machine may come late to graphs
            process = self.start(steps, "short", SIMCUDA_FAULT="hang:advect:graph=1", CONTEXTUNE_TRIAL_TIMEOUT="0.1")
            while process.poll() is None and not is_known():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            if process.poll() is None:
                break
        self.assertIsNone(process.poll())
        process.kill()
        process.wait()
        self.assert_left_alone_after(steps, "short")

    def test_a_kernel_that_loses_by_it_is_left_out_of_chaining(self):
        only = dict(CONTEXTUNE_AUTO="chained")
        for steps in range(4000, 4600, 100):  # a busy machine may hide for once what it gains
            log, totals = self.settle(steps, "crowded", **only)
            if totals["launches"] != "as written":
                break
        for _ in range(2):
            self.assertRegex(totals["launches"], r"^chained but=\d(,\d)?$")
            self.assertRegex(log, r"event=submission .* ordinary=.*diffuse")
            log, totals = self.run_of(steps, "crowded", **only)
            waiting = 4 - len(totals["launches"].split(","))
            self.assertEqual((totals["state"], totals["kernels"]), ("settled", str(waiting)))

    def test_a_program_that_gains_nothing_stays_as_written_and_is_left_alone(self):
        _, totals = self.settle(2000, "long")
        self.assertEqual(totals["launches"], "as written")
        _, totals = self.start_as_found(2000, "long")
        self.assert_nothing_was_changed(totals)

    def test_a_program_that_does_not_repeat_or_ends_at_once_stays_as_written(self):
        for arguments in ((2000, "never"), (1, "short"), (0, "short")):
            with self.subTest(arguments=arguments):
                for _ in range(2):
                    log, totals = self.run_of(*arguments)
                    self.assertIn("reason=nothing_repeats region=auto", log)
                    self.assertEqual((totals["launches"], totals["chained"], totals["held"]),
                                     ("as written", "0", "0"))

    def test_a_program_that_never_repeats_is_left_alone_once_it_was_searched_for_long_enough(self):
        totals = {"run": "0", "most_runs": "1"}
        while totals["run"] != totals["most_runs"]:
            log, next_totals = self.run_of(2000, "never")
            self.assertIn("reason=nothing_repeats region=auto", log)
            self.assertEqual(next_totals["state"], "nothing")
            self.assertEqual(int(next_totals["run"]), int(totals["run"]) + 1)
            totals = next_totals
        log, totals = self.run_of(2000, "never")
        self.assertIn('text="as found in an earlier run"', log)
        self.assertEqual((totals["launches"], totals["state"]), ("as written", "settled"))
        self.assert_nothing_was_changed(totals)

    def test_copies_waits_and_graph_launches_are_part_of_what_repeats(self):
        log, _ = self.run_of(2000, "mixed")
        self.assertRegex(log, r'text="every 3 launches, 1 graph launch, 1 copy and 1 wait( from advect)?; ')

    def test_a_program_that_launches_graphs_only_is_tuned_as_well_and_nothing_is_gathered(self):
        for steps in (2000, 4000, 8000, 16000):  # a busy machine may come late to other ways
            log, _ = self.run_of(steps, "graphs", CONTEXTUNE_LOG_LEVEL="debug")
            if re.search(r'event=block .*launches="?chained', log):
                break
        else:
            self.fail(log)
        self.assertIn('text="every 4 graph launches and 1 copy; ', log)
        self.assertNotRegex(log, r"event=block .*gathered=")

    def test_a_host_that_launches_ahead_hides_no_length(self):
        log, totals = self.run_of(8000, "ahead", CONTEXTUNE_LOG_LEVEL="debug")
        entries = [int(one) for one in re.findall(r"event=block .* entries=(\d+)", log)]
        self.assertGreater(len(entries), 50, log)
        # Before the first time is read, blocks have the length that the host sees.
        self.assertLessEqual(sorted(entries)[len(entries) * 9 // 10], 8)

    def test_waits_that_come_at_random_do_not_hide_that_launches_repeat(self):
        log, _ = self.run_of(3000, "irregular")
        self.assertRegex(log, r'text="every launch( of `advect`)?; ')
        self.settle(3000, "irregular")

    def test_all_threads_that_repeat_it_are_counted(self):
        log, _ = self.run_of(600, "threads")
        self.assertRegex(log, r'text="every 8 launches( from advect)?; [\d,]+ entries on [23] threads; ')

    def test_a_thread_that_ends_is_followed_by_another_one(self):
        log, totals = self.run_of(200, "relay")
        entries = re.search(r'text="every 8 launches(?: from advect)?; (\d+) entries', log)
        self.assertIsNotNone(entries, log)
        if totals["state"] == "open":
            self.assertEqual(entries[1], "592")  # but for the launches before anything is looked at

    def test_discovery_lists_what_repeats_beside_the_kernels(self):
        folder = self.folder / "discovered"
        folder.mkdir()
        done = subprocess.run(
            [awkward.BUILD / "bin" / "contextune", "run", "--discover", "--", PROGRAM, "500", "mixed"],
            capture_output=True, text=True, cwd=folder, env=awkward.environment(), timeout=awkward.PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, output((500, "mixed"))))
        self.assertRegex(
            done.stderr,
            r"contextune: what repeats \(simulated\)\n"
            r"  every 3 launches, 1 graph launch, 1 copy and 1 wait from advect; 500 entries; "
            r"\d+ % of the elapsed time\n")
        self.assertRegex(done.stderr, r"contextune: kernels of region process [\s\S]* 1500 .* advect ")
        log = (folder / ".autotune_logs" / "rank-0.log").read_text()
        for none in ("nothing_repeats", "event=submission"):
            self.assertNotIn(none, log)

    def test_an_image_that_one_run_had_no_time_for_is_read_by_the_next(self):
        steps = 240000
        log, totals = self.run_of(steps, "large")
        self.assertIn("it has more machine code than is worth reading", log)
        self.assertEqual((totals["images"], totals["images_left"], totals["chained"]), ("0", "1", "0"))
        if "chained" not in totals["launches"]:
            self.assertIn("Only a part of the region's kernels could be chained", log)
        for _ in range(3):
            _, totals = self.run_of(steps, "large")
            if totals["images"] == "1":
                break
        self.assertEqual((totals["images"], totals["kernels"], totals["images_left"]), ("1", "4", "0"))

    def test_turns_fit_between_the_ends_of_what_repeats_a_few_times_only(self):
        steps = 3000
        log, totals = self.run_of(steps, "layers", CONTEXTUNE_FORCE="launches=gathered=16 in turns")
        self.assertEqual(totals["state"], "turns")
        (pairs,) = re.findall(r" event=confirm region=auto .* pairs=(\d+)", log)
        self.assertGreater(int(pairs), steps // 3, log)

    def test_children_and_contexts_come_and_go_while_launches_are_held(self):
        for kind in ("forks", "resets"):
            for launches in ("chained gathered=16", "gathered=8", "chained"):
                with self.subTest(kind=kind, launches=launches):
                    _, totals = self.run_of(300, kind, CONTEXTUNE_FORCE=f"launches={launches}")
                    self.assertGreater(int(totals["held"]) + int(totals["chained"]), 300)
            self.run_of(300, kind)

    def test_what_a_stream_gets_later_is_not_lost_on_its_launches(self):
        steps_before = 2
        for kind in ("window", "copied"):
            with self.subTest(kind=kind):
                _, totals = self.run_of(300, kind, CONTEXTUNE_FORCE="launches=gathered=8")
                self.assertLessEqual(int(totals["held"]), steps_before * LAUNCHES_OF_STEP)

    def test_a_pin_of_launches_says_that_it_does_not_count_in_a_region(self):
        log, _ = self.run_of(20, "short", CONTEXTUNE_FORCE="launches=gathered=8",
                             CONTEXTUNE_REGION="kernel:advect")
        self.assertIn("reason=force_unmatched region=kernel:advect site=launches", log)
        log, _ = self.run_of(20, "short", CONTEXTUNE_FORCE="launches=gathered=8")
        self.assertNotIn("reason=force_unmatched", log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
