"""Ranks find one another by what each launcher tells them, in processes of their own; under the
real mpirun too, where there is one."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CLIENT = os.environ["CONTEXTUNE_TEST_RENDEZVOUS_PROCESS"]
PATIENCE = 60
TELLING = ("CONTEXTUNE_", "OMPI_", "PMIX_", "PMI_", "MPI_LOCAL", "SLURM_", "TORCHELASTIC_", "MASTER_")
WORDS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
SECRET = "a secret that nobody can guess"


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Launchers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="contextune-ranks-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o700)
        self.base = {name: value for name, value in os.environ.items()
                     if not name.startswith(TELLING) and name not in WORDS}
        self.base["XDG_RUNTIME_DIR"] = self.folder

    def run_ranks(self, variables, count=4, wrapper=(), arguments=()):
        """What each rank said, in their order. `variables` makes those of one rank."""
        ranks = [subprocess.Popen([*wrapper, CLIENT, *arguments], env=self.base | variables(rank),
                                  stdout=subprocess.PIPE, text=True) for rank in range(count)]
        return [rank.communicate(timeout=PATIENCE)[0] for rank in ranks]

    def check_agreed(self, lines, source, place, count=4):
        expected = "".join(chr(ord("a") + rank) for rank in range(count))
        self.assertEqual(len(lines), count)
        for rank, line in enumerate(sorted(lines)):
            self.assertRegex(line, rf"^rank={rank} local=\d+ of={count} source={source} "
                                   rf"address={place}\S* agreed={expected}\n$")
            self.assertNotIn(SECRET, line)
        self.assertEqual(len({re.search(r"address=(\S+)", line)[1] for line in lines}), 1)

    def torchrun(self, rank):
        return {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "4",
                "MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none",
                "TORCHELASTIC_RESTART_COUNT": "0"}

    def test_torchrun(self):
        lines = self.run_ranks(self.torchrun)
        self.check_agreed(lines, "torchrun", f"unix:{self.folder}/contextune/")

    def test_a_rank_behind_a_script_meets_the_others(self):
        lines = self.run_ranks(lambda rank: {"PMI_RANK": str(rank), "PMI_SIZE": "4",
                                             "MPI_LOCALNRANKS": "4", "MPI_LOCALRANKID": str(rank)},
                               wrapper=("sh", "-c", '"$0" "$@"; true'))
        self.check_agreed(lines, "pmi", f"unix:{self.folder}/contextune/")

    def test_variables_of_open_mpi(self):
        self.check_agreed(self.run_ranks(lambda rank: {
            "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
            "PMIX_RANK": str(rank), "PMIX_NAMESPACE": "prterun-host-7@1"}),
            "open_mpi", f"unix:{self.folder}/contextune/")

    def test_slurm_on_one_node_with_and_without_pmi(self):
        slurm = lambda rank: {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "4", "SLURM_LOCALID": str(rank),
                              "SLURM_JOB_ID": "42", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1"}
        place = f"unix:{self.folder}/contextune/"
        self.check_agreed(self.run_ranks(slurm), "slurm", place)
        self.check_agreed(self.run_ranks(lambda rank: slurm(rank) | {"PMIX_RANK": str(rank)}), "slurm",
                          place)
        self.check_agreed(self.run_ranks(lambda rank: slurm(rank) | {
            "PMI_RANK": str(rank), "PMI_SIZE": "4", "PMI_JOBID": "42.0"}), "pmi", place)

    def test_own_variables_over_tcp_with_a_secret(self):
        port = free_port()
        own = lambda rank: {"CONTEXTUNE_RANK": str(rank), "CONTEXTUNE_WORLD_SIZE": "4",
                            "CONTEXTUNE_ADDRESS": f"127.0.0.1:{port}", "CONTEXTUNE_SECRET": SECRET}
        self.check_agreed(self.run_ranks(own), "contextune", "tcp:127.0.0.1:")

    def test_tcp_without_a_secret_is_refused(self):
        own = lambda rank: {"CONTEXTUNE_RANK": str(rank), "CONTEXTUNE_WORLD_SIZE": "4",
                            "CONTEXTUNE_ADDRESS": "127.0.0.1:1"}
        for line in self.run_ranks(own):
            self.assertIn("fault=ranks on several hosts agree only with a shared secret", line)

    def test_a_unique_id_gives_what_open_mpi_does_not(self):
        import struct
        unique = struct.pack("=QHH4s", 0x1234567890ABCDEF, 2, 0x1234, bytes([127, 0, 0, 1])).ljust(128, b"\0")
        several_hosts = lambda rank: {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "PMIX_NAMESPACE": self.folder}
        lines = self.run_ranks(several_hosts, arguments=("--unique-id", unique.hex()))
        self.check_agreed(lines, "open_mpi", "tcp:127.0.0.1:")

    def test_two_jobs_at_once_keep_apart(self):
        jobs = [[subprocess.Popen([CLIENT], env=self.base | self.torchrun(rank) | {"MASTER_PORT": port},
                                  stdout=subprocess.PIPE, text=True) for rank in range(4)]
                for port in ("29500", "29501")]
        for job in jobs:
            self.check_agreed([rank.communicate(timeout=PATIENCE)[0] for rank in job], "torchrun", "unix:")

    def test_nothing_is_left_in_the_folder(self):
        self.run_ranks(self.torchrun)
        self.assertEqual(os.listdir(f"{self.folder}/contextune"), [])

    def test_one_that_nobody_started_as_a_rank_makes_no_folder(self):
        self.assertEqual(self.run_ranks(lambda rank: {}, count=1), ["rank=0 local=0 of=1 source=none\n"])
        self.assertEqual(os.listdir(self.folder), [])

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_the_real_mpirun(self):
        command = ["mpirun", "--oversubscribe", "-n", "4", CLIENT]
        if os.geteuid() == 0:
            command.insert(1, "--allow-run-as-root")
        done = subprocess.run(command, env=self.base, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_agreed(done.stdout.splitlines(keepends=True), "open_mpi", "unix:")

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_the_real_mpirun_with_a_script_around_each_rank(self):
        command = ["mpirun", "--oversubscribe", "-n", "4", "sh", "-c", '"$0"; true', CLIENT]
        if os.geteuid() == 0:
            command.insert(1, "--allow-run-as-root")
        done = subprocess.run(command, env=self.base, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_agreed(done.stdout.splitlines(keepends=True), "open_mpi", "unix:")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
