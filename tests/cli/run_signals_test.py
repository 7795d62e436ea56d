"""Signals reach the program as if contextune were not there."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from harness import CommandTest, gone, wait_until

# Says which signals came, one a line; ends half a second after the last one, or as long as it is told.
COUNTS_SIGNALS = """
import os, signal, sys
names = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGALRM", "SIGWINCH"]
numbers = [getattr(signal, n) for n in names] + [signal.SIGRTMIN + 3]
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
quiet = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
print("ready", flush=True)
while True:
    info = signal.sigtimedwait(numbers, 20 if not globals().get("got") else quiet)
    if info is None:
        break
    got = True
    print(info.si_signo, flush=True)
"""


class Signals(CommandTest):
    def setUp(self):
        super().setUp()
        self.counter = self.script("counter.py", COUNTS_SIGNALS)

    def signals_of(self, process):
        out, _ = process.communicate(timeout=20)
        return [int(line) for line in out.split()]

    def test_a_signal_to_contextune_alone_is_passed_on_once(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                       signal.SIGALRM, signal.SIGRTMIN + 3):
            process = self.start(*self.counter)
            process.send_signal(number)
            self.assertEqual(self.signals_of(process), [number])
            self.assertEqual(process.returncode, 0)

    def test_a_signal_to_the_group_reaches_the_program_once(self):
        process = self.start(*self.counter, start_new_session=True)
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(self.signals_of(process), [signal.SIGTERM])

    def test_a_signal_to_the_group_does_not_hide_a_later_one(self):
        process = self.start(*self.counter, "4", start_new_session=True)
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), f"{int(signal.SIGTERM)}\n")
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.signals_of(process), [signal.SIGTERM])

    def test_a_program_in_a_group_of_its_own_gets_what_contextune_gets(self):
        own_group = self.script("own_group.py", "import os\nos.setpgid(0, 0)\n" + COUNTS_SIGNALS)
        process = self.start(*own_group, start_new_session=True)
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(self.signals_of(process), [signal.SIGTERM])

    def test_timeout_ends_the_program(self):
        result = subprocess.run(["timeout", "5", *self.argv("run", "--", *self.counter)],
                                env=self.environment, cwd=self.work, capture_output=True, text=True,
                                timeout=20)
        # timeout signals the command and then the group; on a busy machine these are two.
        self.assertIn(result.stdout.split(), (["ready", "15"], ["ready", "15", "15"]))
        self.assertEqual(result.returncode, 124)

    def test_the_program_may_signal_its_parent(self):
        program = "import os, signal; os.kill(os.getppid(), signal.SIGTERM); print('alive')"
        result = self.run_program(sys.executable, "-c", program)
        self.assertEqual((result.returncode, result.stdout), (0, "alive\n"))

    def test_ctrl_c_reaches_the_program_once(self):
        status, output = self.in_terminal(self.argv("run", "--", *self.counter),
                                          talk=[(b"ready\r\n", b"\x03")])
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        lines = output.replace("^C", " ").split()  # the terminal's echo
        self.assertEqual(lines.count(str(int(signal.SIGINT))), 1, output)

    def test_ctrl_c_ends_contextune_as_it_ends_the_program(self):
        status, _ = self.in_terminal(
            self.argv("run", "--", "sh", "-c", "echo ready; exec sleep 20"),
            talk=[(b"ready\r\n", b"\x03")])
        self.assertEqual(os.waitstatus_to_exitcode(status), -signal.SIGINT)

    def test_killing_contextune_kills_the_program(self):
        program = self.script("sleeper.py", "import os, time\n"
                              "open('pid', 'w').write(str(os.getpid()))\n"
                              "print('ready', flush=True)\ntime.sleep(60)\n")
        process = self.start(*program)
        pid = int((self.work / "pid").read_text())
        process.kill()
        process.wait()
        self.assertTrue(wait_until(lambda: gone(pid)))

    def test_no_helper_is_left_behind(self):
        process = self.start(*self.counter, start_new_session=True)
        group = process.pid
        process.send_signal(signal.SIGTERM)
        self.signals_of(process)

        def members():
            found = []
            for entry in os.listdir("/proc"):
                if entry.isdigit():
                    try:
                        stat = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                    except OSError:
                        continue
                    if int(stat[2]) == group and stat[0] != "Z":
                        found.append(entry)
            return found

        self.assertEqual(members(), [])


# Plays a shell with job control: starts argv as a job, stops it as Ctrl-Z does, and resumes it.
JOB_SHELL = """
import os, signal, sys, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(job, os.WUNTRACED)
assert os.WIFSTOPPED(status), status
os.tcsetpgrp(0, os.getpgrp())
states = [open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[0]
          for p in open(f"/proc/{job}/task/{job}/children").read().split()]
