"""`contextune doctor` says what will work, what will not, and why."""

import os
import shutil
import subprocess
import unittest

from harness import CommandTest


class Doctor(CommandTest):
    def doctor(self, *arguments, **changes):
        return self.contextune("doctor", *arguments, env=self.environment | changes)

    def compile(self, name, *flags):
        (self.work / "main.c").write_text("int main(void) { return 0; }\n")
        subprocess.run(["cc", "-o", self.work / name, self.work / "main.c", *flags], check=True)
        return self.work / name

    def test_no_driver_is_said_and_fails(self):
        # A folder with a file that is no library stands for a machine without a driver.
        (self.work / "libcuda.so.1").write_text("")
        result = self.doctor(LD_LIBRARY_PATH=str(self.work))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\[no\] +driver +no CUDA driver")
        self.assertIn("Tuning cannot work here", result.stdout)

    def test_a_dynamic_program_is_fine(self):
        self.assertRegex(self.doctor("--", "sh").stdout, r"\[ok\] +program +\S+/sh: a library can be")

    def test_a_static_program_is_named(self):
        for flags in (["-static"], ["-static-pie"]):
            program = self.compile("static", *flags)
            self.assertRegex(self.doctor("--", program).stdout, r"\[no\] +program .*statically linked")

    def test_a_program_that_filters_system_calls_is_named(self):
        self.compile("libseccomp.so.2", "-shared", "-fPIC", "-Wl,-soname,libseccomp.so.2")
        program = self.compile("filters", "-Wl,--no-as-needed", self.work / "libseccomp.so.2")
        output = self.doctor("--", program).stdout
        self.assertRegex(output, r"\[ok\] +program")
        self.assertRegex(output, r"\[--\] +seccomp +.*filters uses libseccomp")
        self.assertNotIn("libseccomp", self.doctor("--", self.compile("plain")).stdout)

    def test_a_filter_that_is_in_force_is_named(self):
        (self.work / "filter.c").write_text("""
            #include <linux/filter.h>
            #include <linux/seccomp.h>
            #include <sys/prctl.h>
            #include <unistd.h>
            int main(int argc, char** argv) {
              struct sock_filter all = BPF_STMT(BPF_RET, SECCOMP_RET_ALLOW);
              struct sock_fprog filter = {1, &all};
              if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 3;
              return argc > 1 ? execv(argv[1], argv + 1) : 2;
            }""")
        subprocess.run(["cc", "-o", self.work / "filter", self.work / "filter.c"], check=True)
        result = subprocess.run([self.work / "filter", self.command, "doctor"], text=True,
                                env=self.environment, capture_output=True, check=False)
        self.assertRegex(result.stdout, r"\[--\] +seccomp +a filter of system calls is in force")

    def test_a_script_is_judged_by_its_interpreter(self):
        script = self.work / "script"
        script.write_text("#!/usr/bin/env python3\n")
        script.chmod(0o755)
        self.assertRegex(self.doctor("--", script).stdout, r"\[ok\] +program")
        static = self.compile("static", "-static")
        script.write_text(f"#!{static} -x\n")
        self.assertRegex(self.doctor("--", script).stdout, r"\[no\] +program .*statically linked")

    def test_a_program_of_another_architecture_is_named(self):
        program = self.compile("other")
        image = bytearray(program.read_bytes())
        image[18] = 0x15  # PowerPC 64
        program.write_bytes(image)
        self.assertRegex(self.doctor("--", program).stdout, r"\[no\] +program .*is not a 64-bit")

    def test_a_file_that_is_no_program_is_named(self):
        text = self.work / "text"
        text.write_text("hello")
        text.chmod(0o755)
        self.assertRegex(self.doctor("--", text).stdout, r"\[no\] +program .*neither an ELF")
        self.assertRegex(self.doctor("--", "no-such-thing").stdout, r"\[no\] +program .*was not found")

    def test_a_broken_header_does_no_harm(self):
        program = self.compile("cut")
        whole = program.read_bytes()
        for size in (1, 4, 17, 40, 63, 64, 100, 400):
            program.write_bytes(whole[:size])
            self.assertEqual(self.doctor("--", program).returncode, 1)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to give a file to another user")
    def test_a_setuid_program_is_named(self):
        program = self.compile("setuid")
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        self.assertRegex(self.doctor("--", program).stdout, r"\[no\] +program .*runs with other rights")

    def test_other_tools_are_seen(self):
        output = self.doctor(CUDA_INJECTION64_PATH="/x.so", NSYS_PROFILING_SESSION_ID="1",
                             NVTX_INJECTION64_PATH="/opt/none.so", LD_PRELOAD=str(self.preload)).stdout
        self.assertIn("Nsight Systems is set up", output)
        self.assertIn("CUDA_INJECTION64_PATH", output)
        self.assertIn("NVTX_INJECTION64_PATH is /opt/none.so, which is not there", output)
        self.assertRegex(output, r"\[--\] +LD_PRELOAD")

    def test_options_that_make_no_sense_are_seen(self):
        output = self.doctor(CONTEXTUNE_N_REPEAT="many", CONTEXTUNE_RGION="x").stdout
        self.assertIn("CONTEXTUNE_N_REPEAT: option n_repeat is 'many'", output)
        self.assertIn("CONTEXTUNE_RGION means nothing", output)
        self.assertNotIn("SECRET", self.doctor(CONTEXTUNE_SECRET="0123456789abcdef").stdout)
        disabled = self.doctor(CONTEXTUNE_DISABLE="1")
        self.assertEqual(disabled.returncode, 1)
        self.assertIn("CONTEXTUNE_DISABLE is set", disabled.stdout)

    def test_the_log_folder_is_judged_without_making_it(self):
        self.assertRegex(self.doctor().stdout, r"\[ok\] +log folder")
        self.assertFalse((self.work / ".autotune_logs").exists())
        (self.work / "in_the_way").write_text("")
        output = self.doctor(CONTEXTUNE_LOG_DIR="in_the_way/x").stdout
        self.assertIn("in_the_way/x cannot be written (Not a directory)", output)
        (self.work / "open_to_all").mkdir()
        (self.work / "open_to_all").chmod(0o777)
        output = self.doctor(CONTEXTUNE_LOG_DIR="open_to_all").stdout
        self.assertIn("everybody may write the folder", output)

    def test_the_store_is_judged_without_making_it(self):
        store = self.work / "store"
        self.assertIn(f"{store} can be written", self.doctor(CONTEXTUNE_CACHE_DIR=str(store)).stdout)
        self.assertFalse(store.exists())
        store.mkdir()
        store.chmod(0o777)
        output = self.doctor(CONTEXTUNE_CACHE_DIR=str(store)).stdout
        self.assertIn("may be written by everybody", output)
        self.assertRegex(output, r"\[..\] +store ")

    def test_a_space_file_is_checked(self):
        space = self.work / "space.lua"
        space.write_text('kernel "saxpy" { space = { block = {64, 128} }, '
                         "apply = function(config, launch) launch.block.x = config.block end }\n")
        self.assertRegex(self.doctor("--space", space).stdout, r"\[ok\] +space file")
        space.write_text('kernel "saxpy" {\n  space = \n}\n')
        self.assertRegex(self.doctor("--space", space).stdout, r"\[no\] +space file .*space\.lua:3")
        self.assertRegex(self.doctor("--space", "none.lua").stdout, r"\[no\] +space file .*none\.lua")

    def test_missing_libraries_are_named(self):
        self.assertRegex(self.doctor().stdout, r"\[no\] +libraries .*libcontextune\.so is not there")
        shutil.copy(self.preload, self.folder / "lib" / "libcontextune.so")
        self.assertRegex(self.doctor().stdout, r"\[ok\] +libraries")
        self.preload.unlink()
        self.assertRegex(self.doctor().stdout, r"\[no\] +libraries .*libcontextune_preload\.so")


if __name__ == "__main__":
    unittest.main()
