"""Jobs of ranks to one of which something happens, drawn from a seed: the others end as they do
without contextune, run the same passes or none, and have the same winners or say why not.

  random_faults.py [--count N] [--seed S] [--jobs J] [--mode MODE]

prints a line for each seed, and runs seeds S to S + N - 1; one that failed is run again with
`--seed S --count 1`."""

import argparse
import concurrent.futures
import os
import random
import re
import signal
import sys
import time

import faults
import job
import tampering
from faults import Peculiar

MODES = ("replay", "live", "collectives", "lockstep")
OTHER_SPACE = {"CONTEXTUNE_SPACE": str(job.HERE / "other.lua")}
KERNELS = ("rotate", "attend", "project_x2", "project_x4")


def signals(draw, mode, num_ranks, victim, steps, variables, program):
    number = draw.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM))
    moment = draw.choice((*faults.MOMENTS, "at any time"))
    after = draw.uniform(0, 1) if moment == "at any time" else draw.choice((0, 0, 0.01))
    # None: until the others have ended.
    pause = draw.choice((None, 0.1, 1.2, 6)) if number == signal.SIGSTOP else None
    if mode in job.IN_NCCL and number == signal.SIGSTOP:
        pause = draw.choice((0.1, 1.2, 6, 12))  # the others end when it does
    text = f"{number.name} {moment}" + (f" for {pause} s" if pause else "")
    return text, lambda: faults.hit(mode, num_ranks, victim, moment, number, steps, variables, after,
                                    pause, program)


def peculiarities(draw, mode, num_ranks, victim, steps, variables, program):
    if mode in job.IN_NCCL:
        return peculiarities_in_nccl(draw, mode, num_ranks, victim, steps, variables, program)
    kernel = draw.choice(KERNELS)
    after = draw.randrange(4)
    name, what, ends_well, outputs = draw.choice((
        ("late", Peculiar(waits=True), True, 1),
        ("without the shim", Peculiar(shim=False), True, 1),
        ("another space", Peculiar(variables=OTHER_SPACE), True, 1),
        ("other options", Peculiar(variables={"CONTEXTUNE_N_REPEAT": "3"}), True, 1),
        ("another secret", Peculiar(variables={"CONTEXTUNE_SECRET": "x" * 32}), True, 1),
        ("another mode", Peculiar(
            variables={"CONTEXTUNE_MODE": "live" if mode == "replay" else "replay"}), True, 1),
        ("10 s late", Peculiar(late=10), True, 1),
        ("no log", Peculiar(variables={"CONTEXTUNE_LOG_DIR": "/proc/nowhere"}), True, 1),
        ("fails to launch", Peculiar(
            variables={"SIMCUDA_FAULT": f"launch_fail:{kernel}:block=256,after={after},times=1"}
            if mode == "replay" else {}), True, 1),
        ("ends at once", Peculiar(argv=["sh", "-c", "exit 0"]), False, 1),
        ("ends early", Peculiar(argv=[*job.DEMO, "--steps", draw.randint(1, 20)]), False, 1),
        ("starts a child", faults.with_a_child(steps), True, 2),
    ))
    return name, lambda: faults.peculiar(mode, num_ranks, victim, what, variables, ends_well, outputs,
                                         steps)


def peculiarities_in_nccl(draw, mode, num_ranks, victim, steps, variables, program):
    def of_variables(**values):
        return Peculiar(variables={name: str(value) for name, value in values.items()})

    late, first = draw.choice((0.3, 2, 10)), draw.choice((0, 0.3))
    early = program.argv(draw.randint(1, 200), job.pathlib.Path("."))  # of its folder
    name, what, ends_well = draw.choice((
        (f"{late} s late", Peculiar(late=late), True),
        ("without the shim", Peculiar(shim=False), True),
        ("another space", of_variables(CONTEXTUNE_SPACE=job.HERE / "other_collectives.lua"), True),
        ("other options", of_variables(CONTEXTUNE_N_REPEAT=3), True),
        ("no knobs of its own", of_variables(CONTEXTUNE_AUTO="false"), True),
        ("other buckets", of_variables(CONTEXTUNE_BUCKETS="exact"), True),
        ("rounding allowed", of_variables(CONTEXTUNE_ALLOW_ROUNDING="true"), True),
        ("one of them forced", of_variables(CONTEXTUNE_FORCE="all_reduce=3"), True),
        ("tuned apart", of_variables(CONTEXTUNE_DISTRIBUTED="off"), True),
        ("in another mode", of_variables(CONTEXTUNE_MODE="replay" if mode == "collectives" else "live"), True),
        ("no room for copies", of_variables(CONTEXTUNE_REPLAY_MEMORY=1), True),
        ("disabled", of_variables(CONTEXTUNE_DISABLE="true"), True),
        ("another region", of_variables(CONTEXTUNE_REGION="nvtx:other"), True),
        ("NCCL told how", of_variables(NCCL_ALGO="RING,TREE"), True),
        ("a plugin of its own", of_variables(NCCL_TUNER_PLUGIN="none"), True),
        ("fewer algorithms", of_variables(SIMNCCL_FAULTS=f"illegal:NVLS:rank={victim}"), True),
        ("another secret", of_variables(CONTEXTUNE_SECRET="x" * 32), True),
        ("kernels of its own", of_variables(CONTEXTUNE_SCOPE="local"), True),
        ("no log", of_variables(CONTEXTUNE_LOG_DIR="/proc/nowhere"), True),
        ("ends at once", Peculiar(argv=["sh", "-c", "exit 0"]), False),
        ("ends early", Peculiar(argv=early), False),
        ("starts a child", Peculiar(before=faults.with_a_child_of_its_own(first)), True),
    ))
    return name, lambda: faults.peculiar(mode, num_ranks, victim, what, variables, ends_well, 1,
                                         steps, program)


