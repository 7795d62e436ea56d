"""What becomes of stored winners when one thing about the machine, the job or the software is another:
hardware, ranks and kernels have them tuned, software has them confirmed, and anything else nothing."""

import json
import shutil
import struct
import unittest

from stored_runs import DEMO, PATIENCE, SPACE, TENSOR_PARALLEL, Log, StoredRuns, demo

SHORT = demo(4)

# Each alone, as the simulated driver or a variable says it.
HARDWARE = {
    "gpu": {"SIMCUDA_GPU": "name=Another GPU"},
    "compute_capability": {"SIMCUDA_GPU": "compute_capability=8.9"},
    "num_sms": {"SIMCUDA_GPU": "num_sms=114"},
    "memory_mib": {"SIMCUDA_GPU": "memory_mib=8192"},
    "gpus": {"SIMCUDA_DEVICES": "2"},
}
SOFTWARE = {
    "cuda": {"SIMCUDA_VERSION": "13.1"},
    "CUDA_SCALE_LAUNCH_QUEUES": {"CUDA_SCALE_LAUNCH_QUEUES": "4x"},
    "NCCL_PROTO": {"NCCL_PROTO": "Simple"},
}
# What no program can be told by a variable: the file says that they were others.
IN_THE_FILE = ("driver", "cpu", "contextune")
UNRELATED = {
    "a variable of the program": {"LEARNING_RATE": "0.1"},
    "where CUDA is": {"CUDA_HOME": "/usr/local/cuda"},
    "what NCCL tells": {"NCCL_DEBUG": "INFO"},
    "the speed of the machine": {"SIMCUDA_SEED": "7"},
}


