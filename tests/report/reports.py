"""Pages to look at: of a run of the demo, of large jobs, and of logs that mean harm."""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"])
COMMAND = BUILD / "bin" / "contextune"
DEMO = BUILD / "demo" / "contextune_demo"
DEMO_SPACE = pathlib.Path(__file__).parents[2] / "tools" / "demo_program" / "demo.lua"
DEMO_LOGS = BUILD / "tests" / "report" / "demo_logs"
LARGE = BUILD / "tests" / "report" / "write_large_logs"
PATIENCE = 100


def environment():
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("CONTEXTUNE_", "CUDA_", "LD_PRELOAD", "NVTX_"))} | {
                "LD_LIBRARY_PATH": str(BUILD / "simcuda"), "CONTEXTUNE_STORE": "off"}


def execute(*argv, **options):
    result = subprocess.run(list(map(str, argv)), capture_output=True, text=True, errors="replace", env=environment(),
                            timeout=PATIENCE, **options)
    if result.returncode != 0:
        raise AssertionError(f"{argv}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def report_of(logs, page):
    page.unlink(missing_ok=True)
    execute(COMMAND, "report", logs, "-o", page)
    return page


class Reports:
    """Each page is made when it is asked for first."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-report-"))

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    @functools.cached_property
    def demo(self):
        """One rank of a real program on the simulated driver."""
        if not DEMO_LOGS.exists():
            make_demo_logs()
        return report_of(DEMO_LOGS, self.folder / "demo.html")

    def of_ranks(self, ranks, sites, configs):
        name = f"{ranks}x{sites}x{configs}"
        page = self.folder / f"{name}.html"
        if not page.exists():
            logs = self.folder / f"{name}_logs"
            execute(LARGE, logs, ranks, sites, configs)
            report_of(logs, page)
            shutil.rmtree(logs)  # half a gigabyte, of the largest one
        return page

    @property
    def many_ranks(self):
        return self.of_ranks(64, 8, 16)

    @property
    def largest(self):
        return self.of_ranks(64, 64, 200)

    def of_text(self, name, raw):
        """The page of one log with these bytes."""
        logs = self.folder / f"{name}_logs"
        logs.mkdir()
        (logs / "rank-0.log").write_bytes(raw)
        return report_of(logs, self.folder / f"{name}.html")


def make_demo_logs():
    """The logs of a run of the demo, for all files of tests."""
    shutil.rmtree(DEMO_LOGS, ignore_errors=True)
    DEMO_LOGS.parent.mkdir(parents=True, exist_ok=True)
    execute(*demo_run("--log-dir", DEMO_LOGS), cwd=DEMO_LOGS.parent)


def demo_run(*flags, steps=300):
    return (COMMAND, "run", "--region", "nvtx:decode", "--mode", "replay", "--space", DEMO_SPACE, "--report",
            "report.txt", *flags, "--", DEMO, "--rows", 64, "--steps", steps)


if __name__ == "__main__":
    make_demo_logs()
