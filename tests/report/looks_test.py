"""The page at two sizes, light and dark, for one rank and for 64: nothing is too wide, unsaid or out of reach."""

import unittest

from browser import SCHEMES, SIZES, shots_folder
from page_test_case import PageTestCase


class Looks(PageTestCase):
    def looks(self, page, name, examined):
        """@param examined the looks that axe examines, and that people see whole: both take long"""
        for size in SIZES:
            for scheme in SCHEMES:
                with self.subTest(page=name, size=size, scheme=scheme):
                    self.browser.look(SIZES[size], scheme)
                    self.browser.open(page)
                    shot = shots_folder() / f"{name}_{size}_{scheme}.png"
                    self.browser.screenshot(shot)
                    self.browser.unroll()
                    self.assertLessEqual(self.browser.excess_width(), 0)
                    if (size, scheme) in examined:
                        self.browser.screenshot(shot.with_stem(shot.stem + "_whole"), whole=True)
                        self.assertEqual(self.browser.violations(), [])
                    self.assertEqual(self.browser.said(), [])
                    self.assertEqual(self.browser.requests_elsewhere(page), [])

    def test_one_rank_looks_right(self):
        self.looks(self.reports.demo, "demo", [("phone", "light"), ("desk", "dark")])

    def test_64_ranks_look_right(self):
        self.looks(self.reports.many_ranks, "ranks", [("phone", "dark"), ("desk", "light")])

    def test_parts_are_drawn_when_they_are_scrolled_to(self):
        self.browser.look(SIZES["desk"])
        self.browser.open(self.reports.demo)
        undrawn = "return document.querySelectorAll('section .later, section .chart:empty').length"
        self.assertGreater(self.browser.run(undrawn), 0)
        self.browser.scroll_through()
        self.assertEqual(self.browser.run(undrawn), 0)


if __name__ == "__main__":
    unittest.main()
