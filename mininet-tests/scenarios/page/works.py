"""Maintenance at the page: what it would break is said first; then it is planned, drawn, and taken back."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial

from controller.security.tokens import Role
from mininet_tests.scenarios.page.browser import PATIENCE_S
from mininet_tests.scenarios.page.visit import Steps, Visit
from mininet_tests.site.command import HEADWAY
from mininet_tests.testing.aims import equal
from mininet_tests.testing.eventually import eventually
from topology.units import shown_time

CIRCUIT = "chile-illinois"
PAGE = f"/circuits/{CIRCUIT}"


class Works:
    """What an operator does for a crew that will work on the circuit, and for a second one."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._window = visit.window

    def steps(self) -> Steps:
        """Return the steps, in order."""
        return (self.if_it_dies, self.planned, self.under_way, self.taken_back)

    def if_it_dies(self) -> None:
        """Ask what the circuit's death would break: on its page, and at a terminal."""
        window, aims = self._window, self._visit.aims
        known = self._visit.latest().rpartition("/")[2]
        window.open(PAGE)
        window.click("#what-if")
        window.shows("If it dies at ", "#answer")
        said = window.text("#answer")
        aims["what its death would break is said on its page"] = equal(f"Breaks reservation {known}" in said, True)
        aims["its death for a script is said"] = equal(f"/v1/what-if/{CIRCUIT}" in said, True)
        command = [str(HEADWAY), "what-if", "--live", self._visit.site.url, "--kill", CIRCUIT, "--json"]
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        as_it_is, dead = json.loads(ran.stdout)["variants"] if ran.stdout else ({}, {})
        broken = {one["name"] for one in dead.get("broken", ())} - {one["name"] for one in as_it_is.get("broken", ())}
        shown = {to.rpartition("/")[2] for to in window.each_said("#answer p a", "href")}
        aims["a terminal says the same, and ends with 4"] = equal([sorted(broken), ran.returncode], [sorted(shown), 4])

    def planned(self) -> None:
        """See what it breaks, plan it all the same, and find it in the calendar."""
        window, aims = self._window, self._visit.aims
        self._visit.log_in(self._visit.tokens[Role.OPERATE])
        broken = self._visit.latest()
        known = self._visit.site.asks("GET", f"/v1{broken}").json()
        window.open(PAGE)
        self._asks_for(datetime.fromisoformat(known["start"]), timedelta(hours=1), "splicing")
        window.shows("Would break ", "#answer")
        said = window.text("#answer")
        aims["what maintenance would break is said first"] = equal(known["id"] in said, True)
        aims["nothing is planned by looking"] = equal(self._count(), 0)
        aims["maintenance for a script is said"] = equal("curl -X POST" in said and "only_look" in said, True)
        window.click("#plan-it")
        window.shows("It is planned.", "#answer")
        window.shows("splicing", "#planned")
        aims["maintenance is planned"] = equal(self._count(), 1)
        window.open("/")
        eventually(lambda: window.every("svg.calendar .lesser"), within_s=PATIENCE_S, what="the calendar shows it")
        about = window.each_said("svg.calendar a", "aria-label")
        said_once = [one for one in about if one.startswith("maintenance splicing: nothing goes by")]
        aims["each calendar says maintenance in words"] = equal(len(said_once), len(window.every("svg.calendar")))

    def under_way(self) -> None:
        """Plan one that begins now: the map and the circuit's page say so; a second crew's is planned beside it."""
        window, aims = self._window, self._visit.aims
        now = datetime.now(UTC)
        window.open(PAGE)
        self._asks_for(now, timedelta(hours=2), "a new amplifier")
        window.shows("The same for a script", "#answer")
        window.click("#plan-it")
        window.shows("a new amplifier", "#planned")
        self._asks_for(now + timedelta(hours=1), timedelta(hours=2), "the second crew")
        window.shows("Beside another", "#answer")
        aims["another at the same time is named"] = equal("a new amplifier" in window.text("#answer"), True)
        window.click("#plan-it")
        window.shows("the second crew", "#planned")
        window.open("/")
        window.shows("maintenance until ", "#map")
        aims["the map says until when"] = equal(len(window.every("#map .wide .worked-on")), 1)
        window.open(PAGE)
        aims["the circuit's page says so"] = equal(window.text("h1 .state"), "maintenance")

    def taken_back(self) -> None:
        """Take all of it back."""
        window, aims = self._window, self._visit.aims
        asked = ""
        for left in (2, 1, 0):
            window.click("#planned button")
            asked = window.confirm()
            eventually(partial(self._is_left, left), within_s=PATIENCE_S, what=f"{left} are left")
        aims["what is taken back is named before"] = equal(
            asked.startswith(f"Take back the maintenance of {CIRCUIT}"), True
        )
        aims["nothing is planned any more"] = equal(self._count(), 0)
        window.open("/")
        eventually(lambda: not window.every("#map .worked-on"), within_s=PATIENCE_S, what="the map is as before")

    def _is_left(self, count: int) -> bool:
        return len(self._window.every("#planned button")) == count

    def _asks_for(self, start: datetime, lasts: timedelta, words: str) -> None:
        window = self._window
        for name, at in (("start", start), ("end", start + lasts)):
            window.write(f"#maintain input[name={name}]", shown_time(int(at.timestamp()) * 1_000_000))
        window.write("#maintain input[name=description]", words)
        window.click("#maintain button")

    def _count(self) -> int:
        return len(self._visit.site.asks("GET", "/v1/maintenance").json())
