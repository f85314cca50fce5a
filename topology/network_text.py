"""A network as YAML, written: what ``network_file`` reads again as the same network."""

from typing import Any

import yaml

from topology.addresses import Prefix, shown_address
from topology.network import Circuit, Host, Link, Network, Switch
from topology.network_file import PORT_BUFFER_US

_PREFIXES = (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3), ("", 1))


def section_of(network: Network) -> dict[str, Any]:
    """Return what the file of a network says, or the section ``network`` of the controller's configuration."""
    sites: dict[str, dict[str, Any]] = {}
    for site in network.sites:
        switches = [switch for switch in network.switches if switch.site == site]
        if switches:
            hosts = [host for host in network.hosts if host.site == site and not host.interface_of]
            sites[site] = _switches(switches) | {"hosts": {host.name: _host(network, host) for host in hosts}}
    for edge in network.far_edges:
        sites[edge.site] = {"prefixes": list(map(str, network.host(edge.site).prefixes))}
    circuits = {circuit.name: _circuit(network, circuit) for circuit in network.circuits}
    return {"name": network.name, "mtu": network.framing.mtu_bytes, "sites": sites, "circuits": circuits}


def _switches(switches: list[Switch]) -> dict[str, Any]:
    """Return what is said of a site's switches: of its only one, or of each by its name."""
    if len(switches) > 1:
        return {"switches": {switch.name: {"dpid": f"{switch.dpid:016x}"} for switch in switches}}
    return {"switch": {"name": switches[0].name, "dpid": f"{switches[0].dpid:016x}"}}


def _host(network: Network, host: Host) -> dict[str, Any]:
    """Return what is said of a host: of its only interface, or of each by its name."""
    agent = {} if host.has_agent else {"agent": False}
    if not host.interface:
        return agent | _interface(network, host)
    several = (one for one in network.hosts if one.machine == host.name)
    return agent | {"interfaces": {one.interface: _interface(network, one) for one in several}}


def _interface(network: Network, host: Host) -> dict[str, Any]:
    switch = next(iter(network.graph.successors(host.name)))
    is_one_of_several = sum(other.site == host.site for other in network.switches) > 1
    where = {"switch": switch} if is_one_of_several else {}
    return _addresses(host) | where | _port(network.link(switch, host.name))


def file_text(network: Network) -> str:
    """Return the text of a network's file."""
    return yaml.safe_dump(section_of(network), sort_keys=False, default_flow_style=None, width=120)


def _circuit(network: Network, circuit: Circuit) -> dict[str, Any]:
    az, za = network.links_of(circuit)
    ends = {
        side: _end(network, name) | _port(link)
        for side, name, link in (("a", circuit.a_end, az), ("z", circuit.z_end, za))
    }
    delay = "delay_at_most" if az.is_bound else "delay"
    said: dict[str, Any] = {delay: _exact(az.delay_us, (("s", 10**6), ("ms", 10**3), ("us", 1)))}
    if az.rate_bps == za.rate_bps:
        said = {"rate": ends["a"].pop("rate"), **said}
        del ends["z"]["rate"]
    return {**said, **ends}


def _end(network: Network, name: str) -> dict[str, Any]:
    """Return what is said of the place where a circuit ends."""
    far = {edge.name: edge.site for edge in network.far_edges}
    return {"site": far[name]} if name in far else {"switch": name}


def _addresses(host: Host) -> dict[str, Any]:
    """Return what is said of a host's addresses: the only one if it has one, else all."""
    if len(host.prefixes) == 1 and not isinstance(host.ip, Prefix):
        return {"address": str(host.ip)}
    return {"addresses": [str(host.ip), *map(shown_address, host.others)]}


def _port(link: Link) -> dict[str, Any]:
    """Return what is said of the port that a link leaves by."""
    said: dict[str, Any] = {"port": link.port_name} if link.port_name else {}
    if link.port_no:
        said["number"] = link.port_no
    said["rate"] = _exact(link.rate_bps, tuple((f"{prefix}bit/s", n) for prefix, n in _PREFIXES))
    if link.buffer_bytes != link.rate_bps * PORT_BUFFER_US // 8_000_000:
        said["buffer"] = _exact(link.buffer_bytes, tuple((f"{prefix}B", n) for prefix, n in _PREFIXES))
    if link.vlan_vid is not None:
        said["vlan"] = link.vlan_vid
    return said


def _exact(number: int, units: tuple[tuple[str, int], ...]) -> str:
    """Return a quantity in the largest unit in which it is whole."""
    unit, size = next((unit, size) for unit, size in units if number % size == 0 and (number or size == 1))
    return f"{number // size} {unit}"
