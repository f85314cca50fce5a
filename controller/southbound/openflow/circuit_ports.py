"""The ports by which circuits leave a switch, and the numbers that each class has there. Pure."""

from collections.abc import Mapping
from functools import lru_cache

from topology.network import Link, Network
from topology.protocol import FlowClass

# What no rule has given a queue leaves by queue 0, so that one is the unplanned class's.
QUEUE_ID = {FlowClass.UNPLANNED: 0, FlowClass.PREDICTABLE: 1, FlowClass.URGENT: 2, FlowClass.BACKGROUND: 3}
FIRST_METER_ID = 1000
FIRST_SENDER_METER_ID = 2000  # those before are the classes' own
FIRST_GROUP_ID = 1000
MOST_CIRCUITS = (FIRST_SENDER_METER_ID - FIRST_METER_ID) // len(
    QUEUE_ID
)  # that leave a switch, by their meters' numbers


def circuit_ports(network: Network, switch: str) -> list[tuple[str, Link]]:
    """Return (neighbour, link) of each circuit that leaves a switch, in the network's order."""
    return network.circuit_links_from(switch)


@lru_cache(maxsize=1024)
def far_edges(network: Network, switch: str) -> Mapping[int, str]:
    """Return where circuits from a switch end that end at a site which is not ours, by the port that they leave by."""
    ends = {link.port_no: network.against(switch, head).tail for head, link in circuit_ports(network, switch)}
    return {port_no: end for port_no, end in ends.items() if not network.is_ours(end)}


def links_beside(network: Network, hop: tuple[str, str]) -> list[Link]:
    """Return the other circuits from the same switch to the same switch, the shorter delay first."""
    far, _ = network.against(*hop)
    leaving = circuit_ports(network, hop[0])
    others = [link for head, link in leaving if head != hop[1] and network.against(hop[0], head)[0] == far]
    return sorted(others, key=lambda link: link.delay_us)


def group_id(network: Network, hop: tuple[str, str]) -> int:
    """Return the group that a circuit link begins with, at the switch it leaves."""
    return FIRST_GROUP_ID + _index(network, hop)


def meter_id(network: Network, hop: tuple[str, str], flow_class: FlowClass) -> int:
    """Return the meter of a class on the circuit link that ``hop`` is, at the switch it leaves."""
    return FIRST_METER_ID + len(QUEUE_ID) * _index(network, hop) + QUEUE_ID[flow_class]


def _index(network: Network, hop: tuple[str, str]) -> int:
    """Return the place of a circuit link among those that leave its switch."""
    return _places(network, hop[0])[hop[1]]


@lru_cache(maxsize=1024)
def _places(network: Network, switch: str) -> Mapping[str, int]:
    """Return the places of the circuits that leave a switch, by where they lead."""
    return {head: place for place, (head, _) in enumerate(circuit_ports(network, switch))}


def too_many_circuits(network: Network) -> tuple[str, ...]:
    """Return of each switch with more circuits than there are numbers for their meters, that it has."""
    counts = {switch.name: len(circuit_ports(network, switch.name)) for switch in network.switches}
    return tuple(
        f"switch {name} has {count} circuits; {MOST_CIRCUITS} at most have meters: spread them over more switches"
        for name, count in counts.items()
        if count > MOST_CIRCUITS
    )
