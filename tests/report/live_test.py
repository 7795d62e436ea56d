"""The page of `contextune report --follow` shows what is new by itself, and leaves what its reader has set as it is."""

import re
import signal
import subprocess
import unittest

from browser import SCHEMES, SIZES, shots_folder
from page_test_case import PageTestCase
from reports import COMMAND, DEMO_LOGS, demo_run, environment

PATIENCE = 100
# What the reader has set, and where the page stands.
SEEN = """
return {
  site: document.querySelector('#site h3').textContent,
  open: [...document.querySelectorAll('details')].map(one => one.open).join(),
  words: document.querySelector('#site input[type=search]').value,
  focus: document.activeElement.type,
  order: document.querySelector('#config-table th[aria-sort]').textContent,
  changes: document.querySelector('#passes input').checked,
  across: document.querySelector('#passes .scroll').scrollLeft,
  top: Math.round(document.querySelector('#site h3').getBoundingClientRect().top),
  theme: document.documentElement.dataset.theme,
};
"""
SET = """
document.querySelector('#theme').click();
document.querySelector('#theme').click();
document.querySelector('#verdict details').open = true;
document.querySelectorAll('#site-table tbody button')[1].click();
const heads = [...document.querySelectorAll('#config-table thead button')];
heads.find(one => one.textContent.startsWith('median')).click();
heads.find(one => one.textContent.startsWith('median')).click();
document.querySelector('#passes input').click();
document.querySelector('#passes .scroll').scrollLeft = 40;
const input = document.querySelector('#site input[type=search]');
input.value = 'config';
input.dispatchEvent(new Event('input', {bubbles: true}));
input.focus();
document.querySelector('#site h3').scrollIntoView();
"""


class Live(PageTestCase):
    def setUp(self):
        self.logs = self.reports.folder / self.id()
        self.server = subprocess.Popen([str(COMMAND), "report", "--follow", str(self.logs)], stdout=subprocess.PIPE,
                                       text=True, env=environment())
        self.addCleanup(self.end)
        self.text = ""
        while "open the same" not in self.text:
            self.text += self.server.stdout.readline()
        self.address = re.search(r"http://\S+", self.text).group()
        self.browser.look()

    def end(self):
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        self.server.communicate(timeout=PATIENCE)
        self.assertEqual(self.server.returncode, 0)

    def log_of_demo(self):
        self.reports.demo  # made by now
        return (DEMO_LOGS / "rank-0.log").read_text().splitlines(keepends=True)

    def write(self, lines):
        self.logs.mkdir(exist_ok=True)
        with open(self.logs / "rank-0.log", "a") as log:
            log.writelines(lines)

    def shows(self, text):
        self.browser.wait("return document.body.textContent.includes(arguments[0])", text, patience=PATIENCE)

    def test_a_program_is_watched_from_before_its_start_to_its_end(self):
        self.browser.open(self.address)
        self.assertEqual(self.browser.said(), [])
        program = subprocess.Popen(list(map(str, demo_run("--log-dir", self.logs, steps=6000))), cwd=self.reports.folder,
                                   env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.browser.wait("return document.querySelectorAll('#verdict .verdict').length > 0")
        self.assertIsNone(program.poll())
        self.assertEqual(program.wait(PATIENCE), 0)
        # The last line of a process says how many launches were outside every region.
        self.browser.unroll()
        self.shows("launches outside every region")
        self.shows("with 95 % confidence at least")
        self.assertIn("live, last change", self.browser.run("return document.getElementById('live').textContent"))
        self.assertEqual(self.browser.said(), [])
        self.assertEqual(set(self.browser.requests_elsewhere(self.address)), {self.address + "data"})

    def test_what_the_reader_has_set_stays(self):
        lines = self.log_of_demo()
        self.write(lines)
        self.browser.open(self.address)
        self.browser.unroll()
        self.browser.run(SET)
        before = self.browser.run(SEEN)
        self.assertEqual((before["words"], before["focus"], before["across"], before["changes"]),
                         ("config", "search", 40, True))
        self.assertIn("true", before["open"])
        more = [line for line in lines if "event=fallback" in line][-1]
        self.write(re.sub(r'text=.*', 'text="Said later."', more))
        self.shows("Said later.")
        self.assertEqual(self.browser.run(SEEN), before)
        self.browser.driver.execute_async_script("setTimeout(arguments[0], 300)")  # charts are drawn by then
        self.assertEqual(self.browser.run(SEEN), before)
        self.assertEqual(self.browser.said(), [])

    def test_a_tuning_that_goes_on_is_not_said_to_have_ended(self):
        self.browser.open(self.address)
        self.shows("No log is there yet")
        lines = self.log_of_demo()
        self.write([line for line in lines if not re.search("event=(confirm|summary|replay|winner)|stage=finished", line)])
        self.shows("the tuning is in stage confirm")
        self.write(lines[-1:])
        self.shows("the tuning ended in stage confirm")

    def test_a_pause_holds_what_is_new_back(self):
        lines = self.log_of_demo()
        self.write(lines[:-1])
        self.browser.open(self.address)
        self.browser.run("document.getElementById('pause').click()")
        self.write(lines[-1:] + [re.sub(r"event=.*", 'event=fault text="Said later."', lines[-1])])
        self.browser.driver.execute_async_script("setTimeout(arguments[0], 3000)")
        self.assertNotIn("Said later.", self.browser.run("return document.body.textContent"))
        self.browser.run("document.getElementById('pause').click()")
        self.browser.unroll()
        self.shows("Said later.")

    def test_it_says_that_the_server_has_ended(self):
        self.write(self.log_of_demo())
        self.browser.open(self.address)
        self.end()
        self.browser.wait("return /no answer/.test(document.getElementById('live').textContent)")
        self.assertEqual(self.browser.run("return document.querySelectorAll('#verdict .verdict').length"), 1)

    def test_it_looks_right(self):
        self.write(self.log_of_demo())
        for size, scheme in zip(SIZES, SCHEMES):
            with self.subTest(size=size, scheme=scheme):
                self.browser.look(SIZES[size], scheme)
                self.browser.open(self.address)
                self.browser.wait("return document.getElementById('live').textContent")
                self.browser.screenshot(shots_folder() / f"live_{size}_{scheme}.png")
                self.assertLessEqual(self.browser.excess_width(), 0)
                if size == "phone":  # it takes seconds
                    self.assertEqual(self.browser.violations(), [])
                self.assertEqual(self.browser.said(), [])


if __name__ == "__main__":
    unittest.main()
