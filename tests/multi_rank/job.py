"""Jobs of several ranks of a demo on the simulated driver, and what can go wrong with one of them.

A rank is a process of its own that a test starts with the variables of the shim, as a launcher would.
Nothing here waits without a limit, and whatever is left of a job is killed in the end."""

import contextlib
import copy
import dataclasses
import functools
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ.get(
    "CONTEXTUNE_TEST_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "release"))
HERE = pathlib.Path(__file__).resolve().parent
COMMAND = BUILD / "bin" / "contextune"
SHIM = BUILD / "lib" / "libcontextune_preload.so"
DEMO = [BUILD / "demo" / "contextune_demo", "--rows", 16]  # computed on the host: a sixteenth will do
TENSOR_PARALLEL = BUILD / "demo" / "tensor_parallel"
SPACE = HERE / "ranks.lua"

# Ranks of NCCL that wait for another one so long say so and end. Longer than any fault of a rank of
# which the bare program gets over lasts, so that whoever ends by it has been led apart.
NCCL_PATIENCE = 40.0

# Longer than any rank may take on a busy machine: presync_timeout, 15 s for a verdict whose coordinator
# is lost, and the program itself.
LIMIT = 90.0

QUICK = {
    "CONTEXTUNE_N_WARMUP": "0",
    "CONTEXTUNE_N_REPEAT": "2",
    "CONTEXTUNE_REFINE": "false",
    "CONTEXTUNE_CONFIRM": "false",
    "CONTEXTUNE_MAX_SLOWDOWN": "0",
}


def plain_environment():
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_", "SIMCUDA_"))
    }
    return kept | {"CONTEXTUNE_STORE": "off", "LD_LIBRARY_PATH": f"{BUILD / 'simnccl'}:{BUILD / 'simcuda'}"}


class Demo:
    """One process that knows nothing of others."""

    region = "nvtx:decode"
    variables = {"CONTEXTUNE_SPACE": str(SPACE)}

    def argv(self, steps, _folder):
        return [*DEMO, "--steps", steps]

    def own_variables(self, rank, _num_ranks):
        return {"SIMCUDA_SEED": str(rank + 1)}

    @functools.lru_cache(maxsize=None)
    def bare_outputs(self, steps, num_ranks):
        """What each rank prints without contextune."""
        one = subprocess.run(list(map(str, self.argv(steps, None))), env=plain_environment(), text=True,
                             capture_output=True, check=True, timeout=LIMIT).stdout
        return [one] * num_ranks

    def without_times(self, errors):
        return errors


class TensorParallel:
    """Ranks that wait for one another in NCCL: a peer that does otherwise lets them hang."""

    region = "nvtx:step"
    variables = {"CONTEXTUNE_AUTO": "true"}
    of_bare = {}  # the variables with which it runs as without contextune

    def __init__(self, tokens=16, straggler=None):
        self.tokens = tokens
        self.straggler = straggler

    def argv(self, steps, folder):
        late = ["--straggler", self.straggler] if self.straggler else []
        return [TENSOR_PARALLEL, "--steps", steps, "--tokens", self.tokens, "--meet", folder / "meet", *late]

    def own_variables(self, rank, num_ranks):
        return {"SIMNCCL_DEADLINE_S": str(NCCL_PATIENCE), "RANK": str(rank),
                "WORLD_SIZE": str(num_ranks), "LOCAL_RANK": str(rank)}

    @functools.lru_cache(maxsize=None)
    def bare_outputs(self, steps, num_ranks):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-ranks-"))
        in_time = copy.copy(self)
        in_time.straggler = None
        argv = list(map(str, in_time.argv(steps, folder)))
        try:
            ranks = [subprocess.Popen(
                argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=plain_environment() | self.own_variables(rank, num_ranks) | self.of_bare)
                for rank in range(num_ranks)]
            return [process.communicate(timeout=LIMIT)[0] for process in ranks]
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def without_times(self, errors):
        return re.sub(r"^rank \d+ of \d+: [0-9.]+ us a step\n", "", errors)


class Linked(TensorParallel):
    """A program that is linked with contextune, and marks by itself what is tuned."""

    region = ""
    variables = {}
    of_bare = {"CONTEXTUNE_DISABLE": "1"}


