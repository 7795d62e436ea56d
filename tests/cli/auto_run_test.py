"""`contextune run --region auto` with the real library and the demo on the simulated driver."""

import subprocess
import unittest

from demo_runs import COMMAND, DEMO, PATIENCE, SMALL_DEMO, DemoRuns

PROGRAM = (*SMALL_DEMO, "--steps", 40)


class AutoRun(DemoRuns):
    prints_errors = True

    def run_of(self, *flags, **variables):
        """The last process, and the report."""
        processes, report = self.run_under(("--region", "auto", *flags), PROGRAM, **variables)
        return processes[-1], report

    def submission_of(self, *flags, **variables):
        process, report = self.run_of(*flags, **variables)
        (region,) = [one for one in process["regions"] if one["name"] == "auto"]
        return region["submission"], report

    def test_pinned_launches_are_gathered_and_counted(self):
        shown, report = self.submission_of("--force", "launches=gathered=8")
        self.assertEqual((shown["launches"], shown["state"]), ("gathered=8", "pinned"))
        self.assertGreater(shown["held"], 0)
        self.assertIn("launches: gathered by 8, as --force says", report)

    def test_a_kernel_that_is_left_out_is_not_gathered(self):
        shown, _ = self.submission_of("--force", "launches=gathered=8", "--exclude", "[a-z]")
        self.assertEqual((shown["held"], shown["chained"], shown["images"]), (0, 0, 0))

    def test_launches_that_block_are_neither_chained_nor_gathered(self):
        for flags in (["--force", "launches=chained gathered=8"], []):
            process, report = self.run_of(*flags, CUDA_LAUNCH_BLOCKING="1")
            self.assertEqual([one for one in process["regions"] if one["submission"]], [])
            self.assertIn("launch_blocking, auto: CUDA_LAUNCH_BLOCKING makes each launch wait", report)
        process, report = self.run_of(CUDA_LAUNCH_BLOCKING="0")
        self.assertNotIn("launch_blocking", report)

    def test_nothing_is_looked_for_where_nothing_may_be_tried(self):
        process, _ = self.run_of("--auto", "off")
        self.assertEqual([one for one in process["regions"] if one["submission"]], [])

    def test_discovery_names_nvtx_ranges_and_what_repeats(self):
        process, report = self.run_of("--discover")
        regions = {one["name"]: one for one in process["regions"]}
        self.assertEqual(regions["auto"]["ranges"], "decode")
        self.assertRegex(report, r"NVTX ranges, for --region nvtx:NAME: decode\n")
        self.assertRegex(regions["auto"]["periods"][0], r"^every .* entries; \d+ % of the elapsed time$")
        self.assertNotEqual(regions["process"]["kernels"], [])

    def test_the_log_says_how_the_program_was_started(self):
        secret = "of nobody's business 0123456789"
        self.run_of("--n-repeat", "3", "--only", "it's two words", CONTEXTUNE_SECRET=secret)
        log = (self.work / ".autotune_logs" / "rank-0.log").read_text()
        (start,) = [line for line in log.splitlines() if " event=start " in line]
        self.assertIn(f' command="{DEMO} --rows 64 --steps 40" options="region=auto only=', start)
        self.assertIn(" n-repeat=3 ", start)
        self.assertNotIn(secret, log)
        self.assertNotIn(secret, self.execute(COMMAND, "report", "-o", "-"))

    def test_tuned_runs_are_proved_to_print_the_same(self):
        result = subprocess.run([str(COMMAND), "run", "--region", "auto", "--prove", "2", "--",
                                 *map(str, PROGRAM)], capture_output=True, text=True, cwd=self.work,
                                env=self.environment, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stdout), (0, self.execute(*PROGRAM)))
        self.assertRegex(result.stderr, r"output +the same in every byte\n")
        self.assertRegex(result.stderr, r"search +(not )?settled after \d runs?\b")

    def test_the_doctor_says_how_launches_may_go_out(self):
        def doctor(**variables):
            return subprocess.run([str(COMMAND), "doctor"], capture_output=True, text=True, cwd=self.work,
                                  env=self.environment | variables, timeout=PATIENCE).stdout
        self.assertRegex(doctor(), r"\[ok\] +launches +can be chained and gathered\n")
        self.assertRegex(doctor(CUDA_LAUNCH_BLOCKING="1"), r"\[--\] +launches +neither chained nor gathered: ")
        self.assertRegex(doctor(CUDA_INJECTION64_PATH="/x.so"),
                         r"\[--\] +launches +can be gathered, but not chained: CUDA_INJECTION64_PATH ")


if __name__ == "__main__":
    unittest.main()
