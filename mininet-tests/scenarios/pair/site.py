"""A pair of controllers, each on a machine of its own, and all that hangs on it: what rounds are played on.

The database, switches and agents are others': the packets of a machine of the two, or of the database's, can be lost.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg

from headway import ApiProblem, Client
from mininet_tests.probes.switch_state import SwitchesSeen
from mininet_tests.scenarios.pair.both_down import DOWN, brought_back
from mininet_tests.scenarios.pair.writers import stale_writes
from mininet_tests.site.asking import Script, change_s, longest_s
from mininet_tests.site.books import filled
from mininet_tests.site.machines import CabledMachine, forwards
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.pair_agents import CallingAgents, PairAgent, calling
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.running import Running, running
from mininet_tests.site.topos import Realised
from mininet_tests.site.userspace_switches import add_switches, remove_switches
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import star
from topology.network import Network
from topology.network_text import section_of

CIRCUIT_BPS = 10 * 10**9
SETTLED_WITHIN_S = 180.0  # one that begins anew needs three seconds of a processor that is its own
STOPPED_S = 2.0
SILENT_S = 5.0  # longer than a lease
AFTER_S = 0.5  # so long it is asked on when another was told to lead
DAY_S = 86_400
MOVED_EACH_S, UPGRADED_EACH_S = 0.005, 0.05  # between two requests of a script that asks all the while
PORTS = {"openflow": 6653, "rest": 8080, "agents": 6654}
OVSDB_PORT = 6640


@dataclass(slots=True)
class PairSite:
    """The pair and all that hangs on it."""

    network: Network
    ovs: PrivateOvs
    postgres: PrivatePostgres
    database: CabledMachine
    machines: tuple[CabledMachine, CabledMachine]
    pair: tuple[Running, Running]
    agents: CallingAgents
    script: Script
    looked_at: int = 0
    """The last transaction of whose session is known."""

    def said(self, one: Running) -> dict[str, Any]:
        """Return what a controller says of who leads; nothing if it does not answer."""
        try:
            found: dict[str, Any] = one.asks("GET", "/v1/leader", timeout_s=2).json()
        except (httpx.TransportError, ValueError):
            return {}
        return found

    def leader(self) -> Running | None:
        """Return who leads with another one that stands by, when all agents obey it and call both; None before that."""
        leading = [(one, said) for one in self.pair if (said := self.said(one)).get("leading") and said["standbys"]]
        if len(leading) != 1:
            return None
        (one, said) = leading[0]
        number = self.pair.index(one)
        other = self.said(self.pair[1 - number])
        is_current = other.get("standing") == "standby" and other["lag_s"] < 1 and other["term"] == said["term"]
        return one if is_current and self.agents.obey(number, said["term"]) and not _troubles(one) else None

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
            error.add_note(str([(agent.host, agent.by, agent.epoch) for agent in self.agents.seen()]))
            raise
        return found[0]

    def lose(self, kind: str, one: Running) -> Callable[[], None]:
        """Lose the leader in a way; return what brings it back."""
        if kind in {"killed", "restarted"}:
            one.end(signal.SIGKILL)
            return one.start
        if kind == "stopped":
            os.kill(one.pid, signal.SIGSTOP)
            return partial(_woken, one)
        if kind == "silent":
            cable = ExitStack()
            cable.enter_context(self.machines[self.pair.index(one)].silent())
            return partial(_heard_again, cable)
        like = f"%process {one.pid}%"
        self.postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s", like
        )
        return lambda: None

    def without_database(self, one: Running) -> float:
        """Lose all packets of the database's machine for a while; return when it is back, of ``time.monotonic``.

        Meanwhile the leader answers what only reads, and refuses what changes something.

        Raises:
            AssertionError: it does not.
        """
        with self.database.silent():
            over_s = time.monotonic() + SILENT_S
            try:
                raise AssertionError(Client(one.url, waits_s=()).hold_reservation(self.script.wanted()))
            except ApiProblem as problem:
                if problem.status != httpx.codes.SERVICE_UNAVAILABLE:
                    raise AssertionError(problem) from problem
            while time.monotonic() < over_s:
                one.asks("GET", "/v1/reservations?limit=1", timeout_s=5).raise_for_status()
                time.sleep(0.2)
        return time.monotonic()

    def moves(self, one: Running) -> None:
        """Let the other one lead, if it does not; asked again while none has stood by within a second."""

        def asked() -> bool:
            try:
                Client(one.url).move_leader()
            except ApiProblem as problem:
                if problem.status not in {httpx.codes.CONFLICT, httpx.codes.TEMPORARY_REDIRECT}:
                    raise
                return problem.status == httpx.codes.TEMPORARY_REDIRECT
            return True

        eventually(asked, within_s=SETTLED_WITHIN_S, what="the other one is let lead")
        time.sleep(AFTER_S)

    def upgrades(self, one: Running) -> None:
        """Start the one that stands by anew, let it lead, and the other one anew."""
        (other,) = (each for each in self.pair if each is not one)
        for each in (other, one):
            if each is one:
                self.moves(one)
                self.settled()
            each.end()
            each.start()
            self.settled()

    def unanswered(self, kind: str, one: Running) -> dict[str, float]:
        """Lose the leader in a way, and bring it back; return for how long nobody answered, s.

        Of a planned hand-over that is from the last answer of one to the first of the other; how long one waited at
        most for an answer until half a second later is beside it.
        """
        if kind == "database":
            back_s = self.without_database(one)
            return {"unanswered_s": self.script.asks().at_s - back_s}
        if kind in DOWN:
            return brought_back(self, kind, one)
        if kind == "moved":
            answers = self.script.answers(MOVED_EACH_S, partial(self.moves, one))
            handed_over_s, slowest_s = change_s(answers), longest_s(answers)
            return {"unanswered_s": slowest_s if handed_over_s is None else handed_over_s, "slowest_s": slowest_s}
        if kind == "upgraded":
            return {"unanswered_s": longest_s(self.script.answers(UPGRADED_EACH_S, partial(self.upgrades, one)))}
        lost_s = time.monotonic()
        back = self.lose(kind, one)
        found_s = self.script.asks().at_s - lost_s
        for _ in range(5):
            self.script.asks()
        back()
        return {"unanswered_s": found_s}

    def round(self, kind: str) -> dict[str, Any]:
        """Lose the leader, and return how long who waited."""
        one = self.settled()
        before, switches = {agent.host: agent.epoch for agent in self.agents.seen()}, self.switches()
        if kind == "restarted":  # it has forgotten all terms when the leader dies
            self.ovs.kill_switch()
            self.ovs.start_switch()
        self.script.asks()
        fell_back, _ = self.agents.fallbacks, self.agents.late_s()
        lost_s = time.monotonic()
        unanswered = self.unanswered(kind, one)
        back_s = time.monotonic()
        self.settled()
        obeyed = [agent.obeyed_s or lost_s for agent in self.agents.seen(before)]
        return {
            "kind": kind,
            **{name: round(value, 3) for name, value in unanswered.items()},
            "obeyed_s": round(max(obeyed) - lost_s, 3),
            "back_s": round(back_s - lost_s, 1),
            "settled_s": round(time.monotonic() - back_s, 1),
            "rules_put_again": 0 if kind == "restarted" else self.switches().younger_than(switches),
            "fell_back": self.agents.fallbacks - fell_back,
            "violations": len(self.violations()),
            "stale_writes": self.stale_writes(),
            "agents_late_s": round(self.agents.late_s(), 3),
            "load": round(os.getloadavg()[0], 1),
        }

    def violations(self) -> list[dict[str, Any]]:
        """Return where a layer lets through more than the next, as the one that leads sees it."""
        found: list[dict[str, Any]] = self.settled().asks("GET", "/v1/plan", timeout_s=10).json()["violations"]
        return found

    def stale_writes(self) -> int:
        """Return how many transactions since the last look were written by one who did not lead any more."""
        with psycopg.connect(self.postgres.url) as connection:
            rows = connection.execute("SELECT value FROM meta WHERE key LIKE 'names of %'").fetchall()
        sessions = {number: session for number, session, _ in (json.loads(value) for (value,) in rows)}
        if not sessions:
            raise AssertionError("no transaction says which session has written it")
        since, self.looked_at = self.looked_at, max(sessions)
        return stale_writes(sessions, since)

    def switches(self) -> SwitchesSeen:
        """Return what the switches hold."""
        return SwitchesSeen.now(Realised(None, self.network, {}))


def _woken(one: Running) -> None:
    """Let one that was stopped go on, after a while."""
    time.sleep(STOPPED_S)
    os.kill(one.pid, signal.SIGCONT)


def _heard_again(cable: ExitStack) -> None:
    """Let the packets of a machine that was silent arrive again, after a while."""
    time.sleep(SILENT_S)
    cable.close()


def _troubles(one: Running) -> list[str]:
    """Return why a controller is not well; nothing if it is."""
    try:
        reasons: list[str] = one.asks("GET", "/healthz", timeout_s=5).json()["reasons"]
    except httpx.TransportError as error:
        return [str(error)]
    return reasons


@contextmanager
def pair_site(folder: Path, agents: int, reservations: int = 0, rtt_s: float = 0.0) -> Iterator[PairSite]:
    """Give a pair that settles; logs are in the folder. In network and mount namespaces of our own.

    Args:
        folder: for configurations and logs.
        agents: how many hosts have one.
        reservations: how many are on the books from the beginning.
        rtt_s: between a controller and all else, seconds.
    """
    network = star(agents - 1, 1, CIRCUIT_BPS)
    ways = {host.name: "archive" for host in network.hosts[1:]} | {"archive": network.hosts[1].name}
    flows = [{"name": f"raw-{a}", "class": "background", "from": a, "to": z} for a, z in ways.items()]
    with ExitStack() as parts:
        forwards()
        ovs = parts.enter_context(PrivateOvs(Directories.standard()))
        ovs.vsctl("set-manager", f"ptcp:{OVSDB_PORT}")
        of_pair = tuple(parts.enter_context(CabledMachine(number, rtt_s)) for number in range(2))
        database = parts.enter_context(CabledMachine(2))
        postgres = parts.enter_context(PrivatePostgres(database))
        if reservations:
            filled(network, reservations, postgres.url, time.time_ns() // 1_000).close()
        listens = [{name: f"{machine.address}:{port}" for name, port in PORTS.items()} for machine in of_pair]
        # Switches go after their controllers, which would say of each port that is gone that this is a fault.
        switches = parts.enter_context(ExitStack())
        pair = []
        for name, machine, listen in zip("ab", of_pair, listens, strict=True):
            (folder / name).mkdir(parents=True, exist_ok=True)
            one = running(
                folder / name,
                postgres.url,
                machine.inside,
                insecure=True,
                network=section_of(network),
                flows=flows,
                pair={"address": f"http://{listen['rest']}"},
                listen=dict(listen),
                ovsdb={switch.name: f"tcp:{machine.near}:{OVSDB_PORT}" for switch in network.switches},
            )
            pair.append(parts.enter_context(one))
        add_switches(ovs, network, str(PORTS["openflow"]))
        switches.callback(remove_switches, ovs, network)
        for switch in network.switches:
            ovs.vsctl("set-controller", switch.name, *(f"tcp:{listen['openflow']}" for listen in listens))
        for controller in ovs.vsctl("--bare", "--columns=_uuid", "list", "controller").split():
            ovs.vsctl("set", "controller", controller, "max_backoff=1000")
        addresses = tuple(listen["agents"] for listen in listens)
        agents_of = tuple(PairAgent(host.name, addresses) for host in network.hosts if host.has_agent)
        calls = parts.enter_context(calling(agents_of))
        ends = network.hosts[1].name, "archive"
        script = Script(tuple(one.url for one in pair), ends, int(time.time()) + DAY_S, before=reservations)
        (a, b), (machine_a, machine_b) = pair, of_pair
        yield PairSite(network, ovs, postgres, database, (machine_a, machine_b), (a, b), calls, script)
