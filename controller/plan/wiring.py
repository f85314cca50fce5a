"""What switches show of themselves, against the network: who is there, and where each cable is. Pure.

A port is known by its number, which rules name, and by its name, which queues are for. Where both do not meet, or the
port is dead, what crosses it is not carried. A port that the network knows by its name alone has the number that its
switch shows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count

from topology.network import Hop, Link, Network, Switch
from topology.relinking import relinked

NOWHERE = 0xF000  # Open vSwitch numbers ports from 1; from here on stand those that a switch does not show (yet)
BRIDGE = 0xFFFF_FFFE  # OFPP_LOCAL, the bridge's own port: a host may be there, a circuit not
CLAIM_US = 30_000_000  # a switch that is turned away calls again within 8 s (Open vSwitch: max_backoff)


@dataclass(frozen=True, slots=True)
class SeenPort:
    """A port as its switch shows it: its interface's name, and whether it carries traffic."""

    name: str
    is_live: bool


SeenPorts = Mapping[int, SeenPort]  # by OpenFlow number


@dataclass(frozen=True, slots=True)
class PortFault:
    """A port that is not as the network has it.

    Attributes:
        hop: the direction that leaves by it.
        wanted: what it should be, for people.
        found: what it is; empty if there is no such port.
        todo: what a person can do.
        is_down: it is where it should be, and carries nothing.
    """

    hop: Hop
    wanted: str
    found: str
    todo: str
    is_down: bool = False

    def __str__(self) -> str:
        """Return what is wrong, for people."""
        return f"{self.hop.tail}: {self.wanted} to {self.hop.head} is {self.found or 'missing'}"


def port_links(network: Network, switch: str) -> Iterator[tuple[Hop, Link]]:
    """Yield each direction that leaves a switch, with its link."""
    return ((Hop(tail, head), link) for tail, head, link in network.links() if tail == switch)


def is_carried(link: Link, seen: SeenPorts) -> bool:
    """Return whether the port that a link leaves by has its number and its name, and is live."""
    if link.port_no:
        return seen.get(link.port_no) == SeenPort(link.port_name, is_live=True)
    found = SeenPort(link.port_name, is_live=True)
    return any(port == found and _fits(link, port_no) for port_no, port in seen.items())


def _fits(link: Link, port_no: int) -> bool:
    """Return whether a link can leave by a port: a circuit does not by the bridge's own."""
    return link.circuit is None or port_no != BRIDGE


def with_port_numbers(network: Network, switch: str, seen: SeenPorts) -> Network:
    """Return the network with the numbers of a switch's ports that it knows by name alone; itself if it knows all.

    A port that the switch does not show gets a number that no port has: what is for it goes nowhere until it comes. So
    does one whose number another port has by now.

    Args:
        network: that.
        switch: which.
        seen: the ports that the switch shows.
    """
    said = _said(network, switch)
    name_of = {port_no: port.name for port_no, port in seen.items()}
    if all(said.values()) and not any(_is_taken(name_of, port_no, name) for name, port_no in said.items()):
        return network
    numbers = {port_no for port_no in said.values() if port_no}
    ports = frozenset((port_no, name) for port_no, name in name_of.items() if name in said or port_no in numbers)
    return _numbered(network, switch, ports)  # what other ports a switch has makes no other network


@lru_cache(maxsize=1024)  # looked at for each plan
def _said(network: Network, switch: str) -> Mapping[str, int]:
    """Return the numbers that a network has for a switch's ports, by their names; 0 for none."""
    return {link.port_name: link.port_no for _, link in port_links(network, switch)}


def _is_taken(name_of: Mapping[int, str], port_no: int, name: str) -> bool:
    """Return whether another port than the one of this name has a number."""
    return name_of.get(port_no, name) != name


@lru_cache(maxsize=256)  # the same network for the same ports: rules that are kept are kept by it
def _numbered(network: Network, switch: str, shown: frozenset[tuple[int, str]]) -> Network:
    name_of, nowhere = dict(shown), count(NOWHERE)
    number_of = {name: port_no for port_no, name in shown}
    found: dict[Hop, int] = {}
    for hop, link in port_links(network, switch):
        is_taken = _is_taken(name_of, link.port_no, link.port_name)
        port_no = None if is_taken else link.port_no or number_of.get(link.port_name)
        found[hop] = port_no if port_no is not None and _fits(link, port_no) else next(nowhere)

    def changed(hop: Hop, link: Link) -> Link:
        return replace(link, port_no=found[hop]) if hop in found else link

    return relinked(network, network.framing, changed)


