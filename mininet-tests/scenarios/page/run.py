"""What an operator and an astronomer see and do on the page: a real controller, a real browser, no route outside.

Run inside ``isolated.sh``. Nothing is connected to the controller: its headline says so. Each step is an aim of
``report.json``; ``wide-light.png`` and the others are what was seen.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from controller.security.token_file import write_tokens
from controller.security.tokens import Role, new_token
from mininet_tests.scenarios.page.browser import SIZES, THEMES, Browser, browser
from mininet_tests.scenarios.page.headline import headlines
from mininet_tests.site.running import Running, running
from mininet_tests.testing.aims import Aim, at_most, equal, none_of, stated
from mininet_tests.testing.eventually import eventually

OPEN_PAGES, FOLLOWED_S = 200, 10.0
ADDRESSES = 4  # that open pages come from: one may have no more than a quarter
STALE_WITHIN_S, BACK_WITHIN_S = 10.0, 15.0
ALL_MISSING = ("ls1: is not connected", "ch1: is not connected", "base20: its agent is not connected")
WIDE, NARROW = SIZES


class Visit:
    """A visit to a controller's page; each step leaves aims."""

    def __init__(self, out: Path, site: Running, window: Browser, tokens: dict[Role, str]) -> None:
        self._out = out
        self._site = site
        self._window = window
        self._tokens = tokens
        self.aims: dict[str, Aim] = {}

    def steps(self) -> tuple[Callable[[], None], ...]:
        """Return the steps, in order."""
        return (
            self.headline,
            self.roles,
            self.reserved,
            self.offer,
            self.changed,
            self.released,
            self.accessible,
            self.console,
            self.dead_and_back,
        )

    def headline(self) -> None:
        """Read the one sentence, and what it counts."""
        window = self._window
        window.open("/")
        window.shows("things need you.", "#headline h1", within_s=45)  # a start gives all others 30 s to call
        said = window.text("#headline")
        self.aims["headline says all that is missing"] = none_of([one for one in ALL_MISSING if one not in said])
        counted = int(window.text("#headline h1").split()[-4])
        self.aims["headline counts what it lists"] = equal(counted, len(window.every("ul.needs > li")))

    def roles(self) -> None:
        """Log in and out as each role."""
        window = self._window
        for role, token in self._tokens.items():
            self._log_in(token)
            self.aims[f"{role} is named"] = equal(f"token:{role}, {role}" in window.text(".who"), True)
            may = role.includes(Role.RESERVE)
            self.aims[f"{role} is offered to reserve"] = equal(len(window.every("#reserve")), int(may))
            window.click("#log-out")
            eventually(lambda: not window.every("#log-out"), within_s=5, what="the page is nobody's again")
        self._log_in("hw_none_at_all", works=False)
        self.aims["a token of nobody"] = equal("none of ours" in window.text("#answer"), True)

    def _log_in(self, token: str, *, works: bool = True) -> None:
        window = self._window
        window.open("/login")
        window.write("input[name=token]", token)
        window.click("#log-in button")
        if works:
            eventually(lambda: window.every("#log-out"), within_s=5, what="the page is somebody's")
        else:
            window.shows("token", "#answer", 5)

    def reserved(self) -> None:
        """Reserve by dragging over the calendar, hold, and commit."""
        window = self._window
        self._log_in(self._tokens[Role.OPERATE])
        window.drag("svg.calendar", 0.5, 0.6)
        start = str(window.one("input[name=start]").get_attribute("value"))
        end = str(window.one("input[name=end]").get_attribute("value"))
        hours = (datetime.fromisoformat(end) - datetime.fromisoformat(start)) / timedelta(hours=1)
        self.aims["hours that were dragged, of 19"] = Aim("18 to 21", hours, 18 <= hours <= 21)
        window.shows("free all the time", "#free")
        window.write("input[name=rate]", "100 Mbit/s")
        window.write("input[name=description]", "a night's raw images")
        window.click("#reserve button")
        window.shows("held: 100 Mbit/s", "#answer")
        self.aims["the same for a script is said"] = equal("curl -X POST" in window.text("#answer"), True)
        window.click("#commit")
        window.shows("committed: ", "#answer")
        eventually(lambda: window.every("svg.calendar .kept"), within_s=10, what="the calendar shows it")
        about = str(window.one("svg.calendar a").get_attribute("aria-label"))
        self.aims["the calendar says it in words"] = equal("a night's raw images" in about, True)

    def offer(self) -> None:
        """Ask for too much, and take what is offered."""
        window = self._window
        window.write("input[name=rate]", "20 Gbit/s")
        window.click("#reserve button")
        window.shows("409: ", "#answer")
        window.click("button.offer")
        window.shows("held: ", "#answer")
        window.click("#commit")
        window.shows("committed: ", "#answer")
        self.aims["an offer is granted"] = equal("committed: " in window.text("#answer"), True)

    def changed(self) -> None:
        """Change it on its own page: to more than there is, to what is offered instead, and to less."""
        window = self._window
        window.open(self._latest())
        window.write("input[name=rate]", "20 Gbit/s")
        window.click("#change button")
        window.shows("409: ", "#answer")
        window.click("button.offer")
        window.shows("Changed: ", "#answer")
        window.write("input[name=rate]", "50 Mbit/s")
        window.click("#change button")
        window.shows("Changed: 50 Mbit/s", "#answer")
        known = httpx.get(f"{self._site.url}/v1{self._latest()}").json()
        self.aims["a change is made, and a refused one leads to an offer"] = equal(known["rate_bps"], 50_000_000)
        self.aims["a change for a script is said"] = equal("curl -X PATCH" in window.text("#answer"), True)

    def released(self) -> None:
        """Release it again on its own page, after a confirmation."""
        window = self._window
        window.open(self._latest())
        window.click("button[data-act=release]")
        asked = window.confirm()
        self.aims["what is released is named before"] = equal("Release reservation " in asked, True)
        window.shows("released", "#answer")

    def _latest(self) -> str:
        held = httpx.get(f"{self._site.url}/v1/reservations?state=committed").json()["reservations"]
        return f"/reservations/{held[-1]['id']}"

    def accessible(self) -> None:
        """Look at the screen in both sizes and themes, and have axe-core look; reach the first link by keyboard."""
        window = self._window
        found: list[str] = []
        for size in SIZES:
            for theme in THEMES:
                window.look(size, theme)
                window.open("/")
                window.shows("things need you.", "#headline h1")
                found += [f"{size} {theme}: {one}" for one in window.violations()]
                window.picture(self._out / f"{size}-{theme}.png")
        window.look(WIDE, THEMES[0])
        for path in (
            "/circuits/chile-illinois",
            "/switches/ls1",
            "/hosts/base20",
            "/transitions",
            "/events",
            self._latest(),
        ):
            window.open(path)
            found += [f"{path}: {one}" for one in window.violations()]
        window.open("/")
        window.keys("\ue004")  # Tab
        self.aims["axe-core finds nothing"] = none_of(found)
        self.aims["the first thing that Tab reaches"] = equal(window.focused(), "Headway")

    def console(self) -> None:
        """See what the browser has said, and from where it has loaded."""
        elsewhere = [one for one in self._window.loaded() if not one.startswith(self._site.url)]
        asked_for = ("401 (Unauthorized)", "409 (Conflict)")  # a token of nobody, and a refusal
        told = [one for one in self._window.complaints() if not any(words in one for words in asked_for)]
        self.aims["console is empty"] = none_of(told)
        self.aims["nothing is loaded from elsewhere"] = none_of(elsewhere)

    def dead_and_back(self) -> None:
        """Kill the controller, see the page say so, start it again and see the page go on by itself."""
        window = self._window
        self._site.end(signal.SIGKILL)
        began_s = time.monotonic()
        window.shows("No news since", "#stale", STALE_WITHIN_S)
        self.aims["seconds until a dead controller is said"] = at_most(time.monotonic() - began_s, STALE_WITHIN_S)
        self._site.start()
        began_s = time.monotonic()
        eventually(lambda: not window.fresh("#stale"), within_s=BACK_WITHIN_S, what="the page has news again")
        self.aims["seconds until it goes on"] = at_most(time.monotonic() - began_s, BACK_WITHIN_S)
        self.aims["who was logged in still is"] = equal(len(window.every("#log-out")), 1)


