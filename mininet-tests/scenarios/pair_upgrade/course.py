"""A pair from its Debian packages, set up and upgraded in turn as ``docs/pair.md`` says, while a script reserves.

Two Debians with systemd as their first process, each with a network of its own; PostgreSQL on a third machine, a
userspace switch and agents, all of which call both over TLS. Each step leaves aims in ``report.json``. Run inside
``isolated.sh``.
"""

import argparse
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headway import ApiError, Client
from mininet_tests.probes.switch_state import SwitchesSeen
from mininet_tests.scenarios.pair_upgrade.machines import (
    AGENTS,
    OPENFLOW,
    PackagedController,
    certified,
    configuration,
    two_machines,
)
from mininet_tests.site import packages
from mininet_tests.site.asking import Script, longest_s
from mininet_tests.site.command import HEADWAY
from mininet_tests.site.machines import CabledMachine, forwards
from mininet_tests.site.openvswitch import Directories, PrivateOvs
from mininet_tests.site.pair_agents import CallingAgents, PairAgent, calling
from mininet_tests.site.postgresql import PrivatePostgres
from mininet_tests.site.spoken_agents import agent_tls
from mininet_tests.site.topos import Realised
from mininet_tests.site.userspace_switches import add_switches
from mininet_tests.testing.aims import Aim, above, at_most, equal, none_of, stated
from mininet_tests.testing.eventually import eventually
from mininet_tests.testing.networks import one_site
from mininet_tests.testing.progress import tell
from mininet_tests.testing.reports import print_aims, write_report
from topology.network import Network
from topology.network_text import section_of

HOSTS, OVSDB_PORT = 20, 6640
HERE, ELSEWHERE = "la-serena", "cern"  # which is not ours: one switch, for a certificate is one switch's
ASKS_EACH_S, AT_MOST_S = 0.05, 1.0
SETTLED_WITHIN_S = 240.0  # a machine boots, or a package is unpacked, beside whatever else this one does
DAY_S = 86_400
DISK_BYTES = 1 << 30  # the database's own: a package that is unpacked here has this machine's disk wait for all
CONFIG = "/etc/headway/controller.yaml"
CHECK = ("runuser", "-u", "headway-controller", "--", "headway", "controller", "--config", CONFIG, "--check")
VERIFY = ("headway", "history", "--verify", "--config", CONFIG)
BACKUP = "/var/backups/headway-before.jsonl"