def port_faults(network: Network, switch: str, seen: SeenPorts) -> tuple[PortFault, ...]:
    """Return the ports of a switch that are not as the network has them.

    >>> from mininet_tests.testing.networks import chile_illinois
    >>> network = chile_illinois()
    >>> seen = {link.port_no: SeenPort(link.port_name, is_live=True) for _, link in port_links(network, "ls1")}
    >>> port_faults(network, "ls1", seen)
    ()
    >>> moved = {**seen, 1: SeenPort("spare", is_live=True), 7: seen[1]}
    >>> print(*port_faults(network, "ls1", moved))
    ls1: port 1 ls1-eth1 to base20 is port 7 ls1-eth1
    """
    number_of = {port.name: port_no for port_no, port in seen.items()}
    return tuple(
        _fault(hop, link, seen.get(link.port_no), number_of.get(link.port_name))
        for hop, link in port_links(network, switch)
        if not is_carried(link, seen)
    )


def _fault(hop: Hop, link: Link, at_number: SeenPort | None, number: int | None) -> PortFault:
    """Return what is wrong with a port: what has its number, and where the interface of its name is."""
    wanted, name = f"port {link.port_no or ''} {link.port_name}".replace("  ", " "), link.port_name
    request = f" -- set interface {name} ofport_request={link.port_no}" if link.port_no else ""
    is_there = number is not None and number == (link.port_no or number) and _fits(link, number)
    if number is not None and not _fits(link, number):
        found, todo = (
            "the bridge's own port",
            f"give circuit {link.circuit} a port of its own, and its name in the file",
        )
    elif is_there:
        found, todo = "down", f"see to the cable and to {hop.head}; or: ip link set {name} up"
    elif number is not None:
        found = f"port {number} {name}"
        todo = f"ovs-vsctl set interface {name} ofport_request={link.port_no}"
    else:
        found = f"port {link.port_no} {at_number.name}" if at_number and link.port_no else ""
        todo = f"ovs-vsctl add-port {hop.tail} {name}{request}"
    return PortFault(hop, wanted, found, todo, is_down=is_there)


@dataclass(frozen=True, slots=True)
class Claim:
    """A second connection that claims a switch's datapath id: from where, and when it called last, elapsed time."""

    address: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Wiring:
    """What switches have shown of themselves.

    Attributes:
        ports: by dpid of a connected switch, all its ports.
        gone: dpids of switches that were connected and are not.
        unknown: by dpid that is not in the network, where such a switch calls from.
        claims: by dpid, who claims it beside the switch that has it.
        faults: the ports that are not as the network has them, by the direction that leaves by them.
    """

    ports: Mapping[int, SeenPorts] = field(default_factory=dict)
    gone: frozenset[int] = frozenset()
    unknown: Mapping[int, str] = field(default_factory=dict)
    claims: Mapping[int, Claim] = field(default_factory=dict)
    faults: Mapping[Hop, PortFault] = field(default_factory=dict)

    def with_ports(self, network: Network, switch: Switch, seen: SeenPorts) -> "Wiring":
        """Return it after a switch has shown all its ports."""
        others = {hop: fault for hop, fault in self.faults.items() if hop.tail != switch.name}
        faults = {fault.hop: fault for fault in port_faults(network, switch.name, seen)}
        ports = {**self.ports, switch.dpid: dict(seen)}
        return replace(self, ports=ports, gone=self.gone - {switch.dpid}, faults={**others, **faults})

    def without(self, switch: Switch) -> "Wiring":
        """Return it after a switch has gone; its ports stay what they were said to be last."""
        ports = {dpid: seen for dpid, seen in self.ports.items() if dpid != switch.dpid}
        return replace(self, ports=ports, gone=self.gone | {switch.dpid})

    def with_unknown(self, dpid: int, address: str | None) -> "Wiring":
        """Return it after a switch that nobody knows has come; with no address, after it has gone."""
        rest = {known: where for known, where in self.unknown.items() if known != dpid}
        return replace(self, unknown=rest if address is None else {**rest, dpid: address})

    def with_claim(self, dpid: int, claim: Claim) -> "Wiring":
        """Return it after somebody has claimed a dpid that another switch has."""
        return replace(self, claims={**self.claims, dpid: claim})

    def without_claims_before(self, at_us: int) -> tuple["Wiring", tuple[int, ...]]:
        """Return it without claims that were not renewed since then, and the dpids that were claimed."""
        over = tuple(dpid for dpid, claim in self.claims.items() if claim.at_us < at_us)
        return replace(self, claims={dpid: c for dpid, c in self.claims.items() if dpid not in over}), over
