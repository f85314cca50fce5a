"""What an operator and an astronomer see and do on the page: a real controller, a real browser, no route outside.

Run inside ``isolated.sh``. Nothing is connected to the controller: its headline says so. Each step is an aim of
``report.json``; ``wide-light.png`` and the others are what was seen.
"""

import argparse
import asyncio
import json
import os
import resource
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from controller.security.token_file import write_tokens
from controller.security.tokens import Role, new_token
from mininet_tests.scenarios.page.browser import PATIENCE_S, SIZES, THEMES, browser, trusting
from mininet_tests.scenarios.page.headline import headlines
from mininet_tests.scenarios.page.people import GROUP, QUOTAS, People, institution
from mininet_tests.scenarios.page.visit import Steps, Visit
from mininet_tests.scenarios.page.works import Works
from mininet_tests.site.running import Running, running
from mininet_tests.testing.aims import Aim, at_least, at_most, equal, none_of, stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.reports import write_report
from topology.units import rate_bps

OPEN_PAGES, FOLLOWED_S = 200, 10.0
ADDRESSES = 4  # that open pages come from: one may have no more than a quarter
STALE_WITHIN_S, BACK_WITHIN_S = 10.0, 15.0
ALL_MISSING = ("ls1: is not connected", "ch1: is not connected", "base20: its agent is not connected")
WIDE, NARROW = SIZES


