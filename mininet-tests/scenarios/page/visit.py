"""A visit to a controller's page: what every part of one has, and how somebody logs in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from controller.security.tokens import Role
from mininet_tests.scenarios.page.browser import PATIENCE_S, Browser
from mininet_tests.site.running import Running
from mininet_tests.testing.aims import Aim
from mininet_tests.testing.eventually import eventually

Steps = tuple[Callable[[], None], ...]


@dataclass
class Visit:
    """A visit; each step leaves aims.

    Attributes:
        out: the folder for pictures.
        site: the controller.
        window: the browser.
        tokens: one of each role; that of ``reserve`` is in the group lsst.
        aims: what was seen.
    """

    out: Path
    site: Running
    window: Browser
    tokens: dict[Role, str]
    aims: dict[str, Aim] = field(default_factory=dict)

    def log_in(self, token: str, *, works: bool = True) -> None:
        """Log in with a token, from wherever one is."""
        window = self.window
        window.open("/login")
        window.write("input[name=token]", token)
        window.click("#log-in button")
        if works:
            eventually(self._is_in, within_s=PATIENCE_S, what="the page is somebody's")
        else:
            window.shows("token", "#answer")

    def _is_in(self) -> bool:
        """Return whether the form is gone: who was somebody else before could log out all the time."""
        return bool(self.window.every("#log-out")) and not self.window.every("#log-in")

    def log_out(self) -> None:
        """Log out."""
        self.window.click("#log-out")
        eventually(lambda: not self.window.every("#log-out"), within_s=PATIENCE_S, what="the page is nobody's again")

    def latest(self) -> str:
        """Return the path of the page of the reservation that was committed last."""
        held = self.site.asks("GET", "/v1/reservations?state=committed").json()["reservations"]
        return f"/reservations/{held[-1]['id']}"
