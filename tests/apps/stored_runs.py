"""Runs of unmodified programs on the simulated driver under `contextune run`, with a store of their
own, and what their rank logs say."""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"])
COMMAND = BUILD / "bin" / "contextune"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
DEMO = BUILD / "demo" / "contextune_demo"
SPACE = DEMO.parent / "demo.lua"
TENSOR_PARALLEL = BUILD / "demo" / "tensor_parallel"
PATIENCE = 100
QUICK = ("--n-warmup", "0", "--n-repeat", "2", "--no-refine", "--confirm-max-pairs", "8")


def demo(steps, program=DEMO, rows=16):
    """The demo with a sixteenth of its rows, which it computes on the host."""
    return (program, "--rows", str(rows), "--steps", str(steps))


large_demo = functools.partial(demo, rows=64)  # whose shapes differ by more than noise
PROGRAM = demo(20)
# A program that ends waits for its store, but not for as long as a busy disk may take.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SITES = {"rotate", "remember", "attend", "project"}


def rules(sites, blocks):
    """A space file in which each of the sites has these blocks."""
    values = ", ".join(map(str, blocks))
    return "".join(f'kernel "{site}" {{\n  space = {{ block = {{ {values} }} }},\n'
                   "  apply = function(config, launch) launch.block.x = config.block end,\n}\n"
                   for site in sites)


def fault(kind, site, config):
    """The variable by which that config of a site of the demo goes wrong."""
    return {"SIMCUDA_FAULT": f"{kind}:{site}:block={config['block']},grid={132 * config['per_sm']}"}


def named(sites, name):
    return next(site for site in sites if site["name"] == name)


def log_text(folder):
    return "".join(path.read_text() for path in sorted(folder.glob("rank-*.log")))


def fields(line):
    return {name: quoted or plain for name, quoted, plain in
            re.findall(r'([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))', line)}


class Log:
    """The lines of one run's ranks."""

    def __init__(self, folder):
        self.ranks = [[fields(line) for line in path.read_text().splitlines()]
                      for path in sorted(folder.glob("rank-*.log"))]

    def of(self, event, **wanted):
        return [line for lines in self.ranks for line in lines if line.get("event") == event and
                all(line.get(name) == value for name, value in wanted.items())]

    def confirmations(self):
        """Of all winners together; beside them stand those of what one is worth."""
        return [line for line in self.of("confirm") if "left_out" not in line]

    def winners(self, rank=0):
        return {(line["site"], line["key"]): line["config"] for line in self.ranks[rank]
                if line.get("event") == "winner"}

    def committed(self):
        """The hashes of what was agreed on, of each rank."""
        return [[line["hash"] for line in lines if line.get("event") == "sync" and
                 line["verdict"] == "committed"] for lines in self.ranks]

    def tried(self, site):
        return {line["config"] for line in self.of("trial", site=site)}


class StoredRuns(unittest.TestCase):
    program = PROGRAM

    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="contextune-stored-", dir=MEMORY))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.runs = 0
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_", "NCCL_", "CUDA_"))
        } | {"LD_LIBRARY_PATH": f"{BUILD / 'simnccl'}:{BUILD / 'simcuda'}",
             "CONTEXTUNE_CACHE_DIR": str(self.work / "store"), "SIMNCCL_DEADLINE_S": "40"}

    def command(self, *flags, program=None, region="nvtx:decode", space=SPACE):
        self.runs += 1
        self.folder = self.work / f"logs-{self.runs}"
        return list(map(str, (COMMAND, "run", "--region", region, "--space", space, "--log-dir",
                              self.folder, "--report", self.work / "report", *QUICK, *flags, "--",
                              *(program or self.program))))

    def entry(self, region="decode", store="store"):
        """What is stored of a region, and where."""
        paths = list((self.work / store / region).glob("*.json"))
        self.assertEqual(len(paths), 1, log_text(self.folder))
        (path,) = paths
        return path, json.loads(path.read_text())

    def site(self, name, region="decode", store="store"):
        (site,) = (one for one in self.entry(region, store)[1]["sites"] if one["name"] == name)
        return site

    @contextlib.contextmanager
    def edited(self, region="decode", store="store"):
        """The sites that are stored of a region, as they are to be stored instead."""
        path, entry = self.entry(region, store)
        yield entry["sites"]
        path.write_text(json.dumps(entry))

    def known(self):
        """What the journal knows of configs that have taken a process down."""
        path = self.work / "store" / "journal" / "known"
        return path.read_text() if path.exists() else ""

    def preloaded(self, space, logs, region="nvtx:decode", **more):
        """The environment of a program that is tuned without `contextune run`."""
        return self.environment | {
            "LD_PRELOAD": str(SHIM), "NVTX_INJECTION64_PATH": str(SHIM), "CONTEXTUNE_REGION": region,
            "CONTEXTUNE_SPACE": str(space), "CONTEXTUNE_LOG_DIR": str(logs)} | more

    def start(self, *flags, variables=(), **how):
        process = subprocess.Popen(
            self.command(*flags, **how),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.work,
            env=self.environment | dict(variables), start_new_session=True)
        self.addCleanup(self.kill, process)
        return process

    @staticmethod
    def kill(process):
        """With all that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    @staticmethod
    def end(process):
        out, errors = process.communicate(timeout=PATIENCE)
        return process.returncode, out, errors

    def run_program(self, *flags, **how):
        """Log and output of a run that went well."""
        status, out, errors = self.end(self.start(*flags, **how))
        self.assertEqual(status, 0, errors)
        return Log(self.folder), out

    def run_until_survived(self, *flags, **how):
        """How many runs ended before one that went well, its log and what it printed."""
        for ends in range(5):
            status, out, _ = self.end(self.start(*flags, **how))
            if status == 0:
                return ends, Log(self.folder), out
        self.fail("every run has ended")

    def bare(self, program=None):
        return subprocess.run(list(map(str, program or self.program)), text=True, check=True,
                              capture_output=True, env=self.environment | {"CONTEXTUNE_DISABLE": "1"},
                              timeout=PATIENCE).stdout

    def assert_blames_only(self, log, site, config):
        named = log.of("fallback", reason="config_crashed")
        self.assertTrue(named)
        values = " ".join(f"{name}={value}" for name, value in config.items())
        for line in named:
            self.assertIn(f"({values}) of '{site}'", line["text"])

    def assert_starts_tuned(self, log, winners):
        self.assertEqual(log.of("trial"), [])
        self.assertEqual(log.winners(), winners)
        for line in log.of("winner", site="rotate"):
            self.assertEqual(line["reason"], "stored")
        (summary,) = log.of("summary", stage="finished")
        self.assertEqual(summary["passes"], "0")
