"""Names and texts that mean harm are text: nothing of a log becomes markup or script, or breaks the layout."""

import unittest

from browser import SIZES, shots_folder
from page_test_case import PageTestCase

HARM = {
    "markup": b"</script><img src=x onerror=alert(1)>",
    "comment": b"<!--<script>alert(1)</script>",
    "attribute": b"x\\\" onmouseover=alert(1) autofocus onfocus=alert(1) style=position:fixed;inset:0 y=\\\"",
    "svg": b"<svg onload=alert(1)><style>*{display:none}</style></svg><base href=http://127.0.0.1:9/>",
    "place": b"CONTEXTUNE_DATA CONTEXTUNE_SCRIPT ${alert(1)} {{alert(1)}} $& $1 %s",
    "address": b"javascript:alert(1)",
    "prototype": b"__proto__",
    "constructor": b"constructor",
    "control": b"a\\u0000b\\u0001\\u001b[31mred\\u001b[0m\\u0007\\u007f\\u009b31m" + b"\x01\x1b[31m\x7f",
    "separators": "a\u2028b\u2029c\u0085d\ufeffe".encode(),
    "direction": "abc\u202etxt.exe\u2066x\u2069".encode(),
    "not_utf8": b"a\xff\xfe\xc0\xaf\xed\xa0\x80b\\xff\\xc0",
    "marks": ("Z" + "\u0301\u0302\u0303" * 60 + " \U0001f600").encode(),
}
LONG = 900_000  # a line of a log is no longer than 1 MiB


def line(text):
    return b"2026-11-20T20:33:53.120Z run=7f3a pid=4242 rank=0 level=info " + text + b"\n"


def tuned_site(region, name, key=b"", parameter=b"block", value=b"256"):
    """A site with two configs and a winner, each text as it stands between quotes."""
    place = b'region="%s" site="%s" key="%s" ' % (region, name, key)
    lines = [b"event=site " + place + b"configs=2 launches=1 grid=8 block=128 shared_bytes=0 registers=16 "
             b"provider=declared"]
    for config in (0, 1):
        for iteration in (0, 1):
            lines.append(b"event=trial " + place + b'pass=%d config=%d %s="%s" iter=%d launches=1 time_us=%d.5 '
                         b"timer=cupti" % (2 * config + iteration, config, parameter, value, iteration, 9 - config))
    lines.append(b"event=winner " + place + b'config=1 %s="%s" time_us=8.5 default_us=9.5 reason=fastest '
                 b"simulated=yes" % (parameter, value))
    return b"".join(map(line, lines))


def start(program=b"./engine"):
    return line(b'event=start version=0.1.0 program="%s" gpu="%s" compute_capability=9.0 num_sms=132 driver=13.0 '
                b"simulated=yes mode=auto regions=nvtx:decode timer=cupti" % (program, program))


def end(region, text):
    return line(b'event=fallback reason=launch_failed region="%s" site="%s" text="%s"' % (region, text, text)) + \
        line(b'event=fallback reason="%s" region="%s" text="%s"' % (text, region, text)) + \
        line(b'event=fault text="%s"' % text) + \
        line(b'event=confirm region="%s" verdict=kept before_us=124 after_us=110 gain=0.113 bound=0.101 pairs=8 tries=1'
             % region) + \
        line(b'event=summary region="%s" passes=22 entries=30 tuning_s=0.5 stage=finished sites=2 tuned=1' % region)


class Hostile(PageTestCase):
    def assert_harmless(self, page, name):
        """Everything in the page is the page's own."""
        for size in SIZES:
            with self.subTest(size=size):
                self.browser.look(SIZES[size])
                self.browser.open(page)
                self.browser.unroll()
                self.open_everything()
                self.browser.screenshot(shots_folder() / f"hostile_{name}_{size}.png", whole=True)
                self.assertEqual(self.browser.run("return window.alerts"), [])
                self.assertEqual(self.browser.run(
                    "return document.querySelectorAll('img, iframe, object, embed, base, form, [style*=fixed], svg style')"
                    ".length"), 0)
                self.assertEqual(self.browser.run("return document.scripts.length"), 2)
                self.assertEqual(self.browser.run(
                    "return [...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
                    ".filter(name => name.startsWith('on'))"), [])
                self.assertEqual(self.browser.run(
                    "return [...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))"
                    ".filter(href => !href.startsWith('#'))"), [])
                self.assertLessEqual(self.browser.excess_width(), 0)
                if name == "harm" and size == "phone":  # it takes seconds
                    self.assertEqual(self.browser.violations(), [])
                self.assertEqual(self.browser.said(), [])
                self.assertEqual(self.browser.requests_elsewhere(page), [])

    def open_everything(self):
        self.browser.run("for (const one of document.querySelectorAll('details')) one.open = true;")

    def test_a_log_whose_every_text_means_harm(self):
        raw = start(HARM["markup"])
        for name, text in HARM.items():
            raw += tuned_site(b"decode", text, text, b"block", text)
            raw += tuned_site(text, b"kernel", b"", b"block", b"64")
            raw += end(text, text)
        page = self.reports.of_text("harm", raw + end(b"decode", HARM["markup"]))
        self.assertNotIn(b"<img", page.read_bytes())
        self.assert_harmless(page, "harm")
        self.assertTrue(self.browser.run(
            "return document.body.innerText.includes('</script><img src=x onerror=alert(1)>')"))

    def test_a_megabyte_of_text(self):
        long = LONG * b"W"
        raw = start(long) + tuned_site(b"decode", long) + tuned_site(b"decode", b"kernel", long)
        raw += tuned_site(b"decode", b"kernel-2", b"", b"block", 200_000 * b"word ")
        raw += tuned_site(long, b"kernel") + line(b'event=fault text="%s"' % long)
        page = self.reports.of_text("long", raw)
        self.assertLess(page.stat().st_size, 2 << 20)
        self.assert_harmless(page, "long")

    def test_lines_that_cannot_be_read_are_told_of(self):
        page = self.reports.of_text("bad", start() + b"<b>no line</b>\n\0\xff\n" + tuned_site(b"decode", b"kernel"))
        self.assert_harmless(page, "bad")


if __name__ == "__main__":
    unittest.main()
