"""A network as lines of text: drawn as a tree, and as what is typed to make its bridges."""

from collections.abc import Iterator, Sequence

from topology.addresses import shown_address
from topology.network import Host, Link, Network, Switch
from topology.units import shown_rate, shown_size

CALLS = "max_backoff=1000 inactivity_probe=5000"  # docs/faults.md says why


def tree(network: Network) -> Iterator[str]:
    """Yield the lines of a drawing: each site with its switch, below it its hosts and the circuits that end there."""
    counts = ((len(network.sites), "site"), (len(network.hosts), "host"), (len(network.circuits), "circuit"))
    said = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
    yield f"{network.name}: {said}, MTU {network.framing.mtu_bytes}"
    for switch in network.switches:
        rows = [*_hosts(network, switch), *_circuits(network, switch)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        yield ""
        yield f"{switch.site}: {switch.name} ({switch.dpid:016x})"
        for number, row in enumerate(rows, start=1):
            cells = (cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True))
            yield f"{'└' if number == len(rows) else '├'}─ {'  '.join(cells)}".rstrip()
    for edge in network.far_edges:
        yield ""
        yield f"{edge.site}: not ours ({' '.join(map(shown_address, network.host(edge.site).prefixes))})"


def not_ours(network: Network) -> Iterator[str]:
    """Yield, for each site that is not ours, what cannot be planned there, and what cannot be known."""
    for edge in network.far_edges:
        by = ", ".join(c.name for c in network.circuits if edge.name in (c.a_end, c.z_end))
        yield (
            f"{edge.site} is not ours: what is sent to it by {by} is planned; what comes from there is not, "
            "and what is free behind the circuit's far end is not known"
        )


def _hosts(network: Network, switch: Switch) -> Iterator[tuple[str, str, str, str]]:
    for host in at_switch(network, switch):
        link = network.link(switch.name, host.name)
        more = [] if host.has_agent else ["(no agent)"]
        yield _port(link), host.name, shown_rate(link.rate_bps), " ".join((*map(shown_address, host.prefixes), *more))


def _circuits(network: Network, switch: Switch) -> Iterator[tuple[str, str, str, str]]:
    sites = network.edge_sites
    for circuit in network.circuits:
        ends = zip((circuit.a_end, circuit.z_end), network.links_of(circuit), strict=True)
        for (near, link), far in zip(ends, (circuit.z_end, circuit.a_end), strict=True):
            if near == switch.name:
                buffer = f"buffer {shown_size(link.buffer_bytes)}"
                vlan = f", VLAN {link.vlan_vid}" if link.vlan_vid is not None else ""
                more = f"{link.said_delay}, {buffer}{vlan}"
                yield _port(link), f"{circuit.name} ══ {sites[far]}", shown_rate(link.rate_bps), more


def _port(link: Link) -> str:
    return f"{link.port_name} ({link.port_no})" if link.port_no else link.port_name


def at_switch(network: Network, switch: Switch) -> tuple[Host, ...]:
    """Return the hosts that hang on a switch."""
    return tuple(host for host in network.hosts if network.graph.has_edge(switch.name, host.name))


def bridge_lines(network: Network, switch: Switch, controllers: Sequence[str]) -> tuple[str, ...]:
    """Return what is typed where a switch is, so that it is as the network has it; ``docs/faults.md`` says why.

    Args:
        network: where it is.
        switch: that.
        controllers: what it calls, as Open vSwitch has it (``tcp:192.0.2.1:6653``); of a pair, both.
    """
    name, dpid = switch.name, f"{switch.dpid:016x}"
    lines = [
        f"# {name}, at {switch.site}: nothing passes from its first controller on until that has given it its rules",
        f"ovs-vsctl --may-exist add-br {name}",
        f"ovs-vsctl set bridge {name} other-config:datapath-id={dpid} fail_mode=secure protocols=OpenFlow13",
    ]
    for head in network.graph.successors(name):
        link = network.link(name, head)
        if link.port_name == name:  # the bridge's own: it is there with it, and add-port refuses it
            continue
        asked = f" -- set interface {link.port_name} ofport_request={link.port_no}" if link.port_no else ""
        lines.append(f"ovs-vsctl --may-exist add-port {name} {link.port_name}{asked}")
    if any(each.startswith("ssl:") for each in controllers):
        lines.append("# the switch's key, its certificate, and who signed the controller's: ovs-vsctl set-ssl")
    return *lines, *_called(name, controllers)


def _called(name: str, controllers: Sequence[str]) -> tuple[str, ...]:
    """Return what lets a bridge call controllers. Several records have no name of their own to be set by afterwards."""
    if len(controllers) == 1:
        return f"ovs-vsctl set-controller {name} {controllers[0]}", f"ovs-vsctl set controller {name} {CALLS}"
    made = (f"""--id=@c{n} create controller 'target="{each}"' {CALLS}""" for n, each in enumerate(controllers))
    ids = ",".join(f"@c{n}" for n in range(len(controllers)))
    return (f"ovs-vsctl -- {' -- '.join(made)} -- set bridge {name} controller={ids}",)
