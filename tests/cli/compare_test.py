"""`contextune compare` says what is the same, faster or slower, and no more than is known."""

import json
import math
import os
import random
import subprocess
import unittest

from harness import CommandTest

WRITE_STORE = os.environ["CONTEXTUNE_WRITE_STORE"]
WRITE_RANK_LOGS = os.environ["CONTEXTUNE_WRITE_RANK_LOGS"]
SITES = 400  # of which one in 20 may be wrong


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def start(gpu="NVIDIA H100", simulated="no", **more):
    more = "".join(f" {name}={quoted(str(value))}" for name, value in more.items())
    return (f'event=start version=0.1.0 program=./engine gpu="{gpu}" compute_capability=9.0 num_sms=132 '
            f"driver=13.0 simulated={simulated} mode=auto regions=nvtx:decode timer=cupti{more}")


def site_lines(site, times, winner=0, key="n=1", region="decode", parameters=None, extra="", reason="fastest"):
    """Lines of a site whose configs have these times in microseconds, one list each."""
    parameters = parameters or {config: f"block={64 << config}" for config in range(8)}
    head = f"region={quoted(region)} site={quoted(site)} key={quoted(key)}"
    lines = [f"event=site {head} configs={len(times)} grid=1 block=64 provider=declared"]
    number = 0
    for config, samples in enumerate(times):
        for iteration, sample in enumerate(samples):
            lines.append(f"event=trial {head} pass={number} config={config} {parameters[config]} "
                         f"iter={iteration} launches=1 time_us={sample:.7g} timer=cupti{extra}")
            number += 1
    if winner is not None:
        of = lambda config: sorted(times[config])[len(times[config]) // 2] if times[config] else 1
        lines.append(f"event=winner {head} config={winner} {parameters[winner]} time_us={of(winner):.7g} "
                     f"default_us={of(0):.7g} reason={reason}{extra.replace(' agreed=yes', '')}")
    return lines


def confirm(gain, bound, verdict="kept", pairs=16, region="decode", more=""):
    return (f"event=confirm region={region} verdict={verdict} before_us=100 after_us={100 * (1 - gain):.7g} "
            f"gain={gain} bound={bound} pairs={pairs} tries=1{more}")


class Compare(CommandTest):
    def write(self, folder, lines, run="7f3a", rank=0, pid=4242, time="2026-11-20T20:33:53.120Z"):
        (self.work / folder).mkdir(exist_ok=True)
        with open(self.work / folder / f"rank-{rank}.log", "a", encoding="utf-8", errors="surrogateescape") as log:
            for line in lines:
                log.write(f"{time} run={run} pid={pid} rank={rank} level=info {line}\n")

    def compare(self, *arguments, status=0):
        result = self.contextune("compare", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout

    def json_of(self, *arguments):
        return json.loads(self.compare("--json", *arguments))

    def words(self, *arguments, what="settled"):
        contents = self.json_of(*arguments)
        return [site[what]["word"] for region in contents["regions"] for site in region["sites"]]

    def counts(self, *arguments, what="settled"):
        return self.json_of(*arguments)["counts"][what]


class Rates(Compare):
    """Words come at the rates that 95 % intervals promise."""

    def draw(self, folder, scale, noise, seed, samples=5):
        generator = random.Random(seed)
        lines = [start()]
        for i in range(SITES):
            times = [[level * noise(generator) for _ in range(samples)] for level in (10, 8 * scale)]
            lines += site_lines(f"site{i}", times, winner=1)
        self.write(folder, lines)

    def counts_of(self, scale, noise, *flags, samples=5, noise_of_b=None):
        for folder, factor, seed in (("a", 1, 1), ("b", scale, 2)):
            path = self.work / folder / "rank-0.log"
            if path.exists():
                path.unlink()
            self.draw(folder, factor, noise_of_b or noise if folder == "b" else noise, seed, samples)
        return self.counts("a", "b", *flags)

    @staticmethod
    def normal(deviation):
        return lambda generator: math.exp(generator.gauss(0, deviation))

    def with_outliers(self, deviation):
        normal = self.normal(deviation)
        return lambda generator: normal(generator) * (4 if generator.random() < 0.05 else 1)

    def test_the_same_program_twice_is_not_said_to_differ(self):
        skewed = lambda generator: 1 + 0.02 * generator.expovariate(1)
        for noise in (self.normal(0.01), self.normal(0.2), self.with_outliers(0.01), skewed):
            for samples in (3, 5, 12):
                counts = self.counts_of(1, noise, samples=samples)
                self.assertLessEqual(counts["faster"] + counts["slower"], SITES * 0.05, counts)
                # Without a margin, the interval is all that there is.
                counts = self.counts_of(1, noise, "--margin", "0", samples=samples)
                self.assertLessEqual(counts["faster"] + counts["slower"], SITES * 0.075, counts)
                self.assertEqual(counts["same"], 0)

    def test_unequal_noise_is_not_taken_for_a_difference(self):
        counts = self.counts_of(1, self.normal(0.01), "--margin", "0", noise_of_b=self.normal(0.1))
        self.assertLessEqual(counts["faster"] + counts["slower"], SITES * 0.075, counts)

    def test_quiet_times_are_the_same(self):
        counts = self.counts_of(1, self.normal(0.002))
        self.assertGreater(counts["same"], SITES * 0.98, counts)

    def test_a_difference_is_found_in_its_direction(self):
        for noise in (self.normal(0.01), self.with_outliers(0.01)):
            counts = self.counts_of(1.1, noise)
            self.assertGreater(counts["slower"], SITES * 0.85, counts)
            self.assertEqual(counts["faster"], 0)
            counts = self.counts_of(1 / 1.1, noise)
            self.assertGreater(counts["faster"], SITES * 0.85, counts)
            self.assertEqual(counts["slower"], 0)

    def test_a_change_within_the_margin_is_none(self):
        quiet = self.normal(0.002)
        self.assertGreater(self.counts_of(1.04, quiet)["slower"], SITES * 0.98)
        self.assertGreater(self.counts_of(1.04, quiet, "--margin", "8%")["same"], SITES * 0.98)
        self.assertGreater(self.counts_of(1.04, quiet, "--margin=0.08")["same"], SITES * 0.98)

    def test_the_reverse_comparison_has_the_reverse_words(self):
        self.counts_of(1.03, self.normal(0.01))
        reverse = {"SAME": "SAME", "UNCLEAR": "UNCLEAR", "FASTER": "SLOWER", "SLOWER": "FASTER"}
        words = self.words("a", "b")
        self.assertEqual([reverse[word] for word in words], self.words("b", "a"))
        self.assertGreater(words.count("SLOWER"), SITES / 10)
        self.assertEqual(words.count("FASTER"), 0)

    def test_gains_are_compared_at_the_rate_of_their_bounds(self):
        generator = random.Random(5)

        def gain_lines():
            lines = [start()]
            for i in range(SITES):
                gains = [0.1 + generator.gauss(0, 0.02) for _ in range(9)]  # of 10, nothing is trimmed
                middle = sum(gains) / 9
                error = math.sqrt(sum((gain - middle) ** 2 for gain in gains) / 8 / 9)
                lines.append(confirm(middle, middle - 1.8595 * error, pairs=9, region=f"r{i}"))
            return lines

        self.write("a", gain_lines())
        self.write("b", gain_lines())
        counts = self.counts("a", "b", "--margin", "0", what="gains")
        self.assertLessEqual(counts["faster"] + counts["slower"], SITES * 0.075, counts)
        self.assertGreater(counts["faster"] + counts["slower"], SITES * 0.02, counts)
        counts = self.counts("a", "b", what="gains")
        self.assertLessEqual(counts["faster"] + counts["slower"], SITES * 0.02, counts)


class Logs(Compare):
    quiet = [[10, 10.01, 10.02, 10.01, 10], [8, 8.01, 8.02, 8.01, 8]]
    slower = [[10, 10.01, 10.02, 10.01, 10], [9, 9.01, 9.02, 9.01, 9]]

    def pair(self, a=(), b=(), gpu=None):
        self.write("a", [start(), *a])
        self.write("b", [start(gpu) if gpu else start(), *b])

    def test_each_site_has_a_word_and_the_last_line_counts_them(self):
        self.pair([*site_lines("one", self.quiet, 1), *site_lines("two", self.quiet, 1)],
                  [*site_lines("one", self.quiet, 1), *site_lines("two", self.slower, 1)])
        text = self.compare("a", "b")
        self.assertRegex(text, r"one +8\.01 us +8\.01 us +-0\.\d % to \+0\.\d % +SAME +10\.0 us +10\.0 us .* SAME\n")
        self.assertRegex(text, r"two +8\.01 us +9\.01 us +\+12\.\d % to \+12\.\d % +SLOWER .* SAME\n")
        self.assertEqual(text.splitlines()[-1], "settled times: 1 SAME, 1 SLOWER; default times: 2 SAME "
                                                "(B beside A, margin 2 %)")
        self.assertEqual(self.words("a", "b"), ["SAME", "SLOWER"])
        self.assertEqual(self.words("a", "b", what="default"), ["SAME", "SAME"])

    def test_the_status_tells_of_what_is_slower_only_if_it_is_asked_to(self):
        self.pair(site_lines("one", self.quiet, 1), site_lines("one", self.slower, 1))
        self.compare("a", "b")
        self.compare("a", "b", "--fail-on", "slower", status=1)
        self.compare("b", "a", "--fail-on", "slower")
        self.compare("a", "b", "--fail-on", "slower", "--margin", "20%")
        self.assertEqual(json.loads(self.compare("a", "b", "--fail-on", "slower", "--json", status=1))["margin"], 0.02)

    def test_a_lost_gain_fails_as_well(self):
        self.pair([confirm(0.1, 0.09)], [confirm(0.01, -0.1, "defaults")])
        text = self.compare("a", "b", "--fail-on", "slower", status=1)
        self.assertIn("SLOWER gain: A kept, 10.0 % less time (at least 9.0 %, 16 pairs); "
                      "B defaults, nothing is gained; time left +", text)

    def test_gains_are_compared_by_the_time_that_is_left(self):
        self.pair([confirm(0.1, 0.095)], [confirm(0.102, 0.097)])
        self.assertEqual(self.counts("a", "b", what="gains")["same"], 1)
        self.pair(b=[confirm(0.3, 0.295)])
        self.assertEqual(self.counts("a", "b", what="gains")["faster"], 1)
        self.pair(b=["event=confirm region=decode verdict=kept gain=nan bound=1 pairs=4"])
        self.assertIn("the gain has no bound", self.compare("a", "b"))

    def test_regions_that_keep_all_defaults_gain_nothing(self):
        skipped = "event=confirm region=decode verdict=skipped pairs=0 tries=0"
        self.pair([*site_lines("one", self.quiet, 0), skipped], [*site_lines("one", self.quiet, 0), skipped])
        self.assertEqual(self.counts("a", "b", what="gains")["same"], 1)
        self.pair(b=[*site_lines("two", self.quiet, 1), skipped])
        self.assertIn("not compared with the defaults", self.compare("a", "b"))

    def test_found_regions_are_compared_by_how_launches_go_out(self):
        found = lambda launches, state: [
            'event=region region=auto text="every 4 launches"',
            'event=site region=auto site=launches key="" configs=2',
            f'event=submission region=auto launches="{launches}" state={state} run=1 most_runs=4']
        self.pair([*found("gathered=16", "settled"), confirm(0.2, 0.19, region="auto")],
                  [*found("chained gathered=16", "settled"), confirm(0.4, 0.39, region="auto")])
        text = self.compare("a", "b")
        self.assertIn("FASTER gain: A gathered=16, settled, 20.0 % less time", text)
        self.assertIn("launches differ: gathered=16 -> chained gathered=16", text)
        self.write("c", [start(), *found("chained", "open")])
        self.write("d", [start(), *found("as written", "settled")])
        self.assertIn("chained, open, no way of launching was compared", self.compare("c", "d"))
        self.assertEqual(self.counts("a", "d", what="gains")["slower"], 1)

    def test_winners_that_differ_are_told_by_what_differs(self):
        first = {0: "", 1: "variant=x block=128 per_sm=2"}
        second = {0: "", 1: "variant=x block=256 stages=3"}
        self.pair(site_lines("one", self.quiet, 1, parameters=first),
                  site_lines("one", self.quiet, 1, parameters=second))
        self.assertIn("winners differ: block 128 -> 256, per_sm 2 -> -, stages - -> 3\n", self.compare("a", "b"))
        (site,) = self.json_of("a", "b")["regions"][0]["sites"]
        self.assertEqual(site["differing"][0], {"name": "block", "a": "128", "b": "256"})
        self.write("c", [start(), *site_lines("one", self.quiet, 0, parameters=first)])
        self.assertIn("winners differ: variant=x block=128 per_sm=2 -> as launched\n", self.compare("a", "c"))
        self.assertNotIn("differ", self.compare("a", "a"))

    def test_one_interrupted_pass_decides_nothing(self):
        shaken = [self.quiet[0], [8, 8.01, 900, 8.01, 8]]
        self.pair(site_lines("one", self.quiet, 1), site_lines("one", shaken, 1))
        self.assertEqual(self.words("a", "b"), ["SAME"])

    def test_the_step_of_a_clock_is_no_difference(self):
        """Five times the same figure do not say that there is no scatter."""
        coarse = lambda step: [[60] * 5, [step] * 5]
        self.pair([*site_lines("one", coarse(48), 1), *site_lines("two", coarse(48), 1)],
                  [*site_lines("one", coarse(44), 1), *site_lines("two", coarse(48), 1)])
        self.assertEqual(self.words("a", "b"), ["UNCLEAR", "UNCLEAR"])

    def test_too_few_samples_are_unclear_and_said(self):
        few = [[10, 10], [8, 8]]
        self.pair(site_lines("one", few, 1), site_lines("one", self.quiet, 1))
        self.assertEqual(self.words("a", "b"), ["UNCLEAR"])
        self.assertIn("too few samples (A 2, B 5)", self.compare("a", "b"))

    def test_passes_that_do_not_count_are_no_samples(self):
        lines = site_lines("one", self.quiet, 1)
        bad = [line.replace("iter=4", "iter=9").replace("time_us=8 ", "time_us=800 ") + " status=throttled"
               for line in lines if "event=trial" in line and "config=1" in line]
        warm = [line.replace("iter=", "warmup=1 iter_=").replace("time_us=", "time_us=9")
                for line in lines if "event=trial" in line]
        self.pair(lines, [*lines[:-1], *bad, *warm, lines[-1]])
        self.assertEqual(self.words("a", "b"), ["SAME"])
        (site,) = self.json_of("a", "b")["regions"][0]["sites"]
        self.assertEqual(site["settled"]["b"]["samples"], 5)

    def test_a_stored_winner_has_no_samples(self):
        stored = site_lines("one", [[], []], 1, reason="stored")
        self.pair(site_lines("one", self.quiet, 1), stored)
        self.assertIn("B: no samples, the winner is stored", self.compare("a", "b"))
        self.assertEqual(self.words("a", "b"), ["UNCLEAR"])

    def test_a_site_that_is_not_decided_is_unclear(self):
        self.pair(site_lines("one", self.quiet, None), site_lines("one", self.quiet, 1))
        self.assertIn("A: not decided", self.compare("a", "b"))
        self.assertEqual(self.words("a", "b", what="default"), ["SAME"])

    def test_what_only_one_side_has_is_listed(self):
        self.pair([*site_lines("one", self.quiet, 1), *site_lines("two", self.quiet, 1, key="n=2")],
                  [*site_lines("one", self.quiet, 1), *site_lines("x", self.quiet, 1, region="other"),
                   *site_lines("two", self.quiet, 1, key="n=3")])
        text = self.compare("a", "b")
        self.assertIn("    only in A: two n=2\n    only in B: two n=3\n", text)
        self.assertIn("  only in B: region other, 1 site\n", text)
        self.assertIn("; 1 only in A; 2 only in B", text)
        contents = self.json_of("a", "b")
        self.assertEqual(contents["regions"][0]["only_in_a"], [{"site": "two", "key": "n=2"}])
        self.assertEqual(contents["only_in_b"][0]["name"], "other")

    def test_another_build_of_a_kernel_is_matched_if_only_one_fits(self):
        self.pair(site_lines("one", self.quiet, 1, key="code=aa device=0 n=1"),
                  site_lines("one", self.quiet, 1, key="code=bb device=1 n=1"))
        self.assertRegex(self.compare("a", "b"), r"SAME\n      other code\n")
        self.pair(b=site_lines("one", self.quiet, 1, key="code=cc device=1 n=1"))
        self.assertIn("only in A: one code=aa device=0 n=1", self.compare("a", "b"))

    def test_nothing_in_both_is_said_and_no_success_for_ci(self):
        self.pair(site_lines("one", self.quiet, 1), site_lines("two", self.quiet, 1))
        self.assertIn("nothing is in both", self.compare("a", "b"))
        self.compare("a", "b", "--fail-on", "slower", status=2)

    def test_other_gpus_and_simulated_figures_are_said_in_the_first_line(self):
        self.pair(site_lines("one", self.quiet, 1), site_lines("one", self.quiet, 1), gpu="NVIDIA H200")
        text = self.compare("a", "b")
        self.assertIn("DIFFERENT GPUS", text.splitlines()[0])
        self.assertIn("not alike: GPU (A NVIDIA H100, B NVIDIA H200)", text)
        self.assertRegex(text, r"one .* SAME")
        simulated = site_lines("one", self.quiet, 1, extra=" simulated=yes")
        self.write("c", [start("Simulated GPU", "yes"), *simulated])
        self.assertIn("A IS REAL, B IS SIMULATED, DIFFERENT GPUS", self.compare("a", "c").splitlines()[0])
        contents = self.json_of("a", "c")
        self.assertEqual((contents["different_gpus"], contents["simulated_and_real"]), (True, True))
        text = self.compare("c", "c")
        self.assertIn("region decode (simulated)", text)
        self.assertIn("a simulated driver: no figure here is of a real GPU", text)
        self.assertNotIn("a simulated driver", self.compare("a", "b"))

    def test_a_run_is_chosen_by_its_id(self):
        self.write("a", [start(), *site_lines("one", self.quiet, 1)], run="aaaa", pid=1)
        self.write("a", [start(), *site_lines("one", self.slower, 1)], run="bbbb", pid=2,
                   time="2026-11-21T20:33:53.120Z")
        for arguments in (["a", "--run-a", "aaaa", "--run-b", "bbbb"], ["a:aaaa", "a:bbbb"], ["a:aaaa", "a"],
                          ["a", "--run-a", "aaaa"], ["a/rank-0.log:aaaa", "a"]):
            self.assertEqual(self.words(*arguments), ["SLOWER"], arguments)
        self.assertEqual(self.words("a:bbbb", "a:aaaa"), ["FASTER"])
        self.assertIn("no run cccc", self.contextune("compare", "a:cccc", "a").stderr)
        self.compare("a:cccc", "a", status=2)

    def test_a_folder_with_a_colon_is_a_folder(self):
        self.write("a:b", [start(), *site_lines("one", self.quiet, 1)])
        self.assertEqual(self.words("a:b", "a:b"), ["SAME"])

    def test_a_run_beside_itself_is_the_same_and_said_to_be_itself(self):
        generator = random.Random(3)
        noisy = [[10 * generator.lognormvariate(0, 0.3) for _ in range(5)] for _ in range(2)]
        self.write("a", [start(), *site_lines("one", self.quiet, 1), *site_lines("two", noisy, 1)])
        text = self.compare("a", "a", "--fail-on", "slower")
        self.assertIn("THE SAME RUN TWICE", text.splitlines()[0])
        self.assertEqual(self.words("a", "a"), ["SAME", "UNCLEAR"])

    def test_what_cannot_be_read_is_answered(self):
        self.write("a", [start(), *site_lines("one", self.quiet, 1)])
        (self.work / "empty").mkdir()
        (self.work / "blank").mkdir()
        (self.work / "blank" / "rank-0.log").write_text("")
        (self.work / "noise").mkdir()
        (self.work / "noise" / "rank-0.log").write_bytes(b"\xff\x00no line\n" * 100)
        (self.work / "x.json").write_text("{}")
        for other, said in (("nowhere", "no such folder or file"), ("empty", "holds neither rank logs"),
                            ("blank", "no line of its logs can be read"), ("noise", "no line of its logs"),
                            ("x.json", "give two of a kind")):
            for arguments in (("a", other), (other, "a")):
                result = self.contextune("compare", *arguments)
                self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
                self.assertIn(said, result.stderr)
        self.assertIn("no such folder", self.contextune("compare", "nowhere", "nowhere").stderr)

    def test_lines_that_cannot_be_read_are_told_and_the_rest_is_compared(self):
        self.pair(site_lines("one", self.quiet, 1), [*site_lines("one", self.quiet, 1), "event=trial region=x"])
        result = self.contextune("compare", "a", "b")
        self.assertIn("rank-0.log:", result.stderr)
        self.assertIn("1 SAME", result.stdout)

    def test_wrong_use_is_answered(self):
        self.write("a", [start(), *site_lines("one", self.quiet, 1)])
        for arguments in ([], ["a"], ["a", "a", "a"], ["a", "a", "--margin", "two"], ["a", "a", "--margin", "2"],
                          ["a", "a", "--margin=-1%"], ["a", "a", "--fail-on", "faster"], ["a", "a", "--color", "red"],
                          ["a", ""], ["a", "a", "--nothing"]):
            result = self.contextune("compare", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("contextune compare", result.stderr)
        with open("/dev/full", "w") as full:
            result = self.contextune("compare", "a", "a", stdout=full, stderr=subprocess.PIPE, capture_output=False)
        self.assertEqual(result.returncode, 2)

    def test_older_logs_are_compared(self):
        """Without a start line, without what later versions have added, and with another version's lines."""
        self.write("a", site_lines("one", self.quiet, 1))
        self.write("b", [*site_lines("one", self.quiet, 1), "event=not_yet_invented x=1"])
        result = self.contextune("compare", "a", "b")
        self.assertEqual(result.returncode, 0)
        self.assertIn("settled times: 1 SAME", result.stdout)
        without_winner = [line for line in site_lines("one", self.quiet, 1) if "event=trial" not in line]
        self.write("c", without_winner)
        self.assertEqual(self.words("a", "c"), ["UNCLEAR"])

    def test_hostile_names_reach_neither_the_terminal_nor_the_table(self):
        names = ["\x1b[31mred", "a" * 5000, 'quote" and \\ slash', "two  blanks", "späße\u202e", "x=y", "-"]
        lines = [line for name in names for line in site_lines(name, self.quiet, 1, key=f"{name}=1 n=\x1b]0;x\x07")]
        lines += site_lines("byte\udcff", self.quiet, 1)
        lines += site_lines("s", self.quiet, 1, region="\x1b[2J", parameters={0: "", 1: "p=\x1b[1m"})
        others = site_lines("s", self.quiet, 1, region="\x1b[2J", parameters={0: "", 1: "p=\x1b[2m"})
        escaped = lambda text: text.replace("\x1b", "\\u001b").replace("\x07", "\\u0007")
        self.write("a", [start("GPU\\u001b[5m"), *map(escaped, lines)], run="r")
        self.write("b", [start("GPU2"), *map(escaped, lines[:-8]), *map(escaped, others)], run="r2")
        for arguments in (["a", "b"], ["b", "a"], ["a", "a", "--json"], ["a", "b", "--json"]):
            text = self.compare(*arguments)
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f]")
        for line in self.compare("a", "b").splitlines():
            self.assertLess(len(line), 500)
        sites = [site for region in self.json_of("a", "b")["regions"] for site in region["sites"]]
        self.assertIn("\x1b[31mred", [site["site"] for site in sites])


class Ranks(Compare):
    base = [[10, 10.01, 10.02, 10.01, 10], [8, 8.01, 8.02, 8.01, 8]]

    def scaled(self, factor):
        return [[sample * factor for sample in samples] for samples in self.base]

    def job(self, folder, factors, site="one", extra=" agreed=yes", key="device={} n=1", **more):
        for rank, factor in enumerate(factors):
            lines = site_lines(site, self.scaled(factor), 1, key=key.format(rank), extra=extra)
            self.write(folder, [start(world_size=len(factors)), *lines], rank=rank, pid=100 + rank, **more)

    def test_the_slowest_rank_counts(self):
        for extra in (" agreed=yes", ""):
            for path in ("a", "b", "c"):
                for log in (self.work / path).glob("*"):
                    log.unlink()
            self.job("a", [1, 1.2, 1.1], extra=extra)
            self.job("b", [1.19, 1.2, 1.19], extra=extra)
            self.job("c", [1, 1.2, 1.4], extra=extra)
            self.assertEqual(self.words("a", "b"), ["SAME"])
            self.assertEqual(self.words("a", "c"), ["SLOWER"])
            contents = self.json_of("a", "c")
            self.assertEqual((contents["a"]["ranks"], len(contents["regions"][0]["sites"])), (3, 1))
            self.assertAlmostEqual(contents["regions"][0]["sites"][0]["settled"]["b"]["seconds"], 8.01e-6 * 1.4,
                                   delta=1e-9)

    def test_in_passes_that_all_made_the_slowest_of_each_pass_counts(self):
        """Each rank is slow in another pass: no rank alone is, but all of them wait in each."""
        for folder, slow in (("a", 1), ("b", 1.5)):
            for rank in range(2):
                times = [[10, 10.01, 10.02, 10.01, 10, 10.01],
                         [8 * (slow if i % 2 == rank else 1) + i / 500 for i in range(6)]]
                self.write(folder, [start(world_size=2), *site_lines("one", times, 1, extra=" agreed=yes")],
                           rank=rank, pid=100 + rank)
        (site,) = self.json_of("a", "b")["regions"][0]["sites"]
        self.assertEqual(site["settled"]["word"], "SLOWER")
        self.assertAlmostEqual(site["settled"]["ratio"], 1.5, delta=0.01)

    def test_of_a_collective_the_rank_that_waited_least_counts(self):
        self.job("a", [1, 3], site="all_reduce")
        self.job("b", [1, 5], site="all_reduce")
        self.assertEqual(self.words("a", "b"), ["SAME"])

    def test_other_numbers_of_ranks_are_told(self):
        self.job("a", [1, 1])
        self.job("b", [1])
        self.assertIn("ranks (A 2, B 1)", self.compare("a", "b"))

    def test_logs_of_the_core_are_compared(self):
        for folder, ranks in (("a", 3), ("b", 3)):
            subprocess.run([WRITE_RANK_LOGS, str(self.work / folder), str(ranks)], check=True)
        text = self.compare("a", "b")
        self.assertIn("3 ranks", text)
        self.assertIn("too few samples (A 1, B 1)", text)

    def test_a_rank_that_is_not_there_is_no_rank(self):
        self.job("a", [1, 1])
        self.job("b", [1, 1])
        (self.work / "b" / "rank-1.log").unlink()
        self.assertEqual(self.words("a", "b"), ["SAME"])


class Stores(Compare):
    def store(self, folder, *sites, name="decode", gpu="NVIDIA H100", driver="13.0"):
        subprocess.run([WRITE_STORE, str(self.work / folder), name, gpu, driver, "1764000000", *sites], check=True)
        (path,) = (self.work / folder).glob("*/*.json")
        return path

    def change(self, path, old, new):
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))

    def test_stores_are_compared_by_their_fastest_and_slowest_samples(self):
        self.store("a", "one", "256", "two", "256")
        path = self.store("b", "one", "256", "two", "256")
        self.assertEqual(self.words("a", "b"), ["UNCLEAR"] * 2)  # 2.9 to 3.1 us
        self.assertEqual(self.words("a", "b", "--margin", "12%"), ["SAME"] * 2)
        self.change(path, '"low_seconds":2.9', '"low_seconds":3.9')
        self.change(path, '"high_seconds":3.1', '"high_seconds":4.1')
        self.change(path, '"samples":5,"seconds":3', '"samples":5,"seconds":4')
        self.assertEqual(self.words("a", "b"), ["SLOWER"] * 2)
        self.compare("a", "b", "--fail-on", "slower", status=1)
        text = self.compare(path, path)
        self.assertIn("settled times: 2 UNCLEAR", text)
        self.assertIn("gain: A kept, 10.0 % less time (at least 8.0 %, 8 pairs)", text)

    def test_too_few_samples_and_no_spread_are_said(self):
        path = self.store("a", "one", "256")
        self.change(path, '"samples":5', '"samples":3')
        self.assertIn("too few samples (A 3, B 3)", self.compare("a", "a"))
        path = self.store("b", "one", "512")  # of which no trial is kept
        self.assertIn("the store has no spread", self.compare("b", "b"))
        self.assertEqual(self.words("b", "b"), ["UNCLEAR"])
        self.assertIn("winners differ: block 256 -> 512", self.compare("a", "b"))

    def test_launches_are_compared_by_their_gain(self):
        self.store("a", "launches", "chained gathered=16", name="auto")
        text = self.compare("a", "a")
        self.assertIn("chained gathered=16, settled", text)

    def test_other_hardware_is_said(self):
        self.store("a", "one", "256")
        self.store("b", "one", "256", gpu="NVIDIA H200")
        text = self.compare("a", "b")
        self.assertIn("DIFFERENT GPUS", text.splitlines()[0])
        self.assertIn("region decode, A on NVIDIA H100, B on NVIDIA H200", text)

    def test_each_kind_of_hardware_is_matched_with_its_own(self):
        for folder in ("a", "b"):
            for gpu in ("NVIDIA H100", "NVIDIA H200"):
                subprocess.run([WRITE_STORE, str(self.work / folder), "decode", gpu, "13.0", "1764000000", "one",
                                "256"], check=True)
        contents = self.json_of("a", "b")
        self.assertEqual([region["other_hardware"] for region in contents["regions"]], [False, False])
        self.assertEqual(contents["different_gpus"], False)

    def test_a_damaged_file_is_told(self):
        self.store("a", "one", "256")
        self.store("b", "one", "256").write_text("{")
        result = self.contextune("compare", "a", "b")
        self.assertIn(".json", result.stderr)
        self.assertIn("only in A: region decode on NVIDIA H100, 1 site", result.stdout)


if __name__ == "__main__":
    unittest.main()
