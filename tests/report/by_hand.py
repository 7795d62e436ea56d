"""Screenshots of a page, or of the address that `contextune report --follow` prints, for people to look at.

Usage: CONTEXTUNE_TEST_BUILD=build/release build/browser/bin/python tests/report/by_hand.py PAGE FOLDER
"""

import pathlib
import sys

from browser import SCHEMES, SIZES, Browser


def main(page, folder):
    address = page if "://" in page else pathlib.Path(page).resolve().as_uri()
    browser = Browser()
    for name, size in (SIZES | {"wall": (3840, 2160)}).items():
        for scheme in SCHEMES:
            browser.look(size, scheme)
            browser.open(address)
            browser.screenshot(pathlib.Path(folder) / f"{name}_{scheme}.png")
            browser.unroll()
            browser.screenshot(pathlib.Path(folder) / f"{name}_{scheme}_whole.png", whole=True)
    browser.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