def software_id(facts):
    """By which a file names software: store::software_id."""
    mask = (1 << 64) - 1
    state = 0x636F6E7465787475

    def add(word):
        nonlocal state
        x = state ^ ((word + 0x9E3779B97F4A7C15 + (state << 6) + (state >> 2)) & mask)
        x = ((x ^ (x >> 33)) * 0xFF51AFD7ED558CCD) & mask
        x = ((x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53) & mask
        state = x ^ (x >> 33)

    add(len(facts))
    for text in (part for fact in sorted(facts.items()) for part in fact):
        add(len(text))
        padded = text.encode() + bytes(-len(text) % 8)
        for (word,) in struct.iter_unpack("<Q", padded):
            add(word)
    return f"{state:016x}"


class ChangedEnvironmentTest(StoredRuns):
    def start(self, *flags, **how):
        """With few configs, so that a tuning is over in a moment."""
        few = self.work / "few.lua"
        few.write_text(SPACE.read_text().replace("{ 128, 256, 512, 1024 }", "{ 128, 1024 }")
                       .replace("{ 1, 2, 4, 8 }", "{ 2, 8 }"))
        return super().start(*flags, **{"space": few} | how)

    def tune(self, *flags, **how):
        """The first run; what it has stored is put back before each that follows."""
        for _ in range(8):
            log, _ = self.run_program(*flags, "--confirm-min-pairs", "2", **how)
            self.assertEqual(len(log.of("store", action="saved")), 1)
            # On a busy machine the defaults may have been kept, and they are not confirmed again.
            if "--no-confirm" in flags or "kept" in {line["verdict"] for line in log.of("confirm")}:
                break
            shutil.rmtree(self.work / "store")
        self.stored = self.work / "stored"
        shutil.copytree(self.work / "store", self.stored)
        return log

    def again(self, *flags, **how):
        shutil.rmtree(self.work / "store")
        shutil.copytree(self.stored, self.work / "store")
        return self.run_program(*flags, "--confirm-min-pairs", "2", **how)[0]

    def assert_kept(self, log):
        (found,) = log.of("store", action="found")
        self.assertEqual(found["same_software"], found["sites"])
        self.assertEqual(log.of("trial"), [])
        self.assertEqual([line["verdict"] for line in log.of("confirm")], ["skipped"])
        self.assertEqual({line["passes"] for line in log.of("summary", stage="finished")}, {"0"})

    def assert_confirmed(self, log):
        for found in log.of("store", action="found"):
            self.assertEqual(found["same_software"], "0")
        self.assertNotEqual(log.of("store", action="found"), [])
        # What is not kept is tuned afterwards.
        for events in ([line["event"] for line in lines] for lines in log.ranks):
            self.assertIn("confirm", events)
            self.assertNotIn("trial", events[:events.index("confirm")])
        self.assertNotIn("skipped", {line["verdict"] for line in log.of("confirm")})

    def assert_tuned(self, log):
        self.assertEqual(log.of("store", action="found"), [])
        self.assertNotEqual(log.of("trial"), [])

    def test_other_hardware_has_everything_tuned(self):
        self.tune("--no-confirm", program=SHORT)
        hardware = self.entry(store="stored")[1]["hardware"]
        for name, variables in HARDWARE.items():
            with self.subTest(name):
                self.assertIn(name, hardware)
                self.assert_tuned(self.again("--no-confirm", program=SHORT, variables=variables))
        with self.subTest("ranks"):
            self.assert_tuned(self.again("-n", "2", "--no-confirm", program=SHORT))

    def test_other_software_has_the_winners_confirmed_or_tuned_where_that_is_asked_for(self):
        self.tune(program=SHORT)
        for name, variables in SOFTWARE.items():
            with self.subTest(name):
                self.assert_confirmed(self.again(program=SHORT, variables=variables))
        log = self.again("--version-check", program=SHORT, variables=SOFTWARE["cuda"])
        self.assertNotEqual(log.of("trial"), [])

    def test_software_that_the_file_says_was_another_has_the_winners_confirmed(self):
        self.tune(program=SHORT)
        path, entry = self.entry(store="stored")
        text = path.read_text()
        for name in IN_THE_FILE:
            with self.subTest(name):
                ((own, software),) = entry["software"].items()
                self.assertEqual(own, software_id(software))
                before = f'"{name}":{json.dumps(software[name])}'
                self.assertEqual(text.count(before), 1)
                path.write_text(text.replace(before, f'"{name}":"another"').replace(
                    own, software_id(software | {name: "another"})))
                self.assert_confirmed(self.again(program=SHORT))
        log = self.again("--version-check", program=SHORT)
        self.assertNotEqual(log.of("trial"), [])
        path.write_text(text)
        self.assert_kept(self.again(program=SHORT))

    def test_what_is_unrelated_changes_nothing(self):
        first = self.tune(program=SHORT)
        for name, variables in UNRELATED.items():
            with self.subTest(name):
                log = self.again(program=SHORT, variables=variables)
                self.assert_kept(log)
                self.assertEqual(log.winners(), first.winners())
        with self.subTest("a flag of the program"):
            self.assert_kept(self.again(program=demo(7)))

    def test_kernels_of_other_code_are_tuned(self):
        first = self.tune(program=SHORT)
        folder = self.work / "rebuilt"
        shutil.copytree(DEMO.parent, folder)
        with open(folder / "demo_kernels.fatbin.sim", "a", encoding="utf-8") as image:
            image.write("registers 41\n")
        log = self.again(program=demo(4, folder / DEMO.name))
        self.assertEqual({line["site"] for line in log.of("trial")},
                         {line["site"] for line in first.of("trial")})

    def rebuild(self, folder, **code):
        """Instructions of kernels, in the image that the simulated driver reads."""
        image = (DEMO.parent / "demo_kernels.fatbin.sim").read_text()
        (folder / "demo_kernels.fatbin.sim").write_text(
            image + "".join(f"code {kernel} {text}\n" for kernel, text in code.items()))

    def test_a_kernel_with_other_instructions_is_tuned_and_no_other(self):
        folder = self.work / "rebuilt"
        shutil.copytree(DEMO.parent, folder)
        program = demo(300, folder / DEMO.name)  # long enough for what it notes to be written
        # What is known of an earlier version of the store, or of code that could not be read.
        first = self.tune(program=program)
        self.rebuild(folder, rotate="r1", attend="a1")
        self.assert_kept(self.again(program=program))
        shutil.rmtree(self.stored)
        shutil.copytree(self.work / "store", self.stored)
        codes = {site["name"]: site["code"] for site in self.entry(store="stored")[1]["sites"]}
        self.assertNotIn("", (codes["rotate"], codes["attend"]))
        self.assertEqual(codes["project"], "")
        log = self.again(program=program)
        self.assert_kept(log)
        # Of what cannot be read either there is nothing to note, for which a program would wait.
        self.assertEqual(log.of("store", action="noted"), [])
        self.rebuild(folder, rotate="r1", attend="a2", project="p1")
        log = self.again(program=program)
        self.assertEqual({line["site"] for line in log.of("trial")}, {"attend"})
        (named,) = log.of("fallback", reason="other_code")
        self.assertIn("'attend'", named["text"])
        now = self.site("attend")
        self.assertNotEqual(now["code"], codes["attend"])
        # Whatever was noted of the tuning while it went on.
        self.assertEqual(len(now["replaced"]), 1)
        self.assertNotEqual(now["reason"], "no_samples")
        self.assertEqual({name for name, _ in log.winners()}, {name for name, _ in first.winners()})

    def test_another_nccl_has_the_winners_of_all_ranks_confirmed(self):
        program = (TENSOR_PARALLEL, "--meet", self.work / "meet", "--steps", "4", "--tokens", "8")
        how = {"program": program, "region": "nvtx:step",
               "space": DEMO.parent / "tensor_parallel.lua"}
        flags = ("-n", "2", "--distributed", "on", "--mode", "replay")
        self.tune(*flags, "--no-confirm", **how)
        self.assert_kept_by_all(self.again(*flags, "--no-confirm", **how))
        self.assert_confirmed(self.again(*flags, **how, variables={"SIMNCCL_VERSION": "2.27.7"}))

    def assert_kept_by_all(self, log):
        self.assertEqual(len(log.of("store", action="found")), 2)
        self.assertEqual(log.of("trial"), [])

    def start_ranks(self, on_host):
        """Two ranks as a launcher starts them that has so many on this host."""
        ranks = []
        for rank in range(2):
            process = self.start("--confirm-min-pairs", "2", program=SHORT, variables={
                "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0" if on_host == 1 else str(rank),
                "OMPI_COMM_WORLD_LOCAL_SIZE": str(on_host),
                "CONTEXTUNE_ADDRESS": f"unix:contextune-{self.work.name}-{self.runs // 2}"})
            ranks.append((process, self.folder))
        lines = []
        for process, folder in ranks:
            out, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, errors)
            lines += Log(folder).ranks
        log = Log(self.folder)
        log.ranks = lines
        return log

    def test_as_many_ranks_on_more_hosts_tune(self):
        first = self.start_ranks(2)
        self.assertNotEqual(first.of("trial"), [])
        again = self.start_ranks(2)
        self.assertEqual(again.of("trial"), [])
        self.assertEqual(len(again.of("store", action="found")), 2)
        self.assert_tuned(self.start_ranks(1))


if __name__ == "__main__":
    unittest.main()