class ScreenVisit:
    """The one screen and what is done on it; each step leaves aims."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._site = visit.site
        self._window = visit.window
        self.aims = visit.aims

    def reserving(self) -> Steps:
        """Return the steps in which something is reserved, in order."""
        return (self.scrolled, self.reserved, self.offer, self.changed, self.committed)

    def looking(self) -> Steps:
        """Return those that come last."""
        return (self.released, self.by_keyboard, self.headline, self.accessible, self.console, self.dead_and_back)

    def headline(self) -> None:
        """Read the one sentence, and what it counts."""
        window = self._window
        window.open("/")
        window.shows("things need you.", "#headline h1")  # a start gives all others 30 s to call
        said = window.text("#headline")
        self.aims["headline says all that is missing"] = none_of([one for one in ALL_MISSING if one not in said])
        each = window.each_said("ul.needs > li b")
        self.aims["each thing names where it is"] = none_of([one for one in each if ": " not in one])
        counted = int(window.fresh("#headline h1").split()[-4])
        self.aims["headline counts what it lists"] = equal(counted, len(window.every("ul.needs > li")))

    def scrolled(self) -> None:
        """Scroll by a finger over a calendar, as somebody does who reserves nothing."""
        window = self._window
        self._visit.log_in(self._visit.tokens[Role.OPERATE])
        window.scroll("svg.calendar")
        self.aims["a finger that scrolls picks no time"] = equal(len(window.every("svg.calendar .picked")), 0)

    def reserved(self) -> None:
        """Reserve by dragging over the calendar, hold, and commit."""
        window = self._window
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
        words = shlex.split(window.text("#answer code"))
        typed = json.loads(words[words.index("-d") + 1])["description"] if "-d" in words else None
        self.aims["a script sends the words as they were typed"] = equal(typed, "a night's raw images")
        window.click("#commit")
        window.shows("committed: ", "#answer")
        said = 'svg.calendar a[aria-label*="a night\'s raw images"] .kept'
        eventually(lambda: window.every(said), within_s=PATIENCE_S, what="the calendar shows it, and says it in words")
        self.aims["the calendar says it in words"] = equal(len(window.every(said)), 1)

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
        window.open(self._visit.latest())
        window.write("input[name=rate]", "20 Gbit/s")
        window.write("input[name=description]", "night 2")
        window.click("#change button")
        window.shows("409: ", "#answer")
        window.click("button.offer")
        window.shows("Changed: ", "#answer")
        known = self._site.asks("GET", f"/v1{self._visit.latest()}").json()
        self.aims["whoever takes an offer changes the words too"] = equal(known["description"], "night 2")
        fields = [window.one(f"#change input[name={name}]") for name in ("rate", "start", "end", "description")]
        rate, *others = [field.get_attribute("value") for field in fields]
        now = [known[name] for name in ("rate_bps", "start", "end", "description")]
        self.aims["its page has what it is now"] = equal([rate_bps(rate or ""), *others], now)
        window.write("input[name=rate]", "50 Mbit/s")
        window.click("#change button")
        window.shows("Changed: 50 Mbit/s", "#answer")
        known = self._site.asks("GET", f"/v1{self._visit.latest()}").json()
        self.aims["a change is made, and a refused one leads to an offer"] = equal(known["rate_bps"], 50_000_000)
        self.aims["a change for a script is said"] = equal("curl -X PATCH" in window.text("#answer"), True)

    def committed(self) -> None:
        """Commit on its own page what is held, change it there at once, and release it."""
        window = self._window
        window.open("/")
        for name, text in self._an_hour("3 Mbit/s").items():
            window.write(f"#reserve input[name={name}]", text)
        window.click("#reserve button")
        window.shows("held: 3 Mbit/s", "#answer")
        window.click("#answer a")
        window.click("[data-act=commit]")
        window.shows("Done: committed", "#answer")
        window.write("#change input[name=description]", "committed here")
        window.click("#change button")
        window.shows("Changed: 3 Mbit/s", "#answer")
        window.click("[data-act=release]")
        window.confirm()
        window.shows("Done: released", "#answer")
        ended = "Done: released" in window.text("#answer")
        self.aims["what was committed on its page is changed and released there"] = equal(ended, True)

    def released(self) -> None:
        """Release it again on its own page, after a confirmation."""
        window = self._window
        window.open(self._visit.latest())
        window.click("button[data-act=release]")
        asked = window.confirm()
        self.aims["what is released is named before"] = equal("Release reservation " in asked, True)
        whole = "50 Mbit/s from " in asked and ", of token:operate" in asked
        self.aims["and what goes with it"] = Aim("rate, ends and owner", asked, whole)
        window.shows("released", "#answer")

    def by_keyboard(self) -> None:
        """Reserve without a mouse: every field and both buttons are reached by Tab."""
        window = self._window
        window.open("/")
        for name, text in self._an_hour("2 Mbit/s").items():
            window.tab_to(f"#reserve input[name={name}]")
            window.keys(text)  # what is there is selected, and written over
        window.tab_to("#reserve button")
        window.keys("\ue006")  # Enter
        window.shows("held: 2 Mbit/s", "#answer")
        window.tab_to("#commit")
        window.keys("\ue006")
        window.shows("committed: ", "#answer")
        self.aims["somebody reserves by keyboard alone"] = equal("committed: " in window.text("#answer"), True)

    def _an_hour(self, rate: str) -> dict[str, str]:
        """Return what is written into the form to have a rate for an hour, tomorrow."""
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=30)
        return {
            "rate": rate,
            "start": f"{start:%Y-%m-%dT%H:%M:%SZ}",
            "end": f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
        }

    def accessible(self) -> None:
        """Look at the screen in both sizes and themes, and have axe-core look; reach the first link by keyboard."""
        window = self._window
        found: list[str] = []
        small: dict[str, float] = {}
        below: dict[str, float] = {}
        for size in SIZES:
            for theme in THEMES:
                window.look(size, theme)
                window.open("/")
                window.shows("things need you.", "#headline h1")
                found += [f"{size} {theme}: {one}" for one in window.violations()]
                small[f"{size} {theme}"] = window.smallest_text_px()
                below[size] = window.below_px()
                window.picture(self._visit.out / f"{size}-{theme}.png")
        window.look(WIDE, THEMES[0])
        for path in (
            "/circuits/chile-illinois",
            "/switches/ls1",
            "/hosts/base20",
            "/transitions",
            "/login",
            "/events",
            self._visit.latest(),
        ):
            window.open(path)
            found += [f"{path}: {one}" for one in window.violations()]
            small[path] = window.smallest_text_px()
        window.open("/")
        window.keys("\ue004")  # Tab
        self.aims["axe-core finds nothing"] = none_of(found)
        self.aims["below one screen of 1280 x 800, px"] = at_most(below[WIDE], 0)
        self.aims["smallest text anywhere, px"] = at_least(min(small.values()), 12)
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
        window.shows("No news since", "#stale")
        self.aims["seconds until a dead controller is said"] = at_most(time.monotonic() - began_s, STALE_WITHIN_S)
        self._site.start()
        began_s = time.monotonic()
        eventually(lambda: not window.fresh("#stale"), within_s=PATIENCE_S, what="the page has news again")
        self.aims["seconds until it goes on"] = at_most(time.monotonic() - began_s, BACK_WITHIN_S)
        self.aims["who was logged in still is"] = equal(len(window.every("#log-out")), 1)


def run(out: Path, *, pages: int) -> dict[str, Any]:
    """Return what was seen; ``pages`` open at once, 0 for not to measure what they cost."""
    now = datetime.now(UTC)
    groups = {Role.RESERVE: (GROUP,)}
    made = {r: new_token(r.value, r, now, now + timedelta(hours=2), groups.get(r, ())) for r in Role}
    write_tokens(out / "tokens", tuple(kept for _, kept in made.values()))
    access: dict[str, Any] = {"tokens": str(out / "tokens"), "local": "read", "quotas": QUOTAS}
    timings: dict[str, float] = {}
    tokens = {role: token for role, (token, _) in made.items()}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        oidc, certificate = stack.enter_context(institution(folder))
        site = stack.enter_context(running(out, f"sqlite:///{folder}/headway.db", access=access | {"oidc": oidc}))
        # Meanwhile the site's own start passes, in which nobody is missing yet.
        said, said_s = headlines(Path(stack.enter_context(TemporaryDirectory())))
        aims = _visited(out, site, tokens, trusting(certificate), timings)
        cost = asyncio.run(_cost(site, pages, tokens[Role.OPERATE])) if pages else None
    aims |= said | ({} if cost is None else {"core that open pages take": at_most(cost["core"], 0.1)})
    return {"seconds": timings, "headline_s": said_s, "cost": cost, **stated(aims)}


def _visited(
    out: Path, site: Running, tokens: dict[Role, str], trusted: str, timings: dict[str, float]
) -> dict[str, Aim]:
    """Return the aims of a visit; how long each of its steps took goes to ``timings``."""
    with browser(site.url, trusted) as window:
        visit = Visit(out, site, window, tokens)
        people, works, screen = People(visit), Works(visit), ScreenVisit(visit)
        for step in (*people.steps(), *screen.reserving(), *works.steps(), *screen.looking()):
            began_s = time.monotonic()
            step()
            timings[step.__name__] = round(time.monotonic() - began_s, 2)
            print(f"{step.__name__}: {timings[step.__name__]} s", flush=True)
        return visit.aims


async def _cost(site: Running, pages: int, token: str) -> dict[str, Any]:
    """Return what open pages cost the controller, while something changes once a second that all of them show."""
    async with _changing(site, token):
        before = await _cpu_share(site)
    port = int(site.url.rpartition(":")[2])
    writers, readers = [], []
    for number in range(pages):
        address = f"127.0.0.{2 + number % ADDRESSES}"
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        writers.append(writer)
        readers.append(asyncio.create_task(_counted(reader)))
    async with _changing(site, token):
        await asyncio.sleep(2.0)
        share = await _cpu_share(site)
    for writer in writers:
        writer.close()
    heard = await asyncio.gather(*readers)
    return {"pages": pages, "core": round(share - before, 4), "core_before": round(before, 4), "bytes": sum(heard)}


@asynccontextmanager
async def _changing(site: Running, token: str) -> AsyncIterator[None]:
    """Hold something each second meanwhile: calendars are drawn anew, and sent to everybody."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=site.url, headers=headers) as client:

        async def change() -> None:
            while True:
                start = datetime.now(UTC) + timedelta(hours=1)
                body = {
                    "from": "la-serena",
                    "to": "champaign",
                    "class": "urgent",
                    "rate": "1 Mbit/s",
                    "duration_s": 600,
                }
                answer = await client.post("/v1/reservations", json=body | {"start": start.isoformat()})
                answer.raise_for_status()
                await asyncio.sleep(1.0)

        task = asyncio.create_task(change())
        try:
            yield
        finally:
            if task.done():
                task.result()  # it has failed
            task.cancel()


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
    write_report(arguments.out, report)
    print(json.dumps(report["aims"], indent=1))
    sys.exit(bool(report["falls_short"]))


if __name__ == "__main__":
    main()
