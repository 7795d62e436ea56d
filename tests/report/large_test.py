"""A job of 64 ranks, 64 sites and 200 configs: the page is no larger than it may be, and usable at once."""

import unittest

from browser import SIZES, shots_folder
from page_test_case import PageTestCase

MOST_BYTES = 8 << 20
# A second is what it should take where nothing else runs; machines that test share their processors.
MOST_SECONDS = 5.0

# Milliseconds until the next frame after an action has been drawn.
UNTIL_DRAWN = """
const [action, done] = [arguments[0], arguments[arguments.length - 1]];
const begin = performance.now();
new Function(action)();
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
"""
CHOOSE = "document.querySelectorAll('#site-table tbody button')[3].click();"
SEARCH = """
const input = document.querySelector('#sites input[type=search]');
for (const text of ['s', 'so', 'sof', 'soft']) {
  input.value = text;
  input.dispatchEvent(new Event('input', {bubbles: true}));
}
"""


class Large(PageTestCase):
    def test_it_is_usable_at_once(self):
        page = self.reports.largest
        size = page.stat().st_size
        self.browser.look(SIZES["desk"])
        self.browser.open(page)
        first = self.browser.run("return performance.getEntriesByType('paint').at(-1).startTime")
        loaded = self.browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
        chosen = self.browser.driver.execute_async_script(UNTIL_DRAWN, CHOOSE)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#config-table tbody tr').length > 20"), True)
        found = self.browser.driver.execute_async_script(UNTIL_DRAWN, SEARCH)
        self.assertTrue(self.browser.run(
            "return [...document.querySelectorAll('#site-table tbody tr')].every(row => /soft/.test(row.innerHTML))"))
        elements = self.browser.run("return document.querySelectorAll('*').length")
        print(f"{size / (1 << 20):.2f} MiB; painted after {first:.0f} ms, loaded after {loaded:.0f} ms; "
              f"a site opened in {chosen:.0f} ms, searched in {found:.0f} ms; {elements} elements", flush=True)
        self.assertLess((max(first, loaded) + chosen + found) / 1e3, MOST_SECONDS)
        self.assertLessEqual(self.browser.excess_width(), 0)
        self.browser.screenshot(shots_folder() / "largest.png")
        self.assertEqual(self.browser.said(), [])
        self.assertLessEqual(size, MOST_BYTES)


if __name__ == "__main__":
    unittest.main()
