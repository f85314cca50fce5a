"""A site whose controller is far away: a switch, its database and agents, one of them real, each with a stream by TLS.

For network and mount namespaces of our own, as ``isolated.sh`` makes them.
"""

import re
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from controller.security import pki, pki_files
from controller.security.token_file import write_tokens
from controller.security.tokens import Role, new_token
from mininet_tests.site.certificates import certified
from mininet_tests.site.machines import CabledMachine
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.pair_agents import CallingAgents, PairAgent, SeenAgent, calling
from mininet_tests.site.real_agent import real_agent
from mininet_tests.site.running import is_well, running
from mininet_tests.site.spoken_agents import agent_tls
from mininet_tests.site.userspace_switches import add_switches, remove_switches
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import one_site
from topology.certificates import OVSDB_URI, REST_URI, Kind, switch_uri
from topology.network import Network
from topology.network_text import section_of

HOSTS, REAL, WANTS, HERE, ELSEWHERE = 20, "h0", "h1", "la-serena", "cern"
OPENFLOW, REST, AGENTS, OVSDB = 6653, 8080, 6654, 6640
WELL_WITHIN_S = 60.0
ERROR = re.compile(r"level=(?:error|critical) .*")
LOST = re.compile(r"event=agent\.(?:lost|refused|lease_over) .*")


@dataclass
class FarSite:
    """The site, once all is well.

    Attributes:
        http: asks the controller from where the site is.
        agents: of all hosts but the real one's.
        well_s: how long it took from when switch and agents began to call until all was well, seconds.
        folder: with the logs.
    """

    http: httpx.Client
    agents: CallingAgents
    well_s: float
    folder: Path

    @property
    def wants(self) -> SeenAgent:
        """The agent whose host has at once to send what is announced of it."""
        (found,) = (agent for agent in self.agents.seen() if agent.host == WANTS)
        return found

    @property
    def troubles(self) -> list[str]:
        """Errors that the controller has said, and streams that the real agent has lost."""
        said = (self.folder / "controller.log").read_text(), (self.folder / "agent.log").read_text()
        return ERROR.findall(said[0]) + LOST.findall(said[1])


def all_certified(folder: Path, network: Network, address: str) -> tuple[dict[str, object], dict[str, str]]:
    """Make the certificates of all; return the controller's section ``tls``, and REST's.

    Args:
        folder: for all.
        network: whose hosts and switches.
        address: that the controller is called by.
    """
    now, days = pki_files.now(), pki.CERTIFICATE_DAYS
    tls = certified(folder, address, network.host_names)
    to_switches = folder / pki_files.TO_SWITCHES
    pki_files.init(to_switches, "switches", now, pki.AUTHORITY_DAYS)
    shown = pki_files.make(to_switches, Kind.OVSDB, (address, OVSDB_URI), now, days)
    rest = pki_files.make(folder, Kind.REST, (address, REST_URI), now, days)
    for switch in network.switches:
        pki_files.make(folder, Kind.SWITCH, (switch.name, switch_uri(switch.dpid)), now, days)
    switches = {"certificate": str(shown.certificate), "key": str(shown.key)}
    return {**tls, "switches": switches}, {"certificate": str(rest.certificate), "key": str(rest.key)}


@contextmanager
def far_site(folder: Path, rtt_s: float, *, ipv6: bool = False) -> Iterator[FarSite]:
    """Give a site that is well.

    Args:
        folder: for certificates, configurations and logs.
        rtt_s: between the controller and all else, there and back, seconds.
        ipv6: whether they call each other by IPv6 addresses.
    """
    network = one_site(HOSTS, HERE, ELSEWHERE)
    (switch,) = network.switches
    hosts = [host.name for host in network.hosts if host.has_agent]
    with ExitStack() as parts:
        machine = parts.enter_context(CabledMachine(rtt_s=rtt_s))
        ovs = parts.enter_context(PrivateOvs(Directories.standard()))
        near, address = (machine.near6, machine.address6) if ipv6 else (machine.near, machine.address)
        at, back = (f"[{name}]" if ipv6 else name for name in (address, near))
        tls, of_rest = all_certified(folder, network, address)
        now = datetime.now(UTC)
        token, kept = new_token("far", Role.OPERATE, now, now + timedelta(hours=1))
        write_tokens(folder / "tokens", (kept,))
        controller = parts.enter_context(
            running(
                folder,
                f"sqlite:///{folder}/headway.db",
                machine.inside,
                trusts=ssl.create_default_context(cafile=folder / "ca.pem"),
                token=token,
                tls=tls,
                access={"tokens": str(folder / "tokens")},
                network=section_of(network),
                flows=[{"name": f"raw-{h}", "class": "background", "from": h, "to": ELSEWHERE} for h in hosts],
                listen={
                    "openflow": f"ssl:{at}:{OPENFLOW}",
                    "rest": f"{at}:{REST}",
                    "agents": f"{at}:{AGENTS}",
                    "tls": of_rest,
                },
                ovsdb={switch.name: f"ssl:{back}:{OVSDB}"},
            )
        )
        begun_s = time.monotonic()
        add_switches(ovs, network, str(OPENFLOW))
        parts.callback(remove_switches, ovs, network)
        stem = folder / "switches" / switch.name
        ovs.vsctl("set-ssl", f"{stem}.key", f"{stem}.pem", str(folder / pki_files.TO_SWITCHES / "ca.pem"))
        ovs.vsctl("set-manager", f"pssl:{OVSDB}:[::]" if ipv6 else f"pssl:{OVSDB}")
        ovs.vsctl("set-controller", switch.name, f"ssl:{at}:{OPENFLOW}")
        calls = f"{at}:{AGENTS}"
        agents = tuple(
            PairAgent(name, (calls,), agent_tls(folder, name), wants=name == WANTS) for name in hosts if name != REAL
        )
        calling_agents = parts.enter_context(calling(agents))
        real = real_agent(REAL, folder, calls)
        parts.callback(real.wait, 20)
        parts.callback(real.terminate)
        http = parts.enter_context(controller.http(timeout_s=30))
        eventually(lambda: is_well(http), within_s=WELL_WITHIN_S, what="all is well")
        yield FarSite(http, calling_agents, time.monotonic() - begun_s, folder)