def tamperings(draw, mode, num_ranks, victim, steps, variables, program):
    victim = victim or 1  # rank 0 is whom the others talk to
    how = draw.choice(tampering.HOWS)
    after = draw.choice((draw.randrange(200), draw.randrange(5000), draw.randrange(60000)))
    to_target = draw.choice((True, False))
    way = "to" if to_target else "from"
    return (f"{after} bytes {way} rank 0 of {victim}, then {how}",
            lambda: faults.tampered(mode, num_ranks, victim, how, after, to_target, steps, variables,
                                    program))


def full_disks(draw, mode, num_ranks, victim, steps, variables, program):
    return "a full disk", lambda: faults.on_a_full_disk(mode, num_ranks, victim, steps, variables, program)


def strangers(draw, mode, num_ranks, victim, steps, variables, program):
    seed = draw.randrange(1 << 30)
    return "a stranger", lambda: faults.called_by_a_stranger(mode, num_ranks, seed, steps, variables,
                                                             program)


def drawn(seed, modes=MODES):
    """What happens, as text, and a function that does it."""
    draw = random.Random(seed)
    mode = draw.choice(modes)
    # Those of NCCL share 1024 columns out.
    num_ranks = draw.choice((2, 2, 4) if mode in job.IN_NCCL else (2, 2, 3, 4))
    victim = draw.choice((0, draw.randrange(num_ranks)))
    steps = draw.randint(4, 16) if mode == "replay" else draw.choice((30, 100, 300))
    program = None
    if mode in job.IN_NCCL:
        steps = draw.choice((30, 300, 600, 1200) if mode == "collectives" else (10, 30, 300))
        late = draw.choice((None, None, f"{draw.randrange(num_ranks)}:{draw.choice((1, 5))}"))
        program = job.TensorParallel(draw.choice((16, 64)), late)
    variables = {
        "CONTEXTUNE_PRESYNC_TIMEOUT": draw.choice(("0.05", "0.5", "2")),
        "CONTEXTUNE_CONFIRM": draw.choice(("true", "false")),
        "CONTEXTUNE_REFINE": draw.choice(("true", "false")),
        "CONTEXTUNE_REFINE_ROUNDS": "1",  # noise would have it go on for hundreds of passes
        "SIMCUDA_NOISE": draw.choice(("0.01", "0.2")),
    }
    if mode in job.IN_NCCL:
        variables["CONTEXTUNE_N_REPEAT"] = draw.choice(("1", "5"))
        variables["CONTEXTUNE_MAX_SLOWDOWN"] = draw.choice(("0", "0", "0.1"))
        variables["SIMNCCL_NOISE"] = variables["SIMCUDA_NOISE"]
    kind = draw.choice((signals, signals, signals, peculiarities, peculiarities, peculiarities,
                        tamperings, tamperings, strangers, full_disks))
    text, act = kind(draw, mode, num_ranks, victim, steps, variables, program)
    straggler = f", straggler {program.straggler}" if program and program.straggler else ""
    return f"{mode}, {num_ranks} ranks, {steps} steps{straggler}, rank {victim}: {text}", act


def run(seed, modes=MODES):
    text, act = drawn(seed, modes)
    outcome = act()
    survivors = outcome.told
    for rank, told in survivors.items():
        if not text.startswith(job.IN_NCCL) and not outcome.winners[rank] and told and not any(
                re.search(r"rank \d|all had spoken|cannot be read", sentence) for _, sentence in told):
            outcome.wrong.append(f"rank {rank} names nobody: {told}")
    tuned = sum(bool(winners) for winners in outcome.winners.values())
    outcome.kind = ("tuned" if tuned == len(survivors) else "in part" if tuned else
                    "said why" if all(survivors.values()) else "ended before")
    return text, outcome


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1)
    parser.add_argument("--mode", choices=MODES)
    chosen = parser.parse_args()
    modes = (chosen.mode,) if chosen.mode else MODES
    start = time.monotonic()
    failed, kinds, longest, slowest = [], {}, (0.0, 0), (0.0, 0)
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        seeds = range(chosen.seed, chosen.seed + chosen.count)
        for seed, future in [(seed, pool.submit(run, seed, modes)) for seed in seeds]:
            text, outcome = future.result()
            print(f"seed {seed}: {text}: {outcome.kind}, {outcome.seconds:.1f} s, waited at most "
                  f"{outcome.longest_wait:.2f} s", flush=True)
            kinds[outcome.kind] = kinds.get(outcome.kind, 0) + 1
            longest = max(longest, (outcome.longest_wait, seed))
            slowest = max(slowest, (outcome.seconds, seed))
            if outcome.wrong:
                failed.append(seed)
                print("\n".join(f"  WRONG: {sentence}" for sentence in outcome.wrong), flush=True)
                for rank, log in enumerate(outcome.logs):
                    tail = "\n".join(line for line in log.splitlines() if "event=trial" not in line)
                    print(f"  log of rank {rank}:\n{tail}", flush=True)
    print(f"{chosen.count} jobs in {time.monotonic() - start:.0f} s: {kinds}; the longest wait was "
          f"{longest[0]:.2f} s (seed {longest[1]}), the longest job {slowest[0]:.1f} s (seed "
          f"{slowest[1]}); {len(failed)} failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
