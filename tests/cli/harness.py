"""What the tests of the command share: an installed layout of its own, with a stand-in for the
preloaded library, and programs that are easy to watch."""

import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = pathlib.Path(os.environ["CONTEXTUNE_COMMAND"])
FAKE_PRELOAD = pathlib.Path(os.environ["CONTEXTUNE_FAKE_PRELOAD"])
PATIENCE = 20.0


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "bin").mkdir()
        (self.folder / "lib").mkdir()
        (self.folder / "work").mkdir()
        self.command = self.folder / "bin" / "contextune"
        shutil.copy2(COMMAND, self.command)
        self.preload = self.folder / "lib" / "libcontextune_preload.so"
        shutil.copy2(FAKE_PRELOAD, self.preload)
        self.work = self.folder / "work"
        keep = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_"))
        }
        self.environment = keep | {"CONTEXTUNE_STORE": "off"}

    def argv(self, *arguments):
        return [str(self.command), *map(str, arguments)]

    def contextune(self, *arguments, **options):
        options.setdefault("cwd", self.work)
        options.setdefault("env", self.environment)
        options.setdefault("capture_output", True)
        options.setdefault("timeout", PATIENCE)
        options.setdefault("text", True)
        return subprocess.run(self.argv(*arguments), **options)

    def run_program(self, *program, flags=(), **options):
        return self.contextune("run", *flags, "--", *program, **options)

    def start(self, *program, flags=(), **options):
        """A run whose output is a pipe, and whose program has said that it is ready."""
        options.setdefault("cwd", self.work)
        options.setdefault("env", self.environment)
        process = subprocess.Popen(
            self.argv("run", *flags, "--", *program), stdout=subprocess.PIPE, text=True, **options
        )
        self.addCleanup(finish, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return [sys.executable, str(path)]

    def in_terminal(self, argv, talk=None, environment=None):
        """Runs argv as the leader of a session with a terminal of its own.
        Returns its wait status and all that came out of the terminal."""
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.execve(argv[0], argv, environment or self.environment)
        output = b""
        end = time.monotonic() + PATIENCE
        talk = list(talk or [])  # (what to wait for, what to type)
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.1)
            if ready:
                try:
                    piece = os.read(master, 65536)
                except OSError:
                    break
                if not piece:
                    break
                output += piece
            if talk and talk[0][0] in output:
                os.write(master, talk.pop(0)[1])
        else:
            os.kill(pid, 9)
        _, status = os.waitpid(pid, 0)
        os.close(master)
        return status, output.decode(errors="replace")


def finish(process):
    if process.poll() is None:
        process.kill()
        process.wait()
    process.stdout.close()


def gone(pid):
    """Whether a process has ended, though nobody may have asked for its status."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until(condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


# A program that writes what a tuned program's core would: FIELDS are lines behind `level=`.
WRITES_LOG = '''
import datetime, os, sys
folder = os.environ["CONTEXTUNE_LOG_DIR"]
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "rank-0.log"), "a") as log:
    for line in sys.stdin:
        log.write("2026-11-20T20:33:53.120Z run=%s pid=%d rank=0 level=info %s\\n"
                  % (os.environ["CONTEXTUNE_RUN_ID"], os.getpid(), line.rstrip("\\n")))
        log.flush()
print("done")
'''

GOLDEN_TABLE = """\
| pass  | kernel-0          | kernel-1          |
|-------|-------------------|-------------------|
| 0     | config-0 (iter-0) | config-0 (iter-0) |
| 1     | config-0 (iter-1) | config-0 (iter-1) |
| 2     | config-1 (iter-0) | config-1 (iter-0) |
| 3     | config-1 (iter-1) | config-1 (iter-1) |
| 4     | **winner**        | config-2 (iter-0) |
| 5     | **winner**        | config-2 (iter-1) |
| final | **winner**        | **winner**        |
"""

# What a replay writes beside them.
REPLAY = (
    "event=replay region=decode visit=1 operations=5 replays=117 time_s=0.21 "
    "footprint_bytes=1073741824 dirty_bytes=50331648 device_bytes=50331648 host_bytes=0 "
    "save_us=120.5 restore_us=31 hash_us=400 simulated=yes\n"
)


def golden_log():
    """The lines of a tuning with n_warmup=0, n_repeat=2, two configs for kernel-0, three for
    kernel-1; kernel-0 ends with config 1, kernel-1 with config 0."""
    lines = [
        'event=start version=0.1.0 program=./engine gpu="Simulated GPU" compute_capability=9.0 '
        "num_sms=132 driver=13.0 simulated=yes mode=auto regions=nvtx:decode timer=cupti",
        "event=region region=decode thread=1",
    ]
    for site, configs in (("kernel-0", 2), ("kernel-1", 3)):
        lines.append(
            f'event=site region=decode site={site} key="" configs={configs} launches=1 grid=8 '
            "block=128 shared_bytes=0 registers=16 provider=declared"
        )
    for step in range(6):
        for site, configs in (("kernel-0", 2), ("kernel-1", 3)):
            if step // 2 < configs:
                lines.append(
                    f'event=trial region=decode pass={step} site={site} key="" config={step // 2} '
                    f"block={64 << (step // 2)} iter={step % 2} launches=1 "
                    f"time_us={5.0 - step // 2} timer=cupti"
                )
    for first, last, site, config in ((0, 1, "kernel-0", 0), (0, 1, "kernel-1", 0), (2, 3, "kernel-1", 1),
                                      (2, 5, "kernel-0", 1), (4, 5, "kernel-1", 2)):
        lines.append(
            f'event=passes region=decode pass={first} last_pass={last} site={site} key="" '
            f"config={config} block={64 << config}"
        )
    lines += [
        'event=winner region=decode site=kernel-0 key="" config=1 block=128 time_us=4 '
        "default_us=5 reason=fastest simulated=yes",
        'event=winner region=decode site=kernel-1 key="" config=0 block=64 time_us=5 '
        "default_us=5 reason=margin simulated=yes",
        "event=confirm region=decode verdict=kept before_us=124 after_us=110 gain=0.113 "
        "bound=0.101 pairs=8 tries=1 simulated=yes",
        'event=fallback reason=launch_failed region=decode site=kernel-1 text="Too many threads."',
        "event=summary region=decode passes=22 entries=30 tuning_s=0.5 stage=finished sites=2 "
        "tuned=1 simulated=yes",
        "event=summary launches_outside=17 simulated=yes",
    ]
    return "\n".join(lines) + "\n"
