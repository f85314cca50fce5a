"""What the headline says in a browser, of real switches, a real database and certificates; one case at a time.

The agents are those of ``site/spoken_agents.py``: without a kernel part, they say what they are to say.
"""

import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from controller.security import pki, pki_files
from mininet_tests.scenarios.page.browser import Browser, browser
from mininet_tests.site.certificates import certified
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.running import Running, running
from mininet_tests.site.spoken_agents import SpokenAgent
from mininet_tests.site.userspace_switches import add_port, add_switches
from mininet_tests.testing.aims import Aim, equal, none_of
from mininet_tests.testing.networks import chile_illinois
from topology.certificates import Kind

WELL = "All is as planned."
ENDING_DAYS = 3
SENDER = "base20"
STRANGER = "ls9"
ADDRESS = "127.0.0.1"
FLOWS = [{"name": "raw-images", "class": "background", "from": "base23", "to": "arch"}]
RATE = "100 Mbit/s"
LATE_BYTES = 1_000_000


class BrokenSite:
    """A controller, its switches, and agents that say what they are to say."""

    def __init__(self, controller: Running, ovs: PrivateOvs, certificates: Path, database: Path) -> None:
        self.controller = controller
        self.ovs = ovs
        self.database = database
        self._certificates = certificates
        self._address = yaml.safe_load(controller.config.read_text())["listen"]["agents"]
        self.agents = {host.name: self._agent(host.name) for host in chile_illinois().hosts}

    def _agent(self, host: str) -> SpokenAgent:
        return SpokenAgent(host, self._address, self._certificates)

    @contextmanager
    def port_gone(self) -> Iterator[None]:
        """Take the circuit's port from a switch."""
        link = chile_illinois().link("ls1", "ch1")
        self.ovs.vsctl("del-port", "ls1", link.port_name)
        yield
        add_port(self.ovs, "ls1", link)

    @contextmanager
    def circuit_dies(self) -> Iterator[None]:
        """Take the carrier from the circuit, at both ends."""
        self._far_ends("down")
        yield
        self._far_ends("up")

    def _far_ends(self, state: str) -> None:
        for switch in ("ls1", "ch1"):
            subprocess.run(["ip", "link", "set", f"{switch}-far", state], check=True)

    @contextmanager
    def promise_not_carried(self) -> Iterator[None]:
        """Let the agent of a sender that has reserved hang up."""
        body = {"from": SENDER, "to": "arch", "class": "urgent", "rate": "1 Mbit/s", "duration_s": 3600, "commit": True}
        made = self.controller.asks("POST", "/v1/reservations", json=body)
        made.raise_for_status()
        with self.agent_gone():
            yield
        self.controller.asks("DELETE", f"/v1/reservations/{made.json()['id']}").raise_for_status()

    @contextmanager
    def own_certificate_ends(self) -> Iterator[None]:
        """Give the controller a certificate that is about to end, and a good one again."""
        for days in (ENDING_DAYS, pki.CERTIFICATE_DAYS):
            pki_files.make(self._certificates, Kind.CONTROLLER, (ADDRESS,), pki_files.now(), days, force=True)
            if days == ENDING_DAYS:
                yield

    @contextmanager
    def port_moved(self) -> Iterator[None]:
        """Give a host's port another number."""
        link = chile_illinois().link("ls1", SENDER)
        self.ovs.vsctl("del-port", "ls1", link.port_name)
        add_port(self.ovs, "ls1", link, 77)
        yield
        self.ovs.vsctl("del-port", "ls1", link.port_name)
        add_port(self.ovs, "ls1", link)

    @contextmanager
    def drift(self) -> Iterator[None]:
        """Put queues of somebody else's onto the circuit's port."""
        port = chile_illinois().link("ls1", "ch1").port_name
        self.ovs.vsctl("set", "port", port, "qos=@theirs", "--", "--id=@theirs", "create", "qos", "type=linux-htb")
        yield
        theirs = self.ovs.vsctl("get", "port", port, "qos").strip()
        self.ovs.vsctl("clear", "port", port, "qos", "--", "destroy", "qos", theirs)

    @contextmanager
    def agent_gone(self) -> Iterator[None]:
        """Let an agent hang up."""
        self.agents[SENDER].end()
        yield
        self.agents[SENDER].start()

    @contextmanager
    def fallen_back(self) -> Iterator[None]:
        """Let a host say that so much is lost that it goes on by itself."""
        self.agents["base23"].fallback = "loss"
        yield
        self.agents["base23"].fallback = ""

    @contextmanager
    def database_hangs(self) -> Iterator[None]:
        """Hold the database while somebody wants to save something."""
        with closing(sqlite3.connect(self.database, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            self._announced("unsaved", httpx.codes.SERVICE_UNAVAILABLE)
            yield
            holder.execute("ROLLBACK")

    @contextmanager
    def late(self) -> Iterator[None]:
        """Announce an image of which nothing is ever sent."""
        self._announced("never-sent", httpx.codes.CREATED)
        yield
        self.controller.asks("DELETE", "/v1/announcements/never-sent").raise_for_status()

    @contextmanager
    def unknown_switch(self) -> Iterator[None]:
        """Let a switch call that is not in the network."""
        target = self.ovs.vsctl("get-controller", "ls1").strip()
        self.ovs.vsctl(
            *("add-br", STRANGER, "--", "set", "bridge", STRANGER, "datapath_type=netdev", "fail_mode=secure"),
            *("protocols=OpenFlow13", "other-config:datapath-id=00000000000000e9"),
            *("--", "set-controller", STRANGER, target),
        )
        yield
        self.ovs.vsctl("del-br", STRANGER)

    @contextmanager
    def switch_gone(self) -> Iterator[None]:
        """Take a switch from the controller."""
        target = self.ovs.vsctl("get-controller", "ch1").strip()
        self.ovs.vsctl("set-controller", "ch1", "tcp:127.0.0.1:1")  # where nobody listens
        yield
        self.ovs.vsctl("set-controller", "ch1", target, "--", "set", "controller", "ch1", "max_backoff=1000")

    @contextmanager
    def certificate_ends(self) -> Iterator[None]:
        """Give an agent a certificate that is about to end, and its own again."""
        self._certified_anew("arch", ENDING_DAYS)
        yield
        self._certified_anew("arch", pki.CERTIFICATE_DAYS)

    def _certified_anew(self, host: str, days: int) -> None:
        self.agents[host].end()
        pki_files.make(self._certificates, Kind.AGENT, (host,), pki_files.now(), days, force=True)
        self.agents[host].start()

    def _announced(self, name: str, status: int) -> None:
        body = {"id": name, "class": "urgent", "bytes": LATE_BYTES, "from": [SENDER], "to": "arch"}
        answer = self.controller.asks("POST", "/v1/announcements", json=body)
        if answer.status_code != status:
            raise AssertionError(f"{name} was answered {answer.status_code}: {answer.text}")


@contextmanager
def site(folder: Path) -> Iterator[BrokenSite]:
    """Give a site in which all is well, in namespaces of its own."""
    certificates = folder / "pki"
    tls = certified(certificates, ADDRESS, chile_illinois().host_names)
    database = folder / "headline.db"
    with ExitStack() as stack:
        ovs = stack.enter_context(PrivateOvs(Directories.standard()))
        settings: dict[str, Any] = {
            "flows": FLOWS,
            "tls": tls,
            "audit": {"interval": "1 s"},
            "failover": {"return_after": "1 s"},
        }
        controller = stack.enter_context(running(folder, f"sqlite:///{database}", rate=RATE, trusts=None, **settings))
        port = yaml.safe_load(controller.config.read_text())["listen"]["openflow"].rpartition(":")[2]
        add_switches(ovs, chile_illinois(), port)
        found = BrokenSite(controller, ovs, certificates, database)
        for agent in found.agents.values():
            stack.callback(agent.end)
            agent.start()
        yield found


def headlines(folder: Path) -> tuple[dict[str, Aim], dict[str, float]]:
    """Return the aims of each case, and after how many seconds the page said it.

    Raises:
        AssertionError: all is never well.
    """
    aims: dict[str, Aim] = {}
    seconds: dict[str, float] = {}
    with site(folder) as there, browser(there.controller.url) as window:
        window.open("/")
        window.shows(WELL, "#headline h1")
        cases: dict[str, tuple[Callable[[], AbstractContextManager[None]], str]] = {
            "a circuit's port is gone": (there.port_gone, "ls1-wan"),
            "a circuit is down": (there.circuit_dies, "chile-illinois: "),
            "a host's port has another number": (there.port_moved, "is port 77"),
            "somebody else's queues": (there.drift, "which Headway did not make"),
            "a switch is gone": (there.switch_gone, "ch1: is not connected"),
            "a switch is not in the network": (there.unknown_switch, "is not in the network"),
            "an agent is gone": (there.agent_gone, "base20: its agent is not connected"),
            "a promise is not carried": (there.promise_not_carried, "Not carried because of it: reservation "),
            "a host has fallen back": (there.fallen_back, "base23: raw-images runs its own congestion control"),
            "the database hangs": (there.database_hangs, "database"),
            "an image is late": (there.late, "announcement never-sent"),
            "a certificate is about to end": (there.certificate_ends, "the certificate of its agent ends in"),
            "the controller's certificate is about to end": (
                there.own_certificate_ends,
                "the certificate of the controller",
            ),
        }
        for name, (broken, words) in cases.items():
            seconds[name] = _case(window, broken, words, aims, f"headline: {name}")
        aims["headline: agents' failures"] = none_of([one for a in there.agents.values() for one in a.failures])
    return aims, seconds


def _case(
    window: Browser, broken: Callable[[], AbstractContextManager[None]], words: str, aims: dict[str, Aim], name: str
) -> float:
    """Break something, see the headline say it, mend it, and see that all is well; return how long it took."""
    began_s = time.monotonic()
    with broken():
        window.shows(words, "#headline")
        took_s = time.monotonic() - began_s
        said, each = window.fresh("#headline h1"), window.fresh("#headline li")
        helps = window.fresh("#headline li code")
    window.shows(WELL, "#headline h1")
    aims[name] = equal("need" in said and " since " in each and bool(helps), expected=True)
    print(f"{name}: {took_s:.1f} s: {said}", flush=True)
    return round(took_s, 2)
