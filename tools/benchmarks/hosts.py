"""What programs lose that have little to gain from chained and gathered launches: hosts (hosts.cu) bare
and under `contextune run --`, in turns, with what its earlier runs found out.

Prints for each how long its first five runs took, as a share of a bare run by the program's own clock and
in seconds beside it by the wall's; then the ratio of bare runs to runs under contextune, by both. Only on
a GPU; the kernels of `many` are compiled at the first time, which takes minutes."""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

EVERY = ("spin", "work", "random", "many", "brief", "glance")
NUM_KERNELS = 10_000
RUNS_TO_SETTLE = 5
PATIENCE = 60
PTX = """.visible .entry k{i}(.param .u64 data, .param .u32 n) {{
  .reg .b64 %a, %d; .reg .b32 %i, %b, %t, %v;
  mov.u32 %i, %ctaid.x; mov.u32 %b, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %b, %t;
  ld.param.u64 %d, [data]; cvta.to.global.u64 %d, %d; mul.wide.u32 %a, %i, 4; add.u64 %a, %a, %d;
  ld.global.u32 %v, [%a]; mad.lo.u32 %v, %v, 1664525, {i}; st.global.u32 [%a], %v; ret; }}
"""


def build_kernels(path, count):
    source = path.with_suffix(".ptx")
    source.write_text(".version 8.0\n.target sm_90\n.address_size 64\n" +
                      "".join(PTX.format(i=i) for i in range(count)))
    subprocess.run(["ptxas", "-arch=sm_90", "-O1", str(source), "-o", str(path)], check=True)
    source.unlink()


class Runs:
    def __init__(self, build, argv, folder):
        self.argv = [str(build / "gpu" / "hosts"), *argv]
        self.contextune = [str(build / "bin" / "contextune"), "run", "--log-dir", f"{folder}/logs", "--"]
        self.logs = pathlib.Path(folder) / "logs"
        self.wanted = None

    def run(self, bare):
        """Its own us and the wall's."""
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD"))}
        variables["XDG_CACHE_HOME"] = str(self.logs.parent)
        start = time.monotonic()
        done = subprocess.run(self.argv if bare else self.contextune + self.argv, env=variables, text=True,
                              timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wall = time.monotonic() - start
        self.wanted = self.wanted or done.stdout
        if done.returncode != 0 or done.stdout != self.wanted:
            sys.exit(f"{self.argv}: status {done.returncode}, bare {bare}\n{done.stdout}{done.stderr}")
        own = re.findall(r"^(\d+\.\d)$", done.stderr, re.MULTILINE)
        return float(own[0]), wall

    def state(self):
        lines = [line for file in self.logs.glob("rank-*.log") for line in file.read_text().splitlines()]
        found = [re.search(r'launches="[^"]*" state=\w+', line) for line in lines if " event=submission " in line]
        return found[-1][0] if found and found[-1] else "said nothing"


def told(ratios):
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def compare(build, what, argv, turns):
    with tempfile.TemporaryDirectory(prefix="contextune-hosts-") as folder:
        runs = Runs(build, argv, folder)
        runs.run(bare=True)
        bare = [runs.run(bare=True) for _ in range(3)]
        settling = [runs.run(bare=False) for _ in range(RUNS_TO_SETTLE)]
        own, wall = (statistics.median(one[i] for one in bare) for i in (0, 1))
        print(f"{what}: bare {own / 1e3:.1f} ms of its own, {wall:.3f} s in all; first runs take " +
              ", ".join(f"{one[0] / own:.2f} / {one[1] - wall:+.3f} s" for one in settling), flush=True)
        pairs = []
        for turn in range(turns):
            order = (True, False) if turn % 2 == 0 else (False, True)
            took = {bare: runs.run(bare) for bare in order}
            pairs.append([took[True][i] / took[False][i] for i in (0, 1)])
        print(f"  bare / settled: own {told([one[0] for one in pairs])}, in all "
              f"{told([one[1] for one in pairs])}; {runs.state()}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("what", nargs="*", default=EVERY, metavar="WHAT", help=f"of {', '.join(EVERY)}; all")
    parser.add_argument("--turns", type=int, default=8)
    asked = parser.parse_args()
    build = asked.build.resolve()
    for what in asked.what:
        argv = [what]
        if what == "many":
            kernels = build / "gpu" / "hosts_many.cubin"
            if not kernels.exists():
                build_kernels(kernels, NUM_KERNELS)
            argv.append(str(kernels))
        compare(build, what, argv, asked.turns)


main()