@dataclass(slots=True)
class Upgrade:
    """The pair, all that hangs on it, and what was seen.

    Attributes:
        pair: the two machines.
        network: what they control.
        version: of the packages that they are upgraded to.
        token: the operator's.
        tls: whom the operator believes.
        agents: of all hosts.
        script: that reserves all the while.
        aims: of what was seen.
    """

    pair: list[PackagedController]
    network: Network
    version: str
    token: str
    tls: ssl.SSLContext
    agents: CallingAgents
    script: Script
    aims: dict[str, Aim] = field(default_factory=dict)

    def client(self, one: PackagedController, waits_s: tuple[float, ...] | None = ()) -> Client:
        """Return one that asks a machine; again after a while, if that is said."""
        return Client(one.url, tls=self.tls, token=lambda: self.token, waits_s=waits_s)

    def led(self) -> PackagedController | None:
        """Return the machine that leads while the other stands by, once all agents obey it and call both."""
        try:
            found = [(one, self.client(one).get_leader()) for one in self.pair]
            well = all(self.client(one).get_health()["ok"] for one in self.pair)
        except ApiError:  # one is away
            return None
        leads = [(one, said) for one, said in found if said["leading"] and said["standbys"]]
        if len(leads) != 1 or {said["standing"] for _, said in found} != {"leader", "standby"}:
            return None
        ((one, said),) = leads
        number = self.pair.index(one)
        return one if well and self.agents.obey(number, said["term"]) else None

    def settled(self) -> tuple[PackagedController, PackagedController]:
        """Wait until one leads and the other stands by; return both."""
        try:
            leader = eventually(self.led, within_s=SETTLED_WITHIN_S, what="one leads, one stands by, and all obey")
        except AssertionError as error:
            error.add_note(str([(agent.host, agent.by, agent.epoch) for agent in self.agents.seen()]))
            raise
        return leader, self.other(leader)

    def other(self, one: PackagedController) -> PackagedController:
        """Return the other machine."""
        (other,) = (each for each in self.pair if each is not one)
        return other

    def upgraded(self) -> None:
        """Upgrade as the manual says: the one that stands by, a hand-over, the other one."""
        leader, standby = self.settled()
        leader.debian.done("headway", "backup", BACKUP)
        standby.install("new")
        self.settled()
        said = self.client(leader).move_leader()
        self.aims["rolling upgrade: whom the leader lets lead"] = equal(standby.name in said["standbys"][0], True)
        self.aims["rolling upgrade: the upgraded one leads"] = equal(self.settled()[0] is standby, True)
        leader.install("new")
        self.settled()
        self.aims["rolling upgrade: versions"] = equal([one.version for one in self.pair], [self.version] * 2)

    def moved(self) -> None:
        """Let the other one lead: who led stands by in the same process, and systemd lets it."""
        leader, standby = self.settled()
        process = leader.debian.unit("headway-controller", "MainPID")
        self.client(leader).move_leader()
        self.aims["moved: who leads"] = equal(self.settled()[0] is standby, True)
        self.aims["moved: the same process stands by"] = equal(
            leader.debian.unit("headway-controller", "MainPID"), process
        )

    def left_and_came_back(self) -> None:
        """Turn the machine of the leader off, as an operator does; it boots, and stands by by itself."""
        leader, standby = self.settled()
        leader.debian.power_off()
        leader.debian.boot()
        self.aims["turned off and on: who leads"] = equal(self.settled()[0] is standby, True)

    def watched(self, name: str, happens: Callable[[], None]) -> None:
        """Let something happen while the script asks; keep what that took, and what must be none."""
        before, fell, rules = self.script.answered.copy(), self.agents.fallbacks, self.switches()
        answers = self.script.answers(ASKS_EACH_S, happens)
        self.aims |= {
            f"{name}: longest time without an answer, s": at_most(round(longest_s(answers), 3), AT_MOST_S),
            f"{name}: requests that were answered": above(len(self.script.answered) - len(before), 0),
            f"{name}: hosts that fell back": none_of(self.agents.fallbacks - fell),
            f"{name}: rules put again": none_of(self.switches().younger_than(rules)),
            f"{name}: what has failed or was started again": none_of(
                [(one.name, each) for one in self.pair for each in one.troubles]
            ),
        }

    def in_the_end(self) -> None:
        """Ask for everything once more: nothing of what was answered is lost, nothing was done twice."""
        leader, _ = self.settled()
        kept = self.script.kept(self.client(leader, waits_s=None))
        self.aims |= {
            "answers lost": none_of(kept["lost"]),
            "requests done twice": none_of(kept["done_twice"]),
            "answers": equal(kept["answers"], len(self.script.answered)),
            "what the chain of changes lacks": none_of(leader.debian.tried(*VERIFY).stderr),
        }

    def switches(self) -> SwitchesSeen:
        """Return what the switches hold."""
        return SwitchesSeen.now(Realised(None, self.network, {}))


def set_up(pair: Sequence[PackagedController], network: Network, database: str, near: str, folder: Path) -> str:
    """Set the pair up as the manual says, on machines that have the packages; return the operator's token."""
    (folder / "network.yaml").write_text(yaml.safe_dump(section_of(network)))
    token = certified(pair, folder / "network.yaml", folder / "pki")
    more: dict[str, Any] = {
        "network": section_of(network),
        "flows": [
            {"name": f"raw-{host.name}", "class": "background", "from": host.name, "to": ELSEWHERE}
            for host in network.hosts
            if host.has_agent
        ],
        "store": database,
        "ovsdb": {switch.name: f"ssl:{near}:{OVSDB_PORT}" for switch in network.switches},
    }
    for number, one in enumerate(pair):
        (folder / "controller.yaml").write_text(configuration(pair, number, more))
        one.put(folder / "controller.yaml", "controller.yaml")
        one.debian.done(*CHECK)
        one.debian.done("systemctl", "restart", "headway-controller")
    return token