def run(out: Path, *, pages: int) -> dict[str, Any]:
    """Return what was seen; ``pages`` open at once, 0 for not to measure what they cost."""
    now = datetime.now(UTC)
    made = {role: new_token(role.value, role, now, now + timedelta(hours=2)) for role in Role}
    write_tokens(out / "tokens", tuple(kept for _, kept in made.values()))
    access = {"tokens": str(out / "tokens"), "local": "read"}
    timings: dict[str, float] = {}
    with running(out, f"sqlite:///{out}/headway.db", access=access) as site:
        with TemporaryDirectory() as folder:  # meanwhile the site's own start passes, in which nobody is missing yet
            said, said_s = headlines(Path(folder))
        with browser(site.url) as window:
            visit = Visit(out, site, window, {role: token for role, (token, _) in made.items()})
            for step in visit.steps():
                began_s = time.monotonic()
                step()
                timings[step.__name__] = round(time.monotonic() - began_s, 2)
                print(f"{step.__name__}: {timings[step.__name__]} s", flush=True)
        cost = asyncio.run(_cost(site, pages)) if pages else None
    aims = visit.aims | said | ({} if cost is None else {"core that open pages take": at_most(cost["core"], 0.1)})
    return {"seconds": timings, "headline_s": said_s, "cost": cost, **stated(aims)}


async def _cost(site: Running, pages: int) -> dict[str, Any]:
    """Return what open pages cost the controller, each following what changes once a second."""
    before = await _cpu_share(site)
    port = int(site.url.rpartition(":")[2])
    writers, readers = [], []
    for number in range(pages):
        address = f"127.0.0.{2 + number % ADDRESSES}"
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        writers.append(writer)
        readers.append(asyncio.create_task(_counted(reader)))
    await asyncio.sleep(2.0)
    share = await _cpu_share(site)
    for writer in writers:
        writer.close()
    heard = await asyncio.gather(*readers)
    return {"pages": pages, "core": round(share - before, 4), "core_before": round(before, 4), "bytes": sum(heard)}


async def _counted(reader: asyncio.StreamReader) -> int:
    got = 0
    try:
        while piece := await reader.read(1 << 16):
            got += len(piece)
    except OSError:
        pass
    return got


async def _cpu_share(site: Running) -> float:
    """Return how much of a core the controller takes."""
    began_s, before_s = time.monotonic(), _cpu_s(site.pid)
    await asyncio.sleep(FOLLOWED_S)
    return (_cpu_s(site.pid) - before_s) / (time.monotonic() - began_s)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Write the report; exit with 1 if an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and pictures")
    parser.add_argument("--pages", type=int, default=OPEN_PAGES, help="open at once; 0: their cost is not measured")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    report = run(arguments.out.resolve(), pages=arguments.pages)
    (arguments.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report["aims"], indent=1))
    sys.exit(bool(report["falls_short"]))


if __name__ == "__main__":
    main()
