"""A network from a file as one machine can emulate it: its interfaces renamed, its circuits as asked. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network

from topology.addresses import shown_address
from topology.network import Hop, Link, Network, Switch
from topology.relinking import relinked

MOST_HOSTS = 12
LONGEST_INTERFACE = 15  # of Linux, IFNAMSIZ without its end
LONGEST_CIRCUIT_PORT = 10  # the line's own interface has "-line" behind it
LONGEST_HOST = 10  # its interface has "-eth0" behind it
MANAGEMENT = IPv4Network("192.168.231.0/24")  # over which agents reach the controller
OF_THE_EMULATION = ("mgmt", "lo")


@dataclass(frozen=True, slots=True)
class CircuitChanges:
    """What is to be otherwise than the file says, by circuit.

    Attributes:
        rate_bps: each way, on the wire.
        delay_us: one way.
    """

    rate_bps: Mapping[str, int] = field(default_factory=dict)
    delay_us: Mapping[str, int] = field(default_factory=dict)


def problems(network: Network, named: Mapping[str, str]) -> list[str]:
    """Return why a network cannot be emulated here, all of it.

    Args:
        network: that.
        named: by what was asked for, such as ``--delay``, a circuit's name it has.
    """
    return [*_too_much(network), *_unknown(network, named)]


def _too_much(network: Network) -> Iterator[str]:
    if len(network.hosts) > MOST_HOSTS:
        yield f"{len(network.hosts)} hosts: at most {MOST_HOSTS} can be emulated on one machine"
    for host in network.hosts:
        if len(host.name) > LONGEST_HOST:
            yield f'host "{host.name}": a name of at most {LONGEST_HOST} characters is needed, for its interfaces'
        for prefix in (one for one in host.prefixes if one.overlaps(MANAGEMENT)):
            address = shown_address(prefix)
            yield f'host "{host.name}": {address} is of {MANAGEMENT}, over which the emulation reaches its agents'
    for name in network.edge_sites:
        if len(name) > LONGEST_INTERFACE:
            yield f'switch "{name}": a name of at most {LONGEST_INTERFACE} characters is needed'


def _unknown(network: Network, named: Mapping[str, str]) -> Iterator[str]:
    known = [circuit.name for circuit in network.circuits]
    for option, name in named.items():
        if name not in known:
            yield f'{option}: there is no circuit "{name}"; there are {", ".join(known)}'


def emulable(network: Network, changes: CircuitChanges) -> Network:
    """Return the network with other rates and delays, and with port names that are all different.

    All switches are bridges of one machine, so what two of them may both have, such as ``eth1``, is renamed to ``p1``,
    ``p2`` and so on, and so is what is too long. A buffer keeps the time that it holds.
    """
    taken = {*OF_THE_EMULATION, *network.edge_sites, *(f"m-{host.name}" for host in network.hosts)}
    taken |= {f"x{number}" for number in range(network.graph.number_of_edges())}  # of far ports, see ends.py
    names: dict[Hop, str] = {}
    for tail, head, link in network.links():
        if isinstance(network.graph.nodes[tail]["node"], Switch):
            names[Hop(tail, head)] = name = _port_name(link, taken)
            taken.add(name)

    def changed(hop: Hop, link: Link) -> Link:
        circuit = link.circuit or hop.tail  # behind a line, which is a node and has its circuit's name
        rate_bps = changes.rate_bps.get(circuit, link.rate_bps)
        return replace(
            link,
            port_name=names.get(hop, link.port_name),
            rate_bps=rate_bps,
            buffer_bytes=link.buffer_bytes * rate_bps // link.rate_bps,
            delay_us=changes.delay_us.get(circuit, link.delay_us) if link.circuit else link.delay_us,
            is_bound=False,  # what is emulated is known
        )

    return relinked(network, network.framing, changed)


def _port_name(link: Link, taken: set[str]) -> str:
    longest = LONGEST_CIRCUIT_PORT if link.circuit else LONGEST_INTERFACE
    if len(link.port_name) <= longest and link.port_name not in taken:
        return link.port_name
    number = 1
    while f"p{number}" in taken:
        number += 1
    return f"p{number}"
