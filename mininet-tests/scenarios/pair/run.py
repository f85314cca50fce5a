"""A pair of controllers on a real PostgreSQL, two userspace switches and their hosts' agents: the leader is lost.

Run inside ``isolated.sh``. In each round, drawn by a seed, the one that leads is killed, stopped for a while, cut off
from the sessions it has at the database, or asked to let the other lead, while a script reserves. ``report.json`` has
how long nobody answered, how long agents waited, and what must be none.
"""

import argparse
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from mininet_tests.probes.switch_state import SwitchesSeen
from mininet_tests.scenarios.pair.agents import PairAgent
from mininet_tests.scenarios.pair.asking import Script, client
from mininet_tests.scenarios.pair.steps import steps
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import Running, free_port, running
from mininet_tests.site.topos import Realised
from mininet_tests.site.userspace_switches import add_switches
from mininet_tests.testing.aims import Aim, at_most, equal, stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import chile_illinois
from mininet_tests.testing.reports import write_report

WAYS = {"base20": "arch", "base21": "arch", "base22": "arch", "base23": "arch", "arch": "base20"}
FLOWS = [{"name": f"raw-{a}", "class": "background", "from": a, "to": z} for a, z in WAYS.items()]
SETTLED_WITHIN_S = 60.0
STOPPED_S = 2.0
DAY_S = 86_400
OBEYED, FELL_BACK = "until all agents obey the new leader, s, worst", "hosts that fell back"
KINDS = ("killed", "stopped", "moved", "cut")


@dataclass(slots=True)
class PairSite:
    """The pair and all that hangs on it."""

    postgres: PrivatePostgres
    pair: tuple[Running, Running]
    agents: tuple[PairAgent, ...]
    script: Script

    def said(self, one: Running) -> dict[str, Any]:
        """Return what a controller says of who leads; nothing if it does not answer."""
        try:
            found: dict[str, Any] = httpx.get(f"{one.url}/v1/leader", timeout=2).json()
        except (httpx.TransportError, ValueError):
            return {}
        return found

    def leader(self) -> Running | None:
        """Return who leads with another one that stands by, when all agents obey it; None before that."""
        leading = [(one, said) for one in self.pair if (said := self.said(one)).get("leading") and said["standbys"]]
        if len(leading) != 1:
            return None
        (one, said) = leading[0]
        number = self.pair.index(one)
        other = self.said(self.pair[1 - number])
        is_current = other.get("standing") == "standby" and other["lag_s"] < 1 and other["term"] == said["term"]
        obey = all(agent.by == number and agent.epoch >= 2 * said["term"] - 1 for agent in self.agents)
        return one if is_current and obey and not _troubles(one) else None

    def settled(self) -> Running:
        """Wait until one leads and all is as it should be; return it."""
        found: list[Running] = []

        def looked() -> bool:
            one = self.leader()
            found[:] = [] if one is None else [one]
            return one is not None

        try:
            eventually(looked, within_s=SETTLED_WITHIN_S, what="one leads, one stands by, and all obey")
        except AssertionError as error:
            error.add_note(str([(self.said(one), _troubles(one)) for one in self.pair]))
            error.add_note(str([(agent.host, agent.by, agent.epoch) for agent in self.agents]))
            raise
        return found[0]

    def lose(self, kind: str, one: Running) -> Callable[[], None]:
        """Lose the leader in a way; return what brings it back."""
        if kind == "killed":
            one.end(signal.SIGKILL)
            return one.start
        if kind == "stopped":
            os.kill(one.pid, signal.SIGSTOP)
            return partial(_woken, one)
        if kind == "moved":
            with client(timeout_s=2) as operator:
                operator.post(f"{one.url}/v1/leader/move").raise_for_status()
        else:
            like = f"%process {one.pid}%"
            self.postgres.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s", like
            )
        return lambda: None

    def round(self, kind: str) -> dict[str, Any]:
        """Lose the leader, and return how long who waited."""
        one = self.settled()
        before, switches = {agent.host: agent.epoch for agent in self.agents}, _switches()
        self.script.asks()
        lost_s = time.monotonic()
        back = self.lose(kind, one)
        unanswered_s = self.script.asks() - lost_s
        for _ in range(5):
            self.script.asks()
        back()
        back_s = time.monotonic()
        self.settled()
        renewed = [
            min((at_s for epoch, at_s in agent.obeyed_s.items() if epoch > before[agent.host]), default=lost_s) - lost_s
            for agent in self.agents
        ]
        return {
            "kind": kind,
            "unanswered_s": round(unanswered_s, 3),
            "obeyed_s": round(max(renewed), 3),
            "back_s": round(back_s - lost_s, 1),
            "settled_s": round(time.monotonic() - back_s, 1),
            "rules_put_again": _switches().younger_than(switches),
        }


def _woken(one: Running) -> None:
    """Let one that was stopped go on, after a while."""
    time.sleep(STOPPED_S)
    os.kill(one.pid, signal.SIGCONT)


def _troubles(one: Running) -> list[str]:
    """Return why a controller is not well; nothing if it is."""
    try:
        reasons: list[str] = httpx.get(f"{one.url}/healthz", timeout=5).json()["reasons"]
    except httpx.TransportError as error:
        return [str(error)]
    return reasons


def _switches() -> SwitchesSeen:
    return SwitchesSeen.now(Realised(None, chile_illinois(), {}))


