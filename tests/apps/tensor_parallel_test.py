"""The program of several ranks computes the same on all of them, however their times differ, under
every launcher that it knows.

On the simulated driver and the simulated NCCL."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"])
PROGRAM = BUILD / "demo" / "tensor_parallel"
PATIENCE = 60
LAUNCHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "srun": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
}
OF_A_LAUNCHER = ("CONTEXTUNE_", "LD_PRELOAD", "NCCL_", "SIMNCCL_", "OMPI_", "SLURM_", "RANK",
                 "WORLD_SIZE", "LOCAL_RANK")


def environment():
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(OF_A_LAUNCHER)}
    kept["LD_LIBRARY_PATH"] = f"{BUILD / 'simnccl'}:{BUILD / 'simcuda'}"
    kept["CONTEXTUNE_STORE"] = "off"
    # Where ranks wait for each other for ever, they say so and end.
    kept["SIMNCCL_DEADLINE_S"] = str(PATIENCE / 2)
    return kept


class TensorParallelTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-ranks-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def checksums(self, ranks, *arguments, launcher="torchrun", **variables):
        """The checksum of each rank; all of them have ended well."""
        names = LAUNCHERS[launcher]
        processes = []
        for rank in range(ranks):
            values = dict(zip(names, map(str, (rank, ranks, rank))))
            processes.append(subprocess.Popen(
                [PROGRAM, "--meet", self.folder / "meet", "--tokens", "64", *arguments],
                env={**environment(), **values, **variables}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            self.addCleanup(processes[-1].kill)
        found = []
        for rank, process in enumerate(processes):
            output, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, errors)
            self.assertRegex(errors, rf"^rank {rank} of {ranks}: \d+\.\d us a step\n$")
            line = re.fullmatch(rf"rank {rank} of {ranks}: \d+ steps of 64 x 1024 values, "
                                r"checksum ([0-9a-f]{16})\n", output)
            self.assertIsNotNone(line, output)
            found.append(line.group(1))
        return found

    def test_all_ranks_compute_the_same_also_with_a_straggler(self):
        plain = self.checksums(4, "--steps", "20")
        self.assertEqual(len(set(plain)), 1)
        self.assertEqual(self.checksums(4, "--steps", "20", "--straggler", "2:5"), plain)

    def test_neither_algorithm_nor_order_of_work_changes_the_result(self):
        plain = self.checksums(4, "--steps", "5")
        self.assertEqual(self.checksums(4, "--steps", "5", NCCL_ALGO="RING", NCCL_PROTO="LL"), plain)
        for seed in ("1", "2", "3"):
            self.assertEqual(self.checksums(4, "--steps", "5", SIMCUDA_ORDER=seed), plain)

    def test_steps_and_number_of_ranks_change_it(self):
        one = self.checksums(4, "--steps", "5")[0]
        self.assertNotEqual(self.checksums(4, "--steps", "6")[0], one)
        self.assertNotEqual(self.checksums(2, "--steps", "5")[0], one)

    def test_every_launcher_is_understood(self):
        of_launcher = {launcher: self.checksums(2, "--steps", "3", launcher=launcher)
                       for launcher in LAUNCHERS}
        self.assertEqual(len({tuple(sums) for sums in of_launcher.values()}), 1)

    def test_without_a_launcher_it_is_alone(self):
        result = subprocess.run([PROGRAM, "--steps", "2"], env=environment(), text=True,
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("rank 0 of 1: 2 steps of 1024 x 1024 values"))

    def test_wrong_use_is_answered(self):
        for arguments in (["--steps"], ["--steps", "x"], ["--straggler", "1"], ["--tokens", "6"],
                          ["--straggler", "1:x"], ["--colour", "red"]):
            result = subprocess.run([PROGRAM, *arguments], env=environment(), text=True,
                                    capture_output=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("usage: tensor_parallel", result.stderr)


if __name__ == "__main__":
    unittest.main()
