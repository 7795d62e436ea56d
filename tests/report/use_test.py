"""What the reader does with the page: sorts, filters, searches, follows addresses, copies, changes the theme, prints."""

import unittest

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browser import SIZES
from page_test_case import PageTestCase

# Texts of a table's column, by what its head begins with.
COLUMN = """
const table = document.querySelector(arguments[0]);
const heads = [...table.querySelectorAll('thead th')].map(head => head.textContent);
const at = heads.findIndex(head => head.startsWith(arguments[1]));
return [...table.querySelectorAll('tbody tr')].map(row => row.children[at].textContent);
"""
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text):
    value, unit = text.split()
    return float(value) * UNITS[unit]


class Use(PageTestCase):
    def setUp(self):
        self.browser.look(SIZES["desk"])

    def tearDown(self):
        self.assertEqual(self.browser.said(), [])
        self.browser.run("localStorage.clear()")

    def open_demo(self, address=""):
        self.browser.open(self.reports.demo.as_uri() + address)
        self.browser.unroll() if not address else None

    def find(self, selector):
        return self.browser.driver.find_element(By.CSS_SELECTOR, selector)

    def column(self, table, head):
        return self.browser.run(COLUMN, table, head)

    def click_head(self, table, head):
        self.browser.run("[...document.querySelectorAll(arguments[0] + ' thead button')]"
                         ".find(one => one.textContent.startsWith(arguments[1])).click()", table, head)

    def chosen_site(self):
        return self.browser.run("return document.querySelector('#site h3 .name').textContent")

    def test_every_site_and_its_configs_are_there(self):
        self.open_demo()
        self.assertEqual(self.column("#site-table", "site"), ["rotate", "remember", "attend", "project"])
        for site in ("attend", "project", "rotate"):
            self.find(f"#site-table tbody tr:nth-child({self.column('#site-table', 'site').index(site) + 1}) button").click()
            self.assertEqual(self.chosen_site(), site)
            count = int(self.column("#site-table", "configs")[self.column("#site-table", "site").index(site)])
            self.assertEqual(len(self.column("#config-table", "config")), count)

    def test_the_page_says_why_launches_go_out_as_they_do(self):
        for state, word, sentence in (
            ("open", "NOT SETTLED", "(run 2 of at most 4); launches go out chained so far"),
            ("pinned", "PINNED", "as --force says"),
            ("nothing", "AS WRITTEN", "nothing repeats"),
            ("nccl", "AS WRITTEN", "most launches are NCCL's"),
            ("settled", "AS WRITTEN", "nothing else was shown to be faster"),
        ):
            with self.subTest(state=state):
                head = "2026-11-20T20:33:53.120Z run=7f3a pid=4242 rank=0 level=info event="
                self.browser.open(self.reports.of_text(state, (
                    f'{head}start version=0.1.0 program=./engine gpu=G compute_capability=9.0 num_sms=132 driver=13.0 '
                    "simulated=yes mode=auto regions=auto timer=cupti\n"
                    f"{head}submission region=auto launches=chained state={state} run=2 most_runs=4 chained=1 held=0 "
                    "batches=0 late=0 graph_launches=0 in_graphs=0 graphs=0 images=0 kernels=0 images_left=0 "
                    "images_unneeded=0 kept_bytes=0 load_us=0\n").encode()).as_uri())
                shown = self.browser.run("return document.body.innerText")
                self.assertIn(word, shown)
                self.assertIn(sentence, shown)

    def test_a_column_sorts_both_ways_and_says_so(self):
        self.open_demo()
        for head in ("default", "winner"):
            self.click_head("#site-table", head)
            down = list(map(seconds, self.column("#site-table", head)))
            self.assertEqual(down, sorted(down, reverse=True))
            sorted_by = "return document.querySelector('#site-table th[aria-sort]').getAttribute('aria-sort')"
            self.assertEqual(self.browser.run(sorted_by), "descending")
            self.click_head("#site-table", head)
            up = list(map(seconds, self.column("#site-table", head)))
            self.assertEqual((up, self.browser.run(sorted_by)), (sorted(up), "ascending"))
        self.click_head("#site-table", "site")
        self.assertEqual(self.column("#site-table", "site"), ["attend", "project", "remember", "rotate"])

    def test_a_column_is_sorted_by_the_keyboard(self):
        self.open_demo()
        self.browser.run("document.querySelector('#site-table thead button').focus()")
        self.browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
        self.assertEqual(self.column("#site-table", "site")[0], "attend")

    def test_a_search_leaves_what_matches(self):
        self.open_demo()
        search = self.find("#site input[type=search]")
        every = self.column("#config-table", "config")
        search.send_keys("config-1")
        found = self.column("#config-table", "config")
        self.assertEqual(found, [config for config in every if "config-1" in config])
        self.assertTrue(found and len(found) < len(every))
        search.send_keys(" nothing like it")
        self.assertIn("Nothing matches", self.find("#config-table").text)
        search.clear()
        search.send_keys(Keys.SPACE)
        self.assertEqual(self.column("#config-table", "config"), every)

    def test_passes_are_filtered(self):
        self.open_demo()
        rows = "return document.querySelectorAll('#pass-table tbody tr').length"
        before = self.browser.run(rows)
        self.browser.run("document.querySelector('#passes input[type=checkbox]').click()")
        self.assertLess(self.browser.run(rows), before)

    def test_many_sites_are_searched_and_turned_over(self):
        self.browser.open(self.reports.of_ranks(2, 120, 3))
        self.browser.unroll()
        self.assertEqual(len(self.column("#site-table", "site")), 50)
        self.browser.run("[...document.querySelectorAll('#sites .pages button')].find(b => b.textContent === 'Next').click()")
        self.assertIn("softmax_forward_51", self.column("#site-table", "site"))
        self.find("#sites input[type=search]").send_keys("forward_11")
        self.assertEqual(self.column("#site-table", "site"),
                         ["softmax_forward_11"] + [f"softmax_forward_{n}" for n in range(110, 120)])

    def test_an_address_names_what_it_opens(self):
        self.open_demo("#site=project")
        self.assertEqual(self.chosen_site(), "project")
        self.assertTrue(self.browser.wait("""const top = document.querySelector('#site').getBoundingClientRect().top;
                                             return top >= -2 && top < innerHeight"""))
        self.open_demo("#timeline")
        self.assertTrue(self.browser.wait("return document.querySelector('#timeline').getBoundingClientRect().top < innerHeight"))
        self.browser.run("location.hash = '#site=attend'")
        self.browser.wait("return document.querySelector('#site h3 .name').textContent === 'attend'")

    def test_an_address_of_nothing_does_no_harm(self):
        for address in ("#site=nobody", "#job=99&region=x", "#site=%00%ff%", "#<img src=x onerror=alert(1)>",
                        "#__proto__", "#site=__proto__&region=constructor", "#" + 5000 * "a"):
            with self.subTest(address[:40]):
                self.open_demo(address)
                self.browser.unroll()
                self.assertEqual(self.chosen_site(), "rotate")
                self.assertEqual(self.browser.run("return window.alerts"), [])

    def test_what_is_chosen_is_in_the_address_that_is_copied(self):
        self.open_demo()
        self.find("#site-table tbody tr:nth-child(4) button").click()
        address = self.browser.run("return location.href")
        self.assertIn("#site=project", address)
        self.browser.open(address)
        self.browser.wait("return document.querySelector('#site h3 .name')")
        self.assertEqual(self.chosen_site(), "project")

    def test_copying(self):
        self.open_demo()
        # Files have no clipboard that can be read: what was copied is what a field takes when it is pasted.
        self.browser.run("""const field = document.createElement('textarea');
                            field.id = 'pasted'; document.body.append(field);""")
        for button, text in (("#environment button.copy", "contextune_demo --rows 64"), ("#site button.copy", "rotate ")):
            self.browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", button)
            self.find(button).click()
            self.browser.wait("return document.querySelector(arguments[0]).textContent === 'Copied'", button)
            field = self.find("#pasted")
            field.clear()
            field.send_keys(Keys.CONTROL, "v")
            self.assertIn(text, field.get_attribute("value"))

    def test_the_theme_follows_the_system_until_it_is_chosen(self):
        ground = "return getComputedStyle(document.body).backgroundColor"
        colours = {}
        for scheme in ("light", "dark"):
            self.browser.look(SIZES["desk"], scheme)
            self.open_demo()
            colours[scheme] = self.browser.run(ground)
        self.assertNotEqual(colours["light"], colours["dark"])
        self.find("#theme").click()
        self.assertEqual(self.browser.run(ground), colours["light"])
        self.find("#theme").click()
        self.browser.look(SIZES["desk"], "light")
        self.assertEqual(self.browser.run(ground), colours["dark"])
        self.find("#theme").click()
        self.assertEqual(self.browser.run(ground), colours["light"])

    def test_it_prints_all_of_itself_on_white(self):
        for page in (self.reports.demo, self.reports.many_ranks):
            self.browser.look(SIZES["desk"], "dark")
            self.browser.open(page)
            printed = self.browser.printed()
            self.assertTrue(printed.startswith(b"%PDF-") and printed.rstrip().endswith(b"%%EOF"))
            self.assertGreater(printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page "), 1)
            self.assertEqual(self.browser.run("return document.querySelectorAll('section .later').length"), 0)


if __name__ == "__main__":
    unittest.main()