def played(folder: Path, rounds: int, seed: int, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """Return what was seen in so many rounds of some kinds."""
    drawn = random.Random(seed)
    with ExitStack() as parts:
        ovs = parts.enter_context(PrivateOvs(Directories.standard()))
        postgres = parts.enter_context(PrivatePostgres())
        listens = [{name: f"127.0.0.1:{free_port()}" for name in ("openflow", "rest", "agents")} for _ in range(2)]
        pair = []
        for name, listen in zip("ab", listens, strict=True):
            (folder / name).mkdir(parents=True, exist_ok=True)
            address = {"address": f"http://{listen['rest']}"}
            one = running(folder / name, postgres.url, insecure=True, flows=FLOWS, pair=address, listen=dict(listen))
            pair.append(parts.enter_context(one))
        add_switches(ovs, chile_illinois(), listens[0]["openflow"].rpartition(":")[2])
        for switch in chile_illinois().switches:
            ovs.vsctl("set-controller", switch.name, *(f"tcp:{listen['openflow']}" for listen in listens))
        for controller in ovs.vsctl("--bare", "--columns=_uuid", "list", "controller").split():
            ovs.vsctl("set", "controller", controller, "max_backoff=1000")
        addresses = tuple(listen["agents"] for listen in listens)
        agents = tuple(PairAgent(host.name, addresses) for host in chile_illinois().hosts if host.has_agent)
        for agent in agents:
            parts.enter_context(agent.running())
        site = PairSite(
            postgres, (pair[0], pair[1]), agents, Script(tuple(one.url for one in pair), int(time.time()) + DAY_S)
        )
        seen = []
        for number in range(rounds):
            seen.append(site.round(kinds[number] if number < len(kinds) else drawn.choice(kinds)))
            print(f"{number + 1} of {rounds}: {seen[-1]}", flush=True)
        return {"kinds": list(kinds), "rounds": seen} | _in_the_end(site)


def _in_the_end(site: PairSite) -> dict[str, Any]:
    """Return what is to be none."""
    one = site.settled()
    script = site.script
    ids = set()
    for key, known in script.answered.items():  # asked once more, where nothing is left to be done
        said = script.asked(one.url, key)
        ids.add((key, known, None if said is None else said.json().get("id")))
    listed = [each["id"] for page in _pages(one.url) for each in page]
    return {
        "answers": len(script.answered),
        "asked_twice": len(script.unsure),
        "lost": sum(known not in listed for known in script.answered.values()),
        "done_twice": sum(known != again for _, known, again in ids) + len(listed) - len(set(script.answered.values())),
        "fallbacks": sum(agent.fallbacks for agent in site.agents),
        "went_back": sum(agent.went_back for agent in site.agents),
    }


def _pages(url: str) -> Sequence[list[dict[str, Any]]]:
    pages, cursor = [], ""
    while True:
        said = httpx.get(f"{url}/v1/reservations?limit=500{f'&cursor={cursor}' if cursor else ''}", timeout=10).json()
        pages.append(said["reservations"])
        if not said["next"]:
            return pages
        cursor = said["next"]


def aims(seen: dict[str, Any]) -> dict[str, Aim]:
    """Return what a run is to keep."""
    lost = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] in {"killed", "stopped"}]
    moved = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] == "moved"]
    obeyed = [one["obeyed_s"] for one in seen["rounds"] if one["kind"] != "cut"]
    kinds, found = set(seen["kinds"]), dict[str, Aim]()
    if kinds & {"killed", "stopped"}:
        found["leader lost, until a request is answered, s, 99 of 100"] = at_most(_p99(lost), 1.0)
    if "moved" in kinds:
        found["leader lets another lead, until a request is answered, s, median"] = at_most(_median(moved), 0.25)
    if kinds != {"cut"}:
        found[OBEYED] = at_most(max(obeyed, default=None), 1.0)
    return found | {
        FELL_BACK: equal(seen["fallbacks"], 0),
        "epochs that went back": equal(seen["went_back"], 0),
        "answers lost": equal(seen["lost"], 0),
        "requests done twice": equal(seen["done_twice"], 0),
        "rules put again": equal(sum(one["rules_put_again"] for one in seen["rounds"]), 0),
    }


def times(seen: dict[str, Any]) -> dict[str, dict[str, float | int | None]]:
    """Return for how long nobody answered, by how the leader was lost."""
    found: dict[str, dict[str, float | int | None]] = {}
    for kind in KINDS:
        values = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] == kind]
        found[kind] = {
            "rounds": len(values),
            "median_s": _median(values),
            "p99_s": _p99(values),
            "worst_s": max(values, default=None),
        }
    return found


def _p99(values: Sequence[float]) -> float | None:
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)] if values else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/pair"), help="folder for report.json and logs")
    parser.add_argument("--rounds", type=int, default=50, help="how often the leader is lost (default: 50)")
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=KINDS, help="ways in which it is lost (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the rounds that are drawn (default: 1)")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    seen = {"seed": asked.seed} | played(asked.out, asked.rounds, asked.seed, asked.kinds)
    logs = (log.read_text(errors="replace") for log in asked.out.glob("?/controller.log"))
    result = seen | {"times": times(seen), "steps": steps(logs)} | stated(aims(seen))
    write_report(asked.out, result)
    return int(bool(result["falls_short"]))


if __name__ == "__main__":
    sys.exit(main())
