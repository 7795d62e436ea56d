"""`contextune report`: one page with all that the logs hold, whatever they hold. What a browser makes of it
is tested in tests/report."""

import base64
import hashlib
import html.parser
import json
import math
import os
import pathlib
import re
import stat
import subprocess
import unittest

from harness import CommandTest, golden_log

HEAD = "2026-11-20T20:33:53.120Z run=7f3a pid=4242 rank=0 level=info "
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
WRITE_RANK_LOGS = os.environ["CONTEXTUNE_WRITE_RANK_LOGS"]


def lines(text, head=HEAD):
    return "".join(head + line + "\n" for line in text.rstrip("\n").split("\n"))


def numbers(column):
    return [sum(DIGITS.index(digit) << shift for digit, shift in zip(column[i:i + 3], (12, 6, 0)))
            for i in range(0, len(column), 3)]


def times(column):
    return [1e-9 * 2 ** ((number - 1) / 4096) if number else math.nan for number in numbers(column)]


class Elements(html.parser.HTMLParser):
    """The page's elements, and the text of each script."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.scripts = []
        self.styles = []
        self.policy = ""
        self.into = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"]
        self.into = {"script": self.scripts, "style": self.styles}.get(tag)
        if self.into is not None:
            self.into.append("")

    def handle_endtag(self, tag):
        self.into = None

    def handle_data(self, text):
        if self.into is not None:
            self.into[-1] += text


class Report(CommandTest):
    def write(self, text, name="rank-0.log", folder=".autotune_logs"):
        path = self.work / folder
        path.mkdir(exist_ok=True)
        (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    def report(self, *arguments):
        done = self.contextune("report", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def page(self, *arguments):
        return pathlib.Path(self.work / self.report(*arguments).strip()).read_text()

    def data(self, *arguments):
        """The page's data, with texts in place of their numbers where a test asks for them."""
        data = json.loads(Elements(self.page(*arguments)).scripts[0])
        self.strings = data["strings"]
        return data

    def fails(self, *arguments, says):
        done = self.contextune("report", *arguments)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, "^contextune report: " + says)

    def golden_region(self):
        self.write(lines(golden_log()))
        return self.data()["jobs"][0]["regions"][0]

    def test_it_names_the_file_that_it_writes(self):
        self.write(lines(golden_log()))
        self.assertEqual(self.report(), "contextune-report.html\n")
        self.assertEqual(self.report("-o", "other.html"), "other.html\n")
        self.assertEqual(self.report(".autotune_logs", "--output", str(self.work / "third.html")),
                         f"{self.work}/third.html\n")
        for name in ("contextune-report.html", "other.html", "third.html"):
            self.assertTrue((self.work / name).read_text().startswith("<!doctype html>\n<!-- contextune report -->\n"))
        self.assertEqual(sorted(path.name for path in self.work.iterdir()),
                         [".autotune_logs", "contextune-report.html", "other.html", "third.html"])
        self.assertEqual(self.report("-o", "-"), (self.work / "other.html").read_text())

    def test_the_page_asks_for_nothing_and_runs_its_own_script_alone(self):
        self.write(lines(golden_log()))
        page = self.page()
        elements = Elements(page)
        self.assertEqual(len(elements.scripts), 2)
        self.assertEqual(len(elements.styles), 1)
        for kind, text in (("script", elements.scripts[1]), ("style", elements.styles[0])):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn(f"{kind}-src 'sha256-{digest}'", elements.policy)
        self.assertTrue(elements.policy.startswith("default-src 'none'"))
        self.assertIn("connect-src 'none'", elements.policy)
        for tag, attributes in elements.tags:
            for name in ("src", "href", "action", "srcset"):
                self.assertRegex(attributes.get(name) or "#", "^(#|data:,$)", tag)
        self.assertNotRegex(page, r"https?://(?!www\.w3\.org/2000/svg)")
        self.assertNotRegex(elements.scripts[1], r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b")
        # The page of --follow asks its own server; in a file nothing does.
        self.assertEqual(elements.scripts[1].count("fetch("), 1)
        self.assertIn('<html lang="en" data-version="">', page)

    def test_a_region_has_its_verdict_and_its_sites(self):
        region = self.golden_region()
        self.assertEqual(self.strings[region["name"]], "decode")
        confirm, = region["confirms"]
        self.assertEqual(self.strings[confirm["verdict"]], "kept")
        self.assertEqual((confirm["gain"], confirm["bound"], confirm["pairs"], confirm["gains"], confirm["ranks"]),
                         (0.113, 0.101, 8, [], [0]))
        self.assertEqual([self.strings[site["label"]] for site in region["sites"]], ["kernel-0", "kernel-1"])
        site = region["sites"][0]
        self.assertEqual(numbers(site["configs"]), [0, 1])
        self.assertEqual(numbers(site["counts"]), [2, 2])
        self.assertEqual(numbers(site["winners"]), [2])  # one more than the config
        for found, wanted in zip(times(site["quantiles"]), 5 * [5e-6] + 5 * [4e-6]):
            self.assertAlmostEqual(found / wanted, 1, delta=1e-4)
        (name, values), = site["parameters"]
        self.assertEqual((self.strings[name], [self.strings[value] for value in numbers(values)]), ("block", ["64", "128"]))

    def test_the_golden_table_is_there(self):
        table, = self.golden_region()["tables"]
        cells = [[self.strings[cell] for cell in numbers(self.strings[column])] for column in table["cells"]]
        self.assertEqual([self.strings[one] for one in numbers(self.strings[table["passes"]])],
                         ["0", "1", "2", "3", "4", "5", "final"])
        self.assertEqual(cells[0], ["config-0 (iter-0)", "config-0 (iter-1)", "config-1 (iter-0)", "config-1 (iter-1)",
                                    "**winner**", "**winner**", "**winner**"])
        self.assertEqual(cells[1][4:], ["config-2 (iter-0)", "config-2 (iter-1)", "**winner**"])

    def test_parameters_that_do_not_vary_are_told_once(self):
        self.write(lines("".join(
            f"event=trial region=r pass={config} site=s config={config} variant=gemm block={block} iter=0 launches=1 "
            "time_us=5 timer=cupti\n" for config, block in ((0, 64), (1, 128)))))
        site = self.data()["jobs"][0]["regions"][0]["sites"][0]
        self.assertEqual([self.strings[name] for name, _ in site["parameters"]], ["block"])
        self.assertEqual(self.strings[site["common"]], "variant=gemm")

    def test_pairs_stages_and_the_command_are_there_where_the_log_has_them(self):
        self.write(lines(
            "event=start version=0.1.0 program=/usr/bin/env simulated=yes command=\"env 'A B'\" "
            "options=\"n-repeat=2 only=\\\"two words\\\"\"\n"
            "event=stage region=r stage=table generation=0 elapsed_us=0\n"
            "event=stage region=r stage=table generation=0 elapsed_us=7\n"
            "event=stage region=r stage=confirm generation=0 elapsed_us=1500000\n"
            "event=confirm region=r verdict=kept before_us=2 after_us=1 gain=0.5 bound=0.4 pairs=2 tries=1 "
            "pair_gains=\"0.45 0.55\" simulated=yes\n"))
        job = self.data()["jobs"][0]
        process = job["ranks"][0]
        self.assertEqual(self.strings[process["command"]], "env 'A B'")
        self.assertEqual([[self.strings[text] for text in option] for option in process["options"]],
                         [["n-repeat", "2"], ["only", "two words"]])
        self.assertTrue(process["simulated"])
        region = job["regions"][0]
        self.assertEqual(region["confirms"][0]["gains"], [0.45, 0.55])
        self.assertEqual([[self.strings[stage], generation, begin] for stage, generation, begin in region["ranks"][0]["stages"]],
                         [["table", 0, 0], ["confirm", 0, 1.5]])

    def test_an_older_log_lacks_some_and_is_read(self):
        self.write(lines("event=start version=0.0.1 program=./engine\n"
                         "event=confirm region=r verdict=defaults pairs=0\n"))
        job = self.data()["jobs"][0]
        self.assertNotIn("command", job["ranks"][0])
        self.assertEqual(job["regions"][0]["confirms"][0]["gains"], [])
        self.assertEqual(job["regions"][0]["ranks"][0]["stages"], [])

    def test_what_was_not_tuned_has_its_remedy(self):
        self.write(lines("event=fallback reason=no_knobs region=r site=a text=\"One config.\"\n"
                         "event=fallback reason=no_knobs region=r site=a text=\"One config.\"\n"
                         "event=fallback reason=of_another_version region=r text=\"Who knows.\"\n"
                         "event=fault text=\"space.lua:3: first\\nsecond\"\n"))
        data = self.data()
        first, other, fault = data["jobs"][0]["troubles"]
        self.assertEqual((self.strings[first["reason"]], first["count"], first["ranks"]), ("no_knobs", 2, [0]))
        self.assertIn("space file", data["reasons"]["no_knobs"][2])
        self.assertEqual(self.strings[other["reason"]], "of_another_version")
        self.assertEqual(fault["text"], "space.lua:3: first\nsecond")

    def test_ranks_of_a_job_stand_beside_each_other(self):
        environment = self.environment | {"CONTEXTUNE_RUN_ID": "7f3a"}
        subprocess.run([WRITE_RANK_LOGS, str(self.work / ".autotune_logs"), "4"], check=True, env=environment)
        job, = self.data()["jobs"]
        self.assertTrue(job["together"])
        self.assertEqual([rank["rank"] for rank in job["ranks"]], [0, 1, 2, 3])
        site = job["regions"][0]["sites"][0]
        self.assertEqual(numbers(site["winners"]), [2, 2, 2, 2])
        for rank, seconds in enumerate(times(site["winner_times"])):
            self.assertAlmostEqual(seconds / (1e-5 * (1 + 0.01 * rank)), 1, delta=1e-4)
        self.assertEqual(len(numbers(site["medians"])), 4 * len(numbers(site["configs"])))
        self.assertEqual([wait[:2] for wait in job["waits"]], 4 * [[1, 1]])
        self.assertEqual(len(job["regions"][0]["tables"]), 1)  # all ran the same

    def test_a_run_is_chosen(self):
        self.write(lines("event=start program=./a\n") +
                   lines("event=start program=./b\n", HEAD.replace("7f3a", "8888").replace("2026", "2027")))
        data = self.data()
        self.assertEqual([self.strings[job["ranks"][0]["run"]] for job in data["jobs"]], ["8888"])
        self.assertEqual(data["other_runs"], ["7f3a"])
        self.assertEqual(len(self.data("--run", "all")["jobs"]), 2)
        self.assertEqual(self.strings[self.data("--run", "7f3a")["jobs"][0]["ranks"][0]["program"]], "./a")
        self.fails("--run", "none", says="there is no run none; `contextune logs` names those that are there")

    def test_texts_of_a_log_stay_texts(self):
        harm = "</script><script>alert(1)</script><!--&amp; \u2028\u2029 \\u0000\\u001b[31m \u202e"
        raw = ("event=trial region=\"%s\" pass=0 site=\"%s\" key=\"%s\" config=0 %s iter=0 launches=1 time_us=1 timer=cupti\n"
               "event=fallback reason=\"%s\" text=\"%s\"\n" % (harm, harm, harm, "block=\"" + harm + "\"", harm, harm))
        self.write(lines(raw).encode() + HEAD.encode() + b"event=fault text=\"\xff\xfe\xc0\x80 not UTF-8\"\n")
        page = self.page()
        elements = Elements(page)
        self.assertEqual(len(elements.scripts), 2)
        self.assertNotIn("<", elements.scripts[0])
        self.assertTrue(elements.scripts[0].isascii())
        strings = json.loads(elements.scripts[0])["strings"]
        self.assertTrue(any("</script><script>alert(1)</script><!--&amp;" in text for text in strings))
        self.assertFalse([text for text in strings if re.search("[\x00-\x1f\x7f]", text)])

    def test_a_megabyte_of_text_is_bounded(self):
        name = "x" * 400_000 + "TheEnd"
        self.write(lines(f"event=trial region=r pass=0 site={name} key=k config=0 block={name} iter=0 launches=1 time_us=1\n"))
        data = self.data()
        self.assertLess(max(map(len, data["strings"])), 2100)
        self.assertTrue(any(text.endswith("TheEnd") for text in data["strings"]))

    def test_lines_that_cannot_be_read_are_told(self):
        self.write(lines("event=start program=./a\n") + "no line\n")
        done = self.contextune("report")
        self.assertEqual(done.returncode, 0)
        self.assertIn("1 line could not be read", done.stderr)
        data = json.loads(Elements((self.work / "contextune-report.html").read_text()).scripts[0])
        self.assertEqual((data["bad_lines"]["count"], len(data["bad_lines"]["lines"])), (1, 1))

    def test_without_logs_it_says_what_to_do(self):
        self.fails(says="there is no log folder .autotune_logs; give the folder")
        (self.work / ".autotune_logs").mkdir()
        self.fails(says=".autotune_logs holds no rank-<i>.log")
        self.write("nothing\n")
        self.fails(says="no line in .autotune_logs could be read; `contextune logs` lists them")
        self.assertFalse((self.work / "contextune-report.html").exists())

    def test_a_file_of_another_is_left_alone(self):
        self.write(lines(golden_log()))
        page = self.work / "page.html"
        for other in ("my own page", "<!doctype html>\n<p>mine"):
            page.write_text(other)
            self.fails("-o", "page.html", says="page.html is no page of contextune and is left as it is; name another "
                       "file with -o FILE, or replace it with --force")
            self.assertEqual(page.read_text(), other)
        self.report("-o", "page.html", "--force")
        first = page.read_text()
        self.assertIn("contextune report", first)
        self.report("-o", "page.html")  # one of ours is replaced
        self.assertEqual(page.read_text(), first)
        page.write_text("")
        self.report("-o", "page.html")
        self.assertEqual(page.read_text(), first)

    def test_a_link_stays_one(self):
        self.write(lines(golden_log()))
        (self.work / "link.html").symlink_to("behind.html")
        self.report("-o", "link.html")
        self.assertTrue((self.work / "link.html").is_symlink())
        self.assertTrue((self.work / "behind.html").is_file())

    def test_the_page_is_as_readable_as_the_mask_allows(self):
        self.write(lines(golden_log()))
        before = os.umask(0o027)
        try:
            self.report()
        finally:
            os.umask(before)
        self.assertEqual(stat.S_IMODE((self.work / "contextune-report.html").stat().st_mode), 0o640)

    def test_a_file_that_cannot_be_written_is_named(self):
        self.write(lines(golden_log()))
        self.fails("-o", "none/page.html", says="cannot write none/page.html: No such file or directory; name a file in "
                   "another folder with -o FILE")
        self.fails("-o", ".autotune_logs", says=".autotune_logs is a folder; name a file with -o FILE")
        self.fails("-o", "/dev/full", says="cannot write /dev/full: No space left on device")
        self.fails("-o", "/proc/page.html", says="cannot write /proc/page.html: ")
        self.assertEqual([path.name for path in self.work.iterdir()], [".autotune_logs"])

    def test_it_takes_one_folder(self):
        done = self.contextune("report", "a", "b")
        self.assertEqual(done.returncode, 2)
        self.assertIn("one folder is read, and several were given", done.stderr)


if __name__ == "__main__":
    unittest.main()
