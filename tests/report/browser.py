"""A headless Chromium that shows pages to tests: what it says of them, and what it looks like."""

import base64
import json
import os
import pathlib
import shutil
import time
import urllib.parse

import axe_playwright_python
from selenium import webdriver

PATIENCE = 30.0
SIZES = {"phone": (400, 800), "desk": (1280, 900)}
SCHEMES = ("light", "dark")
# The package wants Playwright, which brings a browser of its own; its copy of axe is all that is used.
AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
# Before any script of a page: what a name with markup in it would call is noted, and does not block.
NOTE_ALERTS = "window.alerts = []; window.alert = window.confirm = window.prompt = text => window.alerts.push(text);"


class Browser:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        # Tests run as root in containers, which have no sandbox and little shared memory.
        for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--force-device-scale-factor=1", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        self.driver.set_script_timeout(PATIENCE)
        self.tell("Page.addScriptToEvaluateOnNewDocument", source=NOTE_ALERTS)

    def quit(self):
        self.driver.quit()

    def tell(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def run(self, script, *arguments):
        """The value of a script's `return`."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script, *arguments, patience=PATIENCE):
        """The first value of the script that counts as true."""
        end = time.monotonic() + patience
        while not (value := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {script}")
            time.sleep(0.02)
        return value

    def look(self, size=SIZES["desk"], scheme="light"):
        """Sets what the page is shown in."""
        self.tell("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def open(self, address):
        """Opens a file or an address and forgets what was said before."""
        self.driver.get("about:blank")
        self.said()
        self.requests()
        self.driver.get(address if isinstance(address, str) else address.as_uri())

    def unroll(self):
        """Has all parts of the page drawn, as they are before it is printed."""
        self.run("for (const one of ['beforeprint', 'afterprint']) window.dispatchEvent(new Event(one))")

    def scroll_through(self):
        """Has all parts of the page drawn, as they are when they are scrolled to."""
        self.driver.execute_async_script("""
            const done = arguments[arguments.length - 1];
            const frame = () => new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)));
            (async () => {
              for (const section of document.querySelectorAll('main section')) {
                section.scrollIntoView();
                await frame();
              }
              scrollTo(0, 0);
              await frame();
              done();
            })();""")

    def said(self):
        """What the console has shown since it was asked last."""
        return [f'{one["level"]}: {one["message"]}' for one in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that were asked for since then."""
        messages = [json.loads(one["message"])["message"] for one in self.driver.get_log("performance")]
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]

    def requests_elsewhere(self, address):
        own = address if isinstance(address, str) else address.as_uri()
        return [one for one in self.requests()
                if urllib.parse.urldefrag(one).url != own and not one.startswith(("data:", "blob:", "about:"))]

    def violations(self):
        """What axe finds, a line each: the rule, why, and where."""
        if not self.run("return !!window.axe"):
            self.run(AXE + "; window.axe = axe;")
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(result => done(result.violations),"
            "                                                       error => done([{id: String(error), nodes: []}]));")
        return [f'{one["id"]}: {one.get("help")}: {[node["html"][:200] for node in one["nodes"][:3]]} '
                f'{one["nodes"][0].get("failureSummary", "") if one["nodes"] else ""}' for one in found]

    def excess_width(self):
        """Pixels by which the page is wider than what it is shown in."""
        return self.run("return document.documentElement.scrollWidth - innerWidth")

    def screenshot(self, path, whole=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        shot = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def printed(self):
        """The page as PDF, as it would be printed."""
        return base64.b64decode(self.tell("Page.printToPDF", printBackground=True)["data"])


def shots_folder():
    """Where screenshots stay, for people to look at."""
    return pathlib.Path(os.environ["CONTEXTUNE_TEST_BUILD"]) / "tests" / "report" / "screenshots"