print("stopped", "T" in states, flush=True)
os.tcsetpgrp(0, job)
os.killpg(job, signal.SIGCONT)
_, status = os.waitpid(job, 0)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""


class JobControl(CommandTest):
    def test_ctrl_z_stops_the_job_and_the_shell_can_resume_it(self):
        shell = self.script("job_shell.py", JOB_SHELL)
        program = self.script("program.py", "import sys, time\nprint('ready', flush=True)\n"
                              "time.sleep(1.0)\nprint('went on', flush=True)\nsys.exit(5)\n")
        status, output = self.in_terminal([*shell, *self.argv("run", "--", *program)],
                                          talk=[(b"ready\r\n", b"\x1a")])
        self.assertIn("stopped True", output)
        self.assertIn("went on", output)
        self.assertIn("ended 5", output)
        self.assertEqual(status, 0)

    def test_a_program_that_keeps_ctrl_z_for_itself_goes_on(self):
        program = self.script("editor.py", "import os, signal, time\n"
                              # Not print(): it may be in print() when the signal comes.
                              "signal.signal(signal.SIGTSTP, lambda *_: os.write(1, b'kept\\n'))\n"
                              "print('ready', flush=True)\ntime.sleep(1.0)\n")
        status, output = self.in_terminal(self.argv("run", "--", *program),
                                          talk=[(b"ready\r\n", b"\x1a")])
        self.assertIn("kept", output)
        self.assertEqual(status, 0)

    def test_stop_and_continue_sent_to_contextune_reach_the_program(self):
        program = self.script("ticks.py", "import time\nprint('ready', flush=True)\n"
                              "for _ in range(100):\n    open('ticks', 'a').write('x')\n"
                              "    time.sleep(0.05)\n")
        # A group of its own, whose parent is in the session: where nobody could wake it, the kernel
        # lets nobody stop it.
        process = self.start(*program, process_group=0)
        ticks = self.work / "ticks"
        wait_until(lambda: ticks.exists())
        process.send_signal(signal.SIGTSTP)
        time.sleep(0.3)
        before = ticks.stat().st_size
        time.sleep(0.5)
        self.assertEqual(ticks.stat().st_size, before)
        process.send_signal(signal.SIGCONT)
        self.assertTrue(wait_until(lambda: ticks.stat().st_size > before))

    def stopped_alone(self, seconds=0.5):
        """A run whose program somebody has stopped, and which has stopped too."""
        program = self.script("naps.py", "import os, sys, time\n"
                              "open('pid', 'w').write(str(os.getpid()))\n"
                              "print('ready', flush=True)\ntime.sleep(float(sys.argv[1]))\nsys.exit(6)\n")
        process = self.start(*program, str(seconds), process_group=0)
        pid = int((self.work / "pid").read_text())
        os.kill(pid, signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(process.pid) == "T"))
        return process, pid

    def test_contextune_goes_on_with_a_program_that_somebody_else_continues(self):
        process, pid = self.stopped_alone()
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(process.wait(timeout=10), 6)

    def test_contextune_goes_on_with_a_stopped_program_that_somebody_kills(self):
        process, pid = self.stopped_alone()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(process.wait(timeout=10), -signal.SIGKILL)

    def test_a_program_that_is_stopped_again_is_followed_again(self):
        process, pid = self.stopped_alone(seconds=60)
        for _ in range(2):
            os.kill(pid, signal.SIGCONT)
            self.assertTrue(wait_until(lambda: state_of(process.pid) != "T"))
            os.kill(pid, signal.SIGSTOP)
            self.assertTrue(wait_until(lambda: state_of(process.pid) == "T"))
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(process.wait(timeout=10), -signal.SIGKILL)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


if __name__ == "__main__":
    unittest.main()
