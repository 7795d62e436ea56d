"""Faults of one rank, and what the others have to do about them."""

import contextlib
import dataclasses
import random
import signal
import socket
import threading
import time

import job
import tampering
from job import Job, Peculiar

STEPS = {"replay": 6, "live": 60, "collectives": 200, "lockstep": 30}

# When something happens to a rank: what its log has then.
MOMENTS = {
    "before it joins": None,
    "while it joins": " event=region ",
    "after the first agreement": " event=sync .*verdict=committed",
    "in the middle of the table": " event=trial ",
    "while the others wait for an agreement": " event=sync .*verdict=committed",
    "while winners are confirmed": " event=stage .*stage=confirm",
    "after the winners": " event=winner ",
}
CONFIRMING = {"CONTEXTUNE_CONFIRM": "true"}
# Where somebody is waited for in vain.
SHORT = {"CONTEXTUNE_PRESYNC_TIMEOUT": "1"}
# Where ranks do not agree it is then seen that nobody goes on.
TOGETHER = {"CONTEXTUNE_SCOPE": "global"}
# Where ranks hang in NCCL, with contextune and without.
ABANDONED = {"SIMNCCL_DEADLINE_S": "3"}


@dataclasses.dataclass
class Outcome:
    """What became of a job. `wrong` has sentences, none if all is well."""

    wrong: list
    told: dict      # survivor -> [(reason, sentence)]
    winners: dict   # survivor -> winner lines
    longest_wait: float  # seconds that a survivor was kept waiting at once
    seconds: float  # until the last survivor had ended
    logs: list
    too_late: bool = False  # the victim had its winners already


def longest_wait(log):
    waits = [float(job.field(line, "wait_us") or 0) for line in job.lines(log, "sync")]
    return max(waits, default=0.0) / 1e6


def loses_peers(mode, number):
    """Whether the bare program would hang, as NCCL does without one of its ranks."""
    return mode in job.IN_NCCL and number != signal.SIGSTOP


def judge(ranks, survivors, start, may_hang=False):
    """Waits for the survivors and says what is wrong with how they ended."""
    wrong = []
    for rank in ranks.unfinished(survivors):
        wrong.append(f"rank {rank} did not end")
    seconds = time.monotonic() - start
    for rank in survivors:
        if not (may_hang and ranks.was_abandoned(rank)):
            wrong += ranks.faults_of(rank)
    logs = [ranks.log(rank) for rank in range(ranks.num_ranks)]
    wrong += job.contradictions(logs)
    told = {rank: job.told(logs[rank]) for rank in survivors}
    winners = {rank: job.winners(logs[rank]) for rank in survivors}
    waited = max((longest_wait(logs[rank]) for rank in survivors), default=0.0)
    for rank in survivors:
        asked = job.lines(logs[rank], "sync")
        if may_hang or not asked:
            continue  # it was ended where it hung, and could say no more
        if job.field(asked[-1], "verdict") != "committed" and not told[rank]:
            wrong.append(f"rank {rank} does not say why it has no winners")
    return Outcome(wrong, told, winners, waited, seconds, logs)


def others(num_ranks, victim):
    return [rank for rank in range(num_ranks) if rank != victim]


def hit(mode, num_ranks, victim, moment, number, steps=None, variables=None, after=0.0, pause=None,
        program=None):
    """The victim gets the signal so many seconds after the moment. SIGSTOP lasts `pause` seconds, or
    until the others have ended."""
    holder = (victim + 1) % num_ranks
    if variables is None:
        variables = SHORT if number == signal.SIGSTOP else {}
        if moment == "while winners are confirmed":
            variables = variables | CONFIRMING
    may_hang = loses_peers(mode, number)
    if may_hang:
        variables = variables | ABANDONED
    start = time.monotonic()
    with Job(num_ranks, mode, steps or STEPS[mode], TOGETHER | (variables or {}), program=program) as ranks:
        if MOMENTS.get(moment) is not None:
            ranks.reaches(victim, MOMENTS[moment])
        waited_for = moment == "while the others wait for an agreement"
        if waited_for:
            ranks.signal(holder, signal.SIGSTOP)
            time.sleep(0.2)
        time.sleep(after)
        before = ranks.log(victim)
        ranks.signal(victim, number)
        if waited_for:
            ranks.signal(holder, signal.SIGCONT)
        if pause is not None:
            time.sleep(pause)
            ranks.signal(victim, signal.SIGCONT)
        outcome = judge(ranks, others(num_ranks, victim), start, may_hang)
        if number == signal.SIGSTOP:
            ranks.signal(victim, signal.SIGCONT)
            if ranks.unfinished([victim]):
                outcome.wrong.append(f"rank {victim} did not end when it was continued")
            outcome.wrong += ranks.faults_of(victim)
            outcome.logs[victim] = ranks.log(victim)
            outcome.wrong += job.contradictions(outcome.logs)
    outcome.too_late = " event=winner " in before
    return outcome