# What is run, and the mode of contextune where that has another name.
PROGRAMS = {"replay": Demo(), "live": Demo(), "collectives": TensorParallel(), "lockstep": TensorParallel()}
MODES = {"collectives": "live", "lockstep": "replay"}
# Where ranks wait for one another in NCCL.
IN_NCCL = ("collectives", "lockstep")


@dataclasses.dataclass
class Peculiar:
    """What one rank does that the others do not."""

    argv: list = None       # in place of the demo
    before: list = ()       # what is given its argv to run
    variables: dict = dataclasses.field(default_factory=dict)
    shim: bool = True
    waits: bool = False     # begins only when Job.let_go says so
    late: float = 0.0       # begins so many seconds after the others


class Job:
    """Ranks 0 to num_ranks - 1. `with` it: at its end nothing is left. One that is not declared knows
    of its ranks from the launcher and from NCCL only."""

    def __init__(self, num_ranks, mode, steps, variables=None, peculiar=None, program=None,
                 declared=True):
        self.num_ranks = num_ranks
        self.steps = steps
        self.program = program or PROGRAMS[mode]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-ranks-"))
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        self.address = "unix:contextune-test-" + secrets.token_hex(8)
        self.variables = {
            "NVTX_INJECTION64_PATH": str(SHIM),
            "CONTEXTUNE_MODE": MODES.get(mode, mode),
            "CONTEXTUNE_REGION": self.program.region,
            **self.program.variables,
            "CONTEXTUNE_LOG_DIR": str(self.logs),
            **(self.declaration() if declared else {"XDG_RUNTIME_DIR": str(self.folder)}),
            **QUICK,
            **(variables or {}),
        }
        self.declared = declared
        self.peculiar = peculiar or {}
        self.ranks = []
        self.gates = {}

    def declaration(self):
        return {"CONTEXTUNE_WORLD_SIZE": str(self.num_ranks), "CONTEXTUNE_ADDRESS": self.address,
                "CONTEXTUNE_SECRET": secrets.token_hex(16)}

    def __enter__(self):
        try:
            for rank in range(self.num_ranks):
                self.ranks.append(self.start(rank))
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        for process in self.ranks:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for gate in self.gates.values():
            os.close(gate)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, rank):
        own = self.peculiar.get(rank, Peculiar())
        argv = [*own.before, *(own.argv or self.program.argv(self.steps, self.folder))]
        environment = plain_environment() | self.program.own_variables(rank, self.num_ranks)
        if own.shim:
            # Only the program itself: what wraps it is no part of the job.
            named = {"CONTEXTUNE_RANK": str(rank)} if self.declared else {}
            environment |= {**self.variables, **named, **own.variables}
            argv = ["env", f"LD_PRELOAD={SHIM}", *argv]
        if own.waits:
            gate = self.folder / f"gate-{rank}"
            os.mkfifo(gate)
            self.gates[rank] = os.open(gate, os.O_RDWR)
            argv = ["sh", "-c", f'read line < {gate}; exec "$@"', "sh", *argv]
        if own.late:
            argv = ["sh", "-c", 'sleep "$0"; exec "$@"', own.late, *argv]
        with open(self.output(rank), "wb") as out, open(self.errors(rank), "wb") as err:
            return subprocess.Popen(list(map(str, argv)), env=environment, cwd=self.folder, stdout=out,
                                    stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)

    def let_go(self, rank):
        os.write(self.gates[rank], b"go\n")

    def output(self, rank):
        return self.folder / f"out-{rank}"

    def errors(self, rank):
        return self.folder / f"err-{rank}"

    def log(self, rank):
        file = self.logs / f"rank-{rank}.log"
        return file.read_text(errors="replace") if file.is_file() else ""  # not a full one

    def reaches(self, rank, moment, limit=LIMIT):
        """Whether the rank's log says so before the rank ends; `moment` is a pattern."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            ended = self.ranks[rank].poll() is not None
            if re.search(moment, self.log(rank)):
                return True
            if ended:
                return False
            time.sleep(0.002)
        return False

    def signal(self, rank, number):
        if self.ranks[rank].poll() is None:
            self.ranks[rank].send_signal(number)

    def unfinished(self, ranks, limit=LIMIT):
        """Those of the ranks that did not end in time."""
        end = time.monotonic() + limit
        late = []
        for rank in ranks:
            try:
                self.ranks[rank].wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(rank)
        return late

    def bare_output(self, rank):
        return self.program.bare_outputs(self.steps, self.num_ranks)[rank]

    def was_abandoned(self, rank):
        """Whether it waited for the others, in NCCL or before, until it had to give up."""
        status, errors = self.ranks[rank].poll(), self.errors(rank).read_text()
        in_nccl = status == 86 and errors.startswith("simnccl: waited")
        before = status == 1 and re.search(r"cannot be reached|came for the id|ncclCommInitRank failed", errors)
        return bool(in_nccl or before) and not self.output(rank).read_text()

    def faults_of(self, rank):
        """How the rank's end differs from that of the bare program; empty: not at all."""
        process = self.ranks[rank]
        out, err = self.output(rank).read_text(), self.errors(rank).read_text()
        wrong = []
        if process.poll() != 0:
            wrong.append(f"rank {rank} ended with status {process.returncode}")
        if out != self.bare_output(rank):
            wrong.append(f"rank {rank} printed {out!r}")
        if self.program.without_times(err):
            wrong.append(f"rank {rank} printed the errors {err!r}")
        return wrong


