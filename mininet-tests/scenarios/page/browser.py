"""Chromium, driven as a person would: what it shows, what it logs, and what axe-core finds."""

import contextlib
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from axe_core_python.selenium import Axe
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from mininet_tests.testing.eventually import eventually

REPLACED_AT_MOST = 20  # times that the page draws an element anew just while it is used
PATIENCE_S = 60.0  # a busy machine draws a page in many seconds; an aim of time measures it
SIZES = {"wide": (1280, 800), "narrow": (390, 844)}
THEMES = ("light", "dark")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # it is root's, and alone in its namespaces
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
)


# A picture's text is as large as its picture makes it.
SMALLEST_TEXT = """
const seen = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const place = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !place.getClientRects().length || place.closest("title")) continue;
  const scale = place instanceof SVGElement ? place.getScreenCTM().a : 1;
  seen.push(parseFloat(getComputedStyle(place).fontSize) * scale);
}
return seen.length ? Math.min(...seen) : 0;
"""


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self._driver = driver
        self._url = url

    def open(self, path: str) -> None:
        """Go to a page."""
        self._driver.get(self._url + path)

    def look(self, size: str, theme: str) -> None:
        """Look at the page in another size and theme."""
        width, height = SIZES[size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def one(self, selector: str) -> WebElement:
        """Return an element, once the page has it: forms are drawn when what they are about is known.

        Raises:
            AssertionError: it has none.
        """
        eventually(lambda: self.every(selector), within_s=PATIENCE_S, what=f"the page has {selector}")
        return self._driver.find_element(By.CSS_SELECTOR, selector)

    def every(self, selector: str) -> list[WebElement]:
        """Return all elements of a kind."""
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "body") -> str:
        """Return what stands in an element, as somebody reads it; empty if there is none."""
        return "\n".join(str(found.text) for found in self.every(selector)[:1])

    def shows(self, words: str, selector: str = "body", within_s: float = PATIENCE_S) -> None:
        """Wait until words stand somewhere.

        Raises:
            AssertionError: they do not.
        """
        try:
            eventually(lambda: words in self.fresh(selector), within_s=within_s, what=f'the page shows "{words}"')
        except AssertionError as missed:
            raise AssertionError(f"{missed}; it shows: {self.fresh(selector)}") from None

    def fresh(self, selector: str) -> str:
        """Return the text of an element that may just be replaced."""
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(self._driver.execute_script(script, selector))

    def each_said(self, selector: str, attribute: str = "") -> list[str]:
        """Return what every element of a kind says at one moment, or an attribute of it; they may just be replaced."""
        of = "e.getAttribute(arguments[1])" if attribute else "e.innerText"
        script = f"return [...document.querySelectorAll(arguments[0])].map(e => {of} ?? '')"
        return [str(one) for one in self._driver.execute_script(script, selector, attribute)]

    def on(self, selector: str, act: Callable[[WebElement], None]) -> None:
        """Do something to an element; again with the one in its place if the page has just replaced it."""
        for _ in range(REPLACED_AT_MOST):
            with contextlib.suppress(StaleElementReferenceException):
                act(self.one(selector))
                return
        act(self.one(selector))

    def click(self, selector: str) -> None:
        """Click on an element."""
        self.on(selector, lambda element: element.click())

    def confirm(self) -> str:
        """Say yes to what is asked; return what that was."""
        alert = self._driver.switch_to.alert
        text = str(alert.text)
        alert.accept()
        return text

    def write(self, selector: str, text: str) -> None:
        """Write into a field."""

        def written(field: WebElement) -> None:
            field.clear()
            field.send_keys(text)

        self.on(selector, written)

    def choose(self, selector: str, text: str) -> None:
        """Choose one of a list."""
        Select(self.one(selector)).select_by_visible_text(text)

    def drag(self, selector: str, from_part: float, to_part: float) -> None:
        """Drag over an element, from one part of its width to another."""

        def dragged(element: WebElement) -> None:
            self._driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
            width = element.rect["width"]
            start, end = (int(width * (part - 0.5)) for part in (from_part, to_part))
            moves = ActionChains(self._driver, duration=100).move_to_element_with_offset(element, start, 20)
            moves.click_and_hold().move_by_offset((end - start) // 2, 0).move_by_offset((end - start) // 2, 0)
            moves.release().perform()

        self.on(selector, dragged)

    def scroll(self, selector: str) -> None:
        """Scroll by a finger that begins on an element, and goes up and a little to the right."""

        def scrolled(element: WebElement) -> None:
            self._driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
            box = self._driver.execute_script(
                "const b = arguments[0].getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]",
                element,
            )
            for step in range(12):
                at = [{"x": box[0] + 3 * step, "y": box[1] - 10 * step}]
                kind = "touchMove" if step else "touchStart"
                self._driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
            self._driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            ActionChains(self._driver).move_to_element_with_offset(element, 40, 20).perform()  # no button is down

        self.on(selector, scrolled)

    def keys(self, *keys: str) -> None:
        """Press keys."""
        ActionChains(self._driver).send_keys(*keys).perform()

    def focused(self) -> str:
        """Return what has the focus, in words."""
        script = "const e = document.activeElement; return e.getAttribute('aria-label') ?? e.innerText ?? e.tagName"
        return str(self._driver.execute_script(script)).strip()

    def tab_to(self, selector: str, most: int = 80) -> None:
        """Press Tab until an element has the focus.

        Raises:
            AssertionError: it is not reached by so many.
        """
        script = "return document.activeElement.matches(arguments[0])"
        for _ in range(most):
            self.keys("\ue004")
            if self._driver.execute_script(script, selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    def cookies(self) -> list[dict[str, Any]]:
        """Return the cookies of this page."""
        return list(self._driver.get_cookies())

    def smallest_text_px(self) -> float:
        """Return the size of the smallest text that is seen, as it is seen; 0 if there is none."""
        return float(self._driver.execute_script(SMALLEST_TEXT))

    def below_px(self) -> float:
        """Return how far the screen's last part ends below what is seen, pixels; 0 if all is seen at once."""
        script = "return document.querySelector('#screen > :last-child').getBoundingClientRect().bottom - innerHeight"
        return max(0.0, float(self._driver.execute_script(script)))

    def complaints(self) -> list[str]:
        """Return what the console has said since it was asked last."""
        return [f"{one['level']}: {one['message']}" for one in self._driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def loaded(self) -> list[str]:
        """Return the addresses of all that this page has loaded."""
        script = "return performance.getEntriesByType('resource').map(e => e.name)"
        return [str(one) for one in self._driver.execute_script(script)]

    def violations(self) -> list[str]:
        """Return what axe-core finds that keeps somebody from using the page."""
        found = Axe().run(self._driver)["violations"]
        return [f"{v['id']}: {node['html'][:200]}" for v in found for node in v["nodes"]]

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Save what is seen; or the whole page."""
        if whole:
            height = self._driver.execute_script("return document.documentElement.scrollHeight")
            width = self._driver.execute_script("return window.innerWidth")
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self._driver.save_screenshot(str(file))


def trusting(certificate: Path) -> str:
    """Return the flag by which Chromium trusts a certificate, and no other that it does not know."""
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    info = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"--ignore-certificate-errors-spki-list={b64encode(sha256(info).digest()).decode()}"


@contextlib.contextmanager
def browser(url: str, *more: str) -> Iterator[Browser]:
    """Give a window of Chromium, with more flags; it is closed afterwards."""
    options = Options()
    for flag in (*FLAGS, *more):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver, url)
    finally:
        driver.quit()