@contextmanager
def packaged_pair(root: Path, old: Path, new: Path, folder: Path) -> Iterator[Upgrade]:
    """Give a pair of the old packages that is set up, with a script that knows both, and all that hangs on it."""
    network = one_site(HOSTS, HERE, ELSEWHERE)
    versions = {"old": packages.found(old)[:2], "new": packages.found(new)[:2]}
    with ExitStack() as parts:
        forwards()
        ovs = parts.enter_context(PrivateOvs(Directories.standard()))
        database = parts.enter_context(CabledMachine(2))
        postgres = parts.enter_context(PrivatePostgres(database, DISK_BYTES))
        pair = parts.enter_context(two_machines(root, folder, versions))
        parts.callback(journals, pair, folder)
        for number, one in enumerate(pair):
            tell(0.1 + 0.1 * number, f"{one.name} is installed")
            one.install("old")
        tell(0.3, "the pair is set up")
        token = set_up(pair, network, postgres.url, database.near, folder)
        switch_calls(ovs, network, pair, folder / "pki")
        addresses = tuple(f"{one.address}:{AGENTS}" for one in pair)
        pki = folder / "pki"
        agents = tuple(
            PairAgent(host.name, addresses, agent_tls(pki, host.name)) for host in network.hosts if host.has_agent
        )
        calls = parts.enter_context(calling(agents))
        tls = ssl.create_default_context(cafile=str(pki / "ca.pem"))
        ends = network.hosts[0].name, ELSEWHERE
        script = Script(tuple(one.url for one in pair), ends, int(time.time()) + DAY_S, tls, token)
        version = versions["new"][1].name.split("_")[1]
        yield Upgrade(pair, network, version, token, tls, calls, script)


def switch_calls(ovs: PrivateOvs, network: Network, pair: Sequence[PackagedController], pki: Path) -> None:
    """Make the switch, and let it call both, by TLS, as ``docs/pki.md`` and the command that prints it say."""
    add_switches(ovs, network, str(OPENFLOW))
    (switch,) = network.switches
    stem = pki / "switches" / switch.name
    ovs.vsctl("set-ssl", f"{stem}.key", f"{stem}.pem", str(pki / "ovsdb/ca.pem"))
    ovs.vsctl("set-manager", f"pssl:{OVSDB_PORT}")
    both = [word for one in pair for word in ("--controller", f"ssl:{one.address}:{OPENFLOW}")]
    asked = [str(HEADWAY), "network", "ovs", str(pki.with_name("network.yaml")), *both]
    typed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    subprocess.run(["sh", "-ec", typed], check=True, env=ovs.environment)


def journals(pair: Sequence[PackagedController], folder: Path) -> None:
    """Keep what the machines' journals have."""
    for one in pair:
        said = one.debian.tried("journalctl", "--no-pager", "-o", "short-iso-precise").stdout
        (folder / f"{one.name}.log").write_text(said)


def main() -> int:
    """Go through all of it; write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, what in (("root", "Debian's files"), ("old", "folder of packages"), ("new", "folder of packages")):
        parser.add_argument(f"--{name}", type=Path, required=True, help=what)
    parser.add_argument("--out", type=Path, required=True, help="folder for report.json and the journals")
    asked = parser.parse_args()
    with packaged_pair(asked.root, asked.old, asked.new, asked.out) as upgrade:
        upgrade.settled()
        tell(0.5, "both are upgraded in turn")
        upgrade.watched("rolling upgrade", upgrade.upgraded)
        tell(0.75, "the leader lets the other one lead")
        upgrade.watched("moved", upgrade.moved)
        tell(0.8, "the leader's machine is turned off and on")
        upgrade.watched("turned off and on", upgrade.left_and_came_back)
        upgrade.in_the_end()
    report = stated(upgrade.aims)
    write_report(asked.out, report)
    print_aims(asked.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