@contextlib.contextmanager
def full_file(path):
    """A file that takes no byte, as on a full disk: a pipe that nobody reads."""
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(4096))
    try:
        yield
    finally:
        os.close(pipe)


def lines(log, event):
    return [line for line in log.splitlines() if f" event={event} " in line]


def field(line, name):
    found = re.search(rf' {name}=("(?:[^"\\]|\\.)*"|\S+)', line)
    return found[1].strip('"') if found else None


def site_of(line):
    return field(line, "region"), field(line, "site"), field(line, "key")


def winners(log):
    """The winner lines without what is each rank's own."""
    own = r"^\S+(?= )| (?:run|pid|rank|time_us|default_us)=\S+"
    return [re.sub(own, "", line) for line in lines(log, "winner")]


def sentences(log, reason):
    """What the log says where it gives that reason."""
    return [field(line, "text") for line in lines(log, "fallback") if field(line, "reason") == reason]


def told(log):
    """What the log says about ranks that did not agree: (reason, sentence)."""
    reasons = ("no_agreement", "no_rendezvous", "ranks_differ", "late_results")
    return [(field(line, "reason"), field(line, "text"))
            for line in lines(log, "fallback") if field(line, "reason") in reasons]


def of_the_job(log):
    """Without the processes that took themselves for a rank that another one was already: they were
    refused, or came when that one had agreed and the others were gone."""
    away = {field(line, "pid") for line in lines(log, "fallback")
            if re.search("cannot listen at|another process has", line)}
    agreed = {field(line, "pid") for line in lines(log, "sync")
              if field(line, "verdict") == "committed"}
    if agreed:
        away |= {field(line, "pid") for line in lines(log, "sync")} - agreed
    return "\n".join(line for line in log.splitlines() if field(line, "pid") not in away)


def contradictions(logs):
    """Where ranks ran something else in the same pass, or were told something else."""
    seen, wrong = {}, []
    for rank, log in enumerate(map(of_the_job, logs)):
        # Ranks that do not ask one another may each do as they please.
        groups = {field(line, "region"): field(line, "group") for line in lines(log, "sync")}
        domain = lambda line: groups.get(field(line, "region"))
        facts = [(("pass", domain(line), field(line, "pass"), *site_of(line)), field(line, "config"))
                 for line in lines(log, "trial")]
        for line in lines(log, "sync"):
            question = (field(line, "group"), field(line, "question"))
            if field(line, "verdict") == "committed":
                facts.append((("hash", *question), field(line, "hash")))
            if field(line, "verdict") != "unknown":
                facts.append((("verdict", *question), field(line, "verdict")))
        # How a rank hands over its launches is its own affair.
        facts += [(("winner", domain(line), *site_of(line)), field(line, "config"))
                  for line in lines(log, "winner") if field(line, "region") != "auto"]
        for what, value in facts:
            first = seen.setdefault(what, (rank, value))
            if first[1] != value:
                wrong.append(f"{what}: {first[1]} on rank {first[0]}, {value} on rank {rank}")
    return wrong