def peculiar(mode, num_ranks, victim, what, variables=None, ends_well=True, outputs=1, steps=None,
             program=None):
    """The victim is as described from the start."""
    steps = steps or STEPS[mode]
    may_hang = mode in job.IN_NCCL and not ends_well
    if may_hang:
        variables = (variables or {}) | ABANDONED
    start = time.monotonic()
    with Job(num_ranks, mode, steps, TOGETHER | (variables or {}), {victim: what}, program) as ranks:
        outcome = judge(ranks, others(num_ranks, victim), start, may_hang)
        if what.waits:
            ranks.let_go(victim)
        if ranks.unfinished([victim]):
            outcome.wrong.append(f"rank {victim} did not end")
        if ends_well and outputs == 1:
            outcome.wrong += ranks.faults_of(victim)
        elif ends_well and ranks.output(victim).read_text() != ranks.bare_output(victim) * outputs:
            outcome.wrong.append(f"rank {victim} printed {ranks.output(victim).read_text()!r}")
        outcome.logs[victim] = ranks.log(victim)
        outcome.wrong += job.contradictions(outcome.logs)
    return outcome


@contextlib.contextmanager
def stranger(address, seed=0):
    """Somebody who calls all the time, and says nothing that anybody understands."""
    draw = random.Random(seed)
    stop = threading.Event()
    calls = [0]

    def call():
        name = "\0" + address.removeprefix("unix:")
        kept = []
        while not stop.wait(0.002):
            try:
                with contextlib.ExitStack() as stack:
                    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    stack.callback(connection.close)
                    connection.settimeout(0.2)
                    connection.connect(name)
                    calls[0] += 1
                    connection.sendall(draw.randbytes(draw.choice((0, 1, 39, 40, 41, 5000))))
                    if draw.random() < 0.3 and len(kept) < 100:
                        kept.append(connection)  # and never hangs up
                        stack.pop_all()
            except OSError:
                pass
        for connection in kept:
            connection.close()

    thread = threading.Thread(target=call)
    thread.start()
    try:
        yield calls
    finally:
        stop.set()
        thread.join()


def called_by_a_stranger(mode, num_ranks, seed=0, steps=None, variables=None, program=None):
    start = time.monotonic()
    with Job(num_ranks, mode, steps or STEPS[mode], TOGETHER | (variables or {}), program=program) as ranks:
        with stranger(ranks.address, seed) as calls:
            outcome = judge(ranks, range(num_ranks), start)
        if calls[0] == 0:
            outcome.wrong.append("nobody was called")
    return outcome


def tampered(mode, num_ranks, victim, how, after, to_target=True, steps=None, variables=None,
             program=None):
    """After so many bytes somebody tampers with what the victim and rank 0 tell each other."""
    start = time.monotonic()
    ranks = Job(num_ranks, mode, steps or STEPS[mode], TOGETHER | (variables or {}), program=program)
    with tampering.Relay(ranks.address, how, after, to_target) as relay:
        ranks.peculiar[victim] = Peculiar(variables={"CONTEXTUNE_ADDRESS": relay.address})
        with ranks:
            return judge(ranks, range(num_ranks), start)


def with_a_child(steps):
    """A program that starts itself again: the child inherits which rank it is."""
    return Peculiar(argv=["sh", "-c", '"$@" & "$@"; wait', "sh", *job.DEMO, "--steps", steps])


def with_a_child_of_its_own(seconds):
    """The program itself, beside a child that inherits which rank it is and has other peers: none."""
    child = 'RANK=0 WORLD_SIZE=1 "$@" --meet ./child > child-out 2> child-err'
    return ["sh", "-c", f'{child} & sleep {seconds}; "$@"; status=$?; wait; exit $status', "sh"]


def on_a_full_disk(mode, num_ranks, victim, steps=None, variables=None, program=None):
    start = time.monotonic()
    ranks = Job(num_ranks, mode, steps or STEPS[mode], TOGETHER | (variables or {}), program=program)
    with job.full_file(ranks.logs / f"rank-{victim}.log"), ranks:
        outcome = judge(ranks, others(num_ranks, victim), start)
        if ranks.unfinished([victim]):
            outcome.wrong.append(f"rank {victim} did not end")
        outcome.wrong += ranks.faults_of(victim)
    return outcome
