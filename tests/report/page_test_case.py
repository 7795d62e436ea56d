"""What the tests of pages share: one browser and the pages of a file of tests."""

import unittest

from browser import Browser
from reports import Reports


class PageTestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.reports = Reports()
        cls.addClassCleanup(cls.reports.remove)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.quit)
