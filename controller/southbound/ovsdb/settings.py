"""The section ``ovsdb``: which server has a switch's queues; and what Open vSwitch's queues ask of a policy."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from controller.plan.policy import Policy
from topology import units
from topology.addresses import host_and_port
from topology.network import Network
from topology.problems import Problems
from topology.wire import PPM

LEAST_QUEUE_WIRE_BPS = 13_000  # linux-htb in Open vSwitch: 1500 B/s = 12 kbit/s of frames; a little more on the wire
DEFAULT_OVSDB = "unix:/run/openvswitch/db.sock"


def servers(
    section: Mapping[str, str], switches: Iterable[str] | None, problems: Problems, *, tls: bool
) -> dict[str, str]:
    """Return, by switch, the server that has its queues; a problem for each switch that there is not.

    Args:
        section: that.
        switches: those that there are; None if that is not known.
        problems: those of the section.
        tls: whether there is something to show to switches, ``tls.switches``.
    """
    known = set(section if switches is None else switches)
    for name, remote in section.items():
        if name not in known:
            problems.at(name).add("there is no such switch")
        if not is_server(remote):
            problems.at(name).add(
                f'"{remote[:80]}" is no database, need unix:/PATH, ssl:ADDRESS:PORT or tcp:ADDRESS:PORT'
            )
        if remote.startswith("ssl:") and not tls:
            problems.at(name).add(
                f'"{remote}" needs what is shown to switches: say tls: {{..., switches: {{certificate: NAME.pem, key: '
                "NAME.key}}, made by: headway pki ovsdb DIR --name NAME"
            )
    return {name: section.get(name, DEFAULT_OVSDB) for name in known}


def is_server(remote: str) -> bool:
    """Return whether a server can be dialled by this: the ovs package looks no names up.

    >>> is_server("unix:/run/openvswitch/db.sock"), is_server("tcp:[::1]:6640"), is_server("ssl:s1.example.org:6640")
    (True, True, False)
    """
    transport, _, where = remote.partition(":")
    if transport == "unix":
        return where.startswith("/") and "\0" not in where
    host, _ = host_and_port(where) or ("", 0)
    try:
        ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return transport in {"ssl", "tcp"}


def check_guarantees(network: Network, policy: Policy, problems: Problems) -> None:
    """Add a problem for each class whose guarantee is less than a queue can be given.

    Args:
        network: has the circuits, a share of which is guaranteed.
        policy: the guarantees.
        problems: those of the section ``policy``.
    """
    for circuit in network.circuits:
        for flow_class, limits in policy.classes.items():
            if circuit.rate_bps * limits.guarantee_ppm // PPM < LEAST_QUEUE_WIRE_BPS:
                problems.at(flow_class, "guarantee").add(
                    f"{limits.guarantee_ppm / 10_000:g}% of {units.shown_rate(circuit.rate_bps)} is less than "
                    f"{units.shown_rate(LEAST_QUEUE_WIRE_BPS)}, the least that a queue of Open vSwitch can be given"
                )
