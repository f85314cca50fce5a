"""A pair of controllers on a real PostgreSQL, two userspace switches and their hosts' agents: the leader is lost.

Run inside ``isolated.sh``. In each round, drawn by a seed, the one that leads is killed, stopped for a while, cut off
from the sessions it has at the database, or asked to let the other lead, while a script reserves; or both are started
anew in turn, as a rolling upgrade does. ``report.json`` has how long nobody answered, how long agents waited, and what
must be none.

After some rounds all begins anew, and what was seen of them is kept in ``worlds/``: a run that was ended goes on from
there if it is asked for the same.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from controller.plan.wiring import port_links
from headway import Client
from mininet_tests.probes.switch_state import SwitchesSeen
from mininet_tests.scenarios.pair.agents import PairAgent, calling
from mininet_tests.scenarios.pair.asking import Script
from mininet_tests.scenarios.pair.steps import steps, summed
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import Running, free_port, running
from mininet_tests.site.topos import Realised
from mininet_tests.site.userspace_switches import add_switches
from mininet_tests.testing.aims import Aim, at_most, equal, stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import star
from mininet_tests.testing.reports import write_report
from topology.network import Network
from topology.network_text import section_of

AGENTS, CIRCUIT_BPS = 200, 10 * 10**9
ROUNDS_OF_A_WORLD = 25
COUNTED = ("answers", "asked_twice", "lost", "done_twice", "fallbacks", "went_back")
SETTLED_WITHIN_S = 60.0
STOPPED_S = 2.0
DAY_S = 86_400
OBEYED, FELL_BACK = "until all agents obey the new leader, s, worst", "hosts that fell back"
KINDS = ("killed", "stopped", "moved", "cut")
UPGRADED = "upgraded"  # takes as long as three of the others
EACH_S = 0.05  # between two requests during an upgrade


@dataclass(slots=True)
class PairSite:
    """The pair and all that hangs on it."""

    network: Network
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
            Client(one.url).move_leader()
        else:
            like = f"%process {one.pid}%"
            self.postgres.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s", like
            )
        return lambda: None

    def upgrades(self, one: Running) -> float:
        """Start the one that stands by anew, let it lead, and the other one anew; return for how long none answered.

        The longest time from one answer to the next, of a script that asks all the while.
        """
        ended, (other,) = threading.Event(), [each for each in self.pair if each is not one]

        def asks() -> list[float]:
            answered_s = [self.script.asks()]
            while not ended.wait(EACH_S):
                answered_s.append(self.script.asks())
            return answered_s

        with ThreadPoolExecutor(1) as thread:
            asking = thread.submit(asks)
            try:
                for each in (other, one):
                    if each is one:
                        self.lose("moved", one)
                        self.settled()
                    each.end()
                    each.start()
                    self.settled()
            finally:
                ended.set()
            answered_s = asking.result()
        return max(later - sooner for sooner, later in pairwise(answered_s))

    def round(self, kind: str) -> dict[str, Any]:
        """Lose the leader, and return how long who waited."""
        one = self.settled()
        before, switches = {agent.host: agent.epoch for agent in self.agents}, self.switches()
        self.script.asks()
        lost_s = time.monotonic()
        if kind == UPGRADED:
            unanswered_s = self.upgrades(one)
        else:
            back = self.lose(kind, one)
            unanswered_s = self.script.asks() - lost_s
            for _ in range(5):
                self.script.asks()
            back()
        back_s = time.monotonic()
        self.settled()
        obeyed = [agent.obeyed_after(before[agent.host]) or lost_s for agent in self.agents]
        return {
            "kind": kind,
            "unanswered_s": round(unanswered_s, 3),
            "obeyed_s": round(max(obeyed) - lost_s, 3),
            "back_s": round(back_s - lost_s, 1),
            "settled_s": round(time.monotonic() - back_s, 1),
            "rules_put_again": self.switches().younger_than(switches),
            "load": round(os.getloadavg()[0], 1),
        }

    def switches(self) -> SwitchesSeen:
        """Return what the switches hold."""
        return SwitchesSeen.now(Realised(None, self.network, {}))


def _woken(one: Running) -> None:
    """Let one that was stopped go on, after a while."""
    time.sleep(STOPPED_S)
    os.kill(one.pid, signal.SIGCONT)


def remove_switches(ovs: PrivateOvs, network: Network) -> None:
    """Take switches away for the next world, and the ports of circuits, which are not Open vSwitch's.

    Queues have the term of this one; the next one's terms are lower, and are refused there.
    """
    for switch in network.switches:
        ovs.vsctl("del-br", switch.name)
        for link in (link for _, link in port_links(network, switch.name) if link.circuit):
            subprocess.run(["ip", "link", "del", link.port_name], check=True)
    ovs.vsctl("--all", "destroy", "qos", "--", "--all", "destroy", "queue")


def _troubles(one: Running) -> list[str]:
    """Return why a controller is not well; nothing if it is."""
    try:
        reasons: list[str] = httpx.get(f"{one.url}/healthz", timeout=5).json()["reasons"]
    except httpx.TransportError as error:
        return [str(error)]
    return reasons


def played(folder: Path, agents: int, kinds: Sequence[str]) -> dict[str, Any]:
    """Return what was seen in rounds of these kinds, one after the other, in a world of their own."""
    network = star(agents - 1, 1, CIRCUIT_BPS)
    ways = {host.name: "archive" for host in network.hosts[1:]} | {"archive": network.hosts[1].name}
    flows = [{"name": f"raw-{a}", "class": "background", "from": a, "to": z} for a, z in ways.items()]
    with ExitStack() as parts:
        ovs = parts.enter_context(PrivateOvs(Directories.standard()))
        postgres = parts.enter_context(PrivatePostgres())
        listens = [{name: f"127.0.0.1:{free_port()}" for name in ("openflow", "rest", "agents")} for _ in range(2)]
        pair = []
        for name, listen in zip("ab", listens, strict=True):
            (folder / name).mkdir(parents=True, exist_ok=True)
            one = running(
                folder / name,
                postgres.url,
                insecure=True,
                network=section_of(network),
                flows=flows,
                pair={"address": f"http://{listen['rest']}"},
                listen=dict(listen),
            )
            pair.append(parts.enter_context(one))
        add_switches(ovs, network, listens[0]["openflow"].rpartition(":")[2])
        parts.callback(remove_switches, ovs, network)
        for switch in network.switches:
            ovs.vsctl("set-controller", switch.name, *(f"tcp:{listen['openflow']}" for listen in listens))
        for controller in ovs.vsctl("--bare", "--columns=_uuid", "list", "controller").split():
            ovs.vsctl("set", "controller", controller, "max_backoff=1000")
        addresses = tuple(listen["agents"] for listen in listens)
        hosts = tuple(PairAgent(host.name, addresses) for host in network.hosts if host.has_agent)
        parts.enter_context(calling(hosts))
        ends = network.hosts[1].name, "archive"
        script = Script(tuple(one.url for one in pair), ends, int(time.time()) + DAY_S)
        site = PairSite(network, postgres, (pair[0], pair[1]), hosts, script)
        seen = []
        for number, kind in enumerate(kinds):
            seen.append(site.round(kind))
            print(f"{number + 1} of {len(kinds)}: {seen[-1]}", flush=True)
        return {"rounds": seen} | _in_the_end(site)


def worlds(folder: Path, agents: int, rounds: int, seed: int, kinds: Sequence[str]) -> dict[str, Any]:
    """Return what was seen in all rounds; those of worlds that are kept in the folder are not played again."""
    drawn = random.Random(seed)
    wanted = [kinds[number] if number < len(kinds) else drawn.choice(kinds) for number in range(rounds)]
    found = []
    for number, first in enumerate(range(0, rounds, ROUNDS_OF_A_WORLD)):
        of_it = wanted[first : first + ROUNDS_OF_A_WORLD]
        asked = {"agents": agents, "kinds": of_it}
        world = folder / "worlds" / str(number)
        kept = world / "seen.json"
        known = json.loads(kept.read_text()) if kept.exists() else {}
        if known.get("asked") != asked:
            shutil.rmtree(world, ignore_errors=True)
            seen = played(world, agents, of_it)
            known = {"asked": asked, "seen": seen, "steps": steps(_logs(world))}
            kept.write_text(json.dumps(known))
        found.append(known)
    together = {name: sum(one["seen"][name] for one in found) for name in COUNTED}
    return {
        "agents": agents,
        "kinds": list(kinds),
        "rounds": [one for world in found for one in world["seen"]["rounds"]],
        "steps": summed(tuple(hand_over) for world in found for hand_over in world["steps"]),
    } | together


def _logs(world: Path) -> list[str]:
    return [log.read_text(errors="replace") for log in world.glob("?/controller.log")]


def _in_the_end(site: PairSite) -> dict[str, Any]:
    """Return what is to be none."""
    one = site.settled()
    script = site.script
    ids = set()
    for key, known in script.answered.items():  # asked once more, where nothing is left to be done
        said = script.again(one.url, key)
        ids.add((key, known, said))
    listed = [each["id"] for page in _pages(one.url) for each in page]
    return {
        "answers": len(script.answered),
        "asked_twice": script.asked_twice(),
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
    upgraded = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] == UPGRADED]
    obeyed = [one["obeyed_s"] for one in seen["rounds"] if one["kind"] not in {"cut", UPGRADED}]
    kinds, found = set(seen["kinds"]), dict[str, Aim]()
    if kinds & {"killed", "stopped"}:
        found["leader lost, until a request is answered, s, 99 of 100"] = at_most(_p99(lost), 1.0)
    if "moved" in kinds:
        found["leader lets another lead, until a request is answered, s, median"] = at_most(_median(moved), 0.25)
    if UPGRADED in kinds:
        found["both upgraded in turn, longest time without an answer, s"] = at_most(max(upgraded, default=None), 1.0)
    if kinds - {"cut", UPGRADED}:
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
    for kind in dict.fromkeys((*KINDS, *seen["kinds"])):
        values = [one["unanswered_s"] for one in seen["rounds"] if one["kind"] == kind]
        found[kind] = {
            "rounds": len(values),
            "median_s": _median(values),
            "p99_s": _p99(values),
            "worst_s": max(values, default=None),
        }
    return found


def loads(seen: dict[str, Any]) -> dict[str, float | None]:
    """Return for how many processes this machine had no processor, or was using one, while it ran."""
    values = [one["load"] for one in seen["rounds"]]
    return {"median": _median(values), "most": max(values, default=None)}


def _p99(values: Sequence[float]) -> float | None:
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)] if values else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def main() -> int:
    """Run, and keep what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/pair"), help="folder for report.json and logs")
    parser.add_argument("--rounds", type=int, default=50, help="how often the leader is lost (default: 50)")
    parser.add_argument("--agents", type=int, default=AGENTS, help="hosts with one (default: %(default)s)")
    parser.add_argument(
        "--kinds", nargs="+", choices=(*KINDS, UPGRADED), default=KINDS, help="ways in which it is lost, or upgraded"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the rounds that are drawn (default: 1)")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    seen = {"seed": asked.seed} | worlds(asked.out, asked.agents, asked.rounds, asked.seed, asked.kinds)
    result = seen | {"times": times(seen), "load": loads(seen)} | stated(aims(seen))
    write_report(asked.out, result)
    return 0  # that some aims are missed is for who reads the report


if __name__ == "__main__":
    sys.exit(main())
