"""The transcripts of README.md and of the pages behind it are what the commands that it shows print, on the simulated driver: between
<!-- transcript NAME --> and <!-- /transcript --> stands what this test gets, but for the figures and for
which config wins. With --write it is put there."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"])
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted(page for folder in ("include", "src") for page in (ROOT / folder).rglob("*.md"))]
DEMO = BUILD / "demo"
PATIENCE = 100
AUTO = "contextune run -- ./contextune_demo --rows 8 --steps 5000"
COMMAND = "contextune run --region nvtx:decode --space demo.lua -- ./contextune_demo --rows 64 --steps 100"


def shape(text):
    """What stays the same from run to run: no figures, no names of processes, no winners."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"run( |=)[0-9a-f]+", "run #", re.sub(r"^    +([a-z]+ )? *config-\d.*", "config", line))
        line = re.sub(r"(\(simulated\): ).*kept$", r"\1verdict", re.sub(r" \(\d+ times\)", "", line))
        line = re.sub(r"( +launches: )[a-z, \d]+:", r"\1a way:", line)
        line = re.sub(r"^ +\d+ (graphs?|launch|launches) .*(handed over|in the stream)$", "", line)
        line = line.replace("less than 1 %", "1 %")
        line = re.sub(r" verdict=\w+", " verdict=#", line)
        line = re.sub(r"^ +\d+ slower.*", "others", line)
        line = re.sub(r"(time_us=\S+ default_us=\S+ reason=)\w+.*", r"\1", line)
        line = re.sub(r"config=\d+( [a-z_]+=\w+)+? (warmup|iter|time_us)=", r"config=# \2=", line)
        line = re.sub(r'pair_gains="[^"]*"', "pair_gains=#", line)
        line = re.sub(r"\d[0-9a-fx.]*(,\d{3})*", "#", line)
        line = re.sub(r"# ([mu]s|s|KiB|MiB)\b", "# unit", line)
        line = re.sub(r" +", " ", line).strip()
        if line and (line != "config" or lines[-1:] != ["config"]):
            lines.append(line)
    return lines


class Transcripts:
    """What a person sees who types the README's commands in a fresh folder."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("contextune_demo", "demo.lua", "demo_kernels.fatbin", "demo_kernels.fatbin.sim",
                     "libdemo_kernels_sim.so"):
            (folder / name).symlink_to(DEMO / name)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("CONTEXTUNE_", "LD_PRELOAD", "NVTX_", "NCCL_", "CUDA_"))}
        self.environment = kept | {
            "LD_LIBRARY_PATH": str(BUILD / "simcuda"), "PATH": f"{BUILD / 'bin'}:{kept['PATH']}",
            "CONTEXTUNE_CACHE_DIR": str(folder / "store")}

    def run(self, command):
        done = subprocess.run(command, shell=True, cwd=self.folder, env=self.environment, text=True,
                              capture_output=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stderr}")
        return done

    def auto(self):
        """What the first run finds, which on a busy machine another one may have to."""
        for _ in range(20):
            shutil.rmtree(self.folder / ".autotune_logs", ignore_errors=True)
            shutil.rmtree(self.folder / "store", ignore_errors=True)
            done = self.run(AUTO)
            if "less time than as written" in done.stderr:
                break
        return f"$ {AUTO} > /dev/null\n{self.plain(done.stderr)}"

    def all(self):
        auto = self.auto()
        shutil.rmtree(self.folder / ".autotune_logs")
        bare = self.run("./contextune_demo --rows 64 --steps 100")
        tuned = self.run(COMMAND)
        if tuned.stdout != bare.stdout:
            raise AssertionError("the program printed something else under contextune")
        log = (self.folder / ".autotune_logs" / "rank-0.log").read_text().splitlines()
        shutil.rmtree(self.folder / ".autotune_logs")
        again = self.run(COMMAND)
        live = self.run(COMMAND.replace("--region", "--store off --replay-memory 64K --region"))
        (why_live,) = re.findall("^    live over .*, because .*", live.stderr, re.MULTILINE)
        first = lambda *parts: next(line for line in log if all(part in line for part in parts))
        return {
            "auto": auto,
            "first": f"$ {COMMAND}\n{tuned.stdout}{self.plain(tuned.stderr)}",
            "again": "\n".join(self.plain(again.stderr).splitlines()[:9] + ["..."]),
            "live": why_live,
            "log": "\n".join([
                first("event=trial", "site=rotate", "iter=1"), first("event=confirm", "tries="),
                first("event=winner", "site=rotate"), first("event=replay")]),
        }

    def plain(self, text):
        return text.replace(str(self.folder), ".").replace(str(DEMO), ".").rstrip()


def block_of(name):
    """The page with that transcript, its text, and where in it the transcript begins and ends."""
    begin, end = f"<!-- transcript {name} -->\n```\n", "\n```\n<!-- /transcript -->"
    found = [(page, text) for page in PAGES for text in [page.read_text()] if begin in text]
    if len(found) != 1 or found[0][1].count(begin) != 1:
        raise AssertionError(f"there must be one {begin} in all pages")
    (page, text), = found
    start = text.index(begin) + len(begin)
    return page, text, start, text.index(end, start)


class ReadmeTranscripts(unittest.TestCase):
    maxDiff = None

    def test_every_transcript_is_what_the_command_prints(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="contextune-readme-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for name, printed in Transcripts(folder).all().items():
            page, text, start, end = block_of(name)
            if "--write" in sys.argv:
                page.write_text(text[:start] + printed + text[end:])
            with self.subTest(name):
                _, text, start, end = block_of(name)
                self.assertEqual(shape(text[start:end]), shape(printed), "run this test with --write")

    def test_no_transcript_is_made_by_hand(self):
        for page in PAGES:
            text = re.sub(r"<!-- transcript .*?<!-- /transcript -->", "", page.read_text(), flags=re.DOTALL)
            for block in re.findall(r"^```(.*?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
                self.assertIn(block[0], ("sh", "cpp", "lua", "cmake", "python", "text"), f"{page}: {block[1]}")


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--write"], verbosity=2)
