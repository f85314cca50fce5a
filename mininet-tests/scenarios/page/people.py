"""People at the page: each role, in a group's name and within its quotas, and by their institution."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controller.security import pki_files
from controller.security.tokens import Role
from controller.tests.issuer import AUDIENCE, CLIENT, SECRET, serving_issuer
from mininet_tests.scenarios.page.browser import PATIENCE_S, Browser
from mininet_tests.scenarios.page.visit import Steps, Visit
from mininet_tests.testing.aims import Aim, equal
from mininet_tests.testing.eventually import eventually
from topology.certificates import REST_URI, Kind
from topology.units import shown_time

GROUP = "lsst"
ASKED = "100 Mbit/s"
QUOTAS = {f"group:{GROUP}": {"rate": "300 Mbit/s", "entries": 9}}
DAYS = 2


@contextmanager
def institution(folder: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """Give an issuer of OpenID Connect on loopback, as the section ``oidc`` of a configuration; and its certificate."""
    pki = folder / "institution"
    pki_files.init(pki, "institution", pki_files.now(), DAYS)
    made = pki_files.make(pki, Kind.REST, ("127.0.0.1", REST_URI), pki_files.now(), DAYS)
    secret = folder / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    with serving_issuer(made.certificate, made.key, pki / "ca.pem") as there:
        trusted = {"authority": str(pki / "ca.pem"), "client": CLIENT, "secret": str(secret)}
        yield {"issuer": there.issuer, "audience": AUDIENCE, "groups": {GROUP: "reserve"}, **trusted}, made.certificate


class People:
    """Who they are, and what the page offers each."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._window: Browser = visit.window
        self._aims: dict[str, Aim] = visit.aims

    def steps(self) -> Steps:
        """Return the steps, in order."""
        return (self.roles, self.in_a_group_s_name, self.by_their_institution)

    def roles(self) -> None:
        """Log in and out as each role, and see what is offered."""
        window, visit = self._window, self._visit
        theirs = self._reservation_of("token:operate")
        for role, token in visit.tokens.items():
            visit.log_in(token)
            self._aims[f"{role} is named"] = equal(f"token:{role}, {role}" in window.text(".who"), True)
            self._aims[f"{role} is offered to reserve"] = self._offered("#reserve", role, Role.RESERVE)
            window.open(theirs)
            self._aims[f"{role} is offered to release what is another's"] = self._offered(
                "[data-act=release]", role, Role.OPERATE
            )
            shown = int("Who has changed it" in window.text())
            self._aims[f"{role} is shown who has changed it"] = equal(shown, int(role.includes(Role.ADMIN)))
            window.open("/circuits/chile-illinois")
            self._aims[f"{role} is offered to plan maintenance"] = self._offered("#maintain", role, Role.OPERATE)
            visit.log_out()
        visit.log_in("hw_none_at_all", works=False)
        self._aims["a token of nobody"] = equal("none of ours" in window.text("#answer"), True)

    def _offered(self, selector: str, role: Role, least: Role) -> Aim:
        return equal(len(self._window.every(selector)), int(role.includes(least)))

    def _reservation_of(self, owner: str) -> str:
        """Reserve in somebody's name, as an operator's script does; return the path of its page."""
        start = datetime.now(UTC) + timedelta(hours=20)
        body: dict[str, Any] = {
            "from": "la-serena",
            "to": "champaign",
            "class": "urgent",
            "rate": "1 Mbit/s",
            "owner": owner,
        }
        body |= {"start": shown_time(int(start.timestamp() * 1e6)), "duration_s": 600, "commit": True}
        token = {"Authorization": f"Bearer {self._visit.tokens[Role.OPERATE]}"}
        answer = self._visit.site.asks("POST", "/v1/reservations", json=body, headers=token)
        answer.raise_for_status()
        return f"/reservations/{answer.json()['id']}"

    def in_a_group_s_name(self) -> None:
        """Reserve for one's group: what is left of its quota is said before and after, and when it is not enough."""
        window, visit = self._window, self._visit
        visit.log_in(visit.tokens[Role.RESERVE])
        window.shows(f"group:{GROUP} has left: 300 Mbit/s, 9 promises", "#left")
        window.drag("svg.calendar", 0.62, 0.66)
        window.choose("select[name=owner]", f"group:{GROUP}")
        window.write("input[name=rate]", ASKED)
        window.click("#reserve button")
        window.shows("held: 100 Mbit/s", "#answer")
        window.click("#commit")
        window.shows("committed: ", "#answer")
        window.shows(f"group:{GROUP} has left: 200 Mbit/s, 8 promises", "#left")
        window.write("input[name=rate]", "250 Mbit/s")
        window.click("#reserve button")
        window.shows("409: ", "#answer")
        said = window.text("#answer")
        self._aims["what is beyond a quota is said with what is left"] = equal("200 Mbit/s" in said, True)
        window.open(visit.latest())
        self._aims["its page names the group"] = equal(f"Owner\ngroup:{GROUP}" in window.text("dl"), True)
        self._aims["who is in the group may release it"] = equal(len(window.every("[data-act=release]")), 1)
        visit.log_out()

    def by_their_institution(self) -> None:
        """Log in at the issuer, be somebody of its group, see what is the group's, and log out."""
        window = self._window
        window.open("/login")
        window.click("#oidc")
        eventually(lambda: window.every("#log-out"), within_s=PATIENCE_S, what="the institution has led back")
        self._aims["who comes from an institution is named"] = equal("#ana-4711, reserve" in window.text(".who"), True)
        window.shows(f"group:{GROUP} has left: 200 Mbit/s", "#left")
        window.open(self._visit.latest())
        self._aims["her group's is hers to release"] = equal(len(window.every("[data-act=release]")), 1)
        cookies = window.cookies()
        self._aims["no script reads a session"] = equal([c["httpOnly"] for c in cookies], [True] * len(cookies))
        window.open("/")
        self._visit.log_out()
        window.open("/login")
        self._aims["after it nobody is logged in"] = equal(len(window.every("#log-in")), 1)
