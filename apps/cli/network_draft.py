"""A network's file begun from what switches and agents say: what is missing or guessed is said. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, zip_longest

from apps.cli.network_asked import FoundBridge, FoundPort
from topology.protocol import Hello, HostInterface
from topology.units import shown_rate

TODO = "TODO"
_CIRCUIT_PORT = re.compile(r"wan|uplink|circuit|trunk|vxlan|gre|wave|oscars", re.IGNORECASE)
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_USUAL_MTU_BYTES = 1500


@dataclass(frozen=True, slots=True)
class _Side:
    """One end of a circuit."""

    bridge: FoundBridge
    port: FoundPort


@dataclass(frozen=True, slots=True)
class _Caller:
    """A host whose agent has called, and the interface that its data is taken to leave by."""

    hello: Hello
    interface: HostInterface

    @property
    def addresses(self) -> str:
        """The interface's, as the file has them."""
        shown = [f'"{one}"' if one.version == 6 else str(one) for one in self.interface.addresses]
        return f"address: {shown[0]}" if len(shown) == 1 else f"addresses: [{', '.join(shown)}]"

    @property
    def others(self) -> str:
        """The host's further interfaces, for people; empty if it has none."""
        others = [one for one in self.hello.interfaces if one.name != self.interface.name and _reachable(one)]
        return ", ".join(f"{one.name} {' '.join(map(str, one.addresses))}" for one in others)


def drafted(bridges: Sequence[FoundBridge], hellos: Iterable[Hello] = ()) -> str:
    """Return the text of a file to be completed: wherever it says TODO, and its comments say what was guessed.

    A port that is called like a way out (``wan``, ``uplink``, ``vxlan`` ...) is taken for a circuit's, every other one
    for a host's: for that of an agent that has called, if the port is called after it. Circuits join the first such
    port of one bridge to the first of another, and so on.

    Args:
        bridges: what switches say.
        hellos: what agents say.
    """
    callers = [caller for hello in hellos if (caller := _caller(hello)) is not None]
    return "\n".join(_lines(bridges, callers)) + "\n"


def _caller(hello: Hello) -> _Caller | None:
    """Return the host with the fastest interface that data can leave by; None if it has told of none."""
    known = [one for one in hello.interfaces if _reachable(one)]
    return _Caller(hello, max(known, key=lambda one: one.rate_bps)) if known else None


def _reachable(interface: HostInterface) -> bool:
    return any(not address.is_link_local for address in interface.addresses)


def _lines(bridges: Sequence[FoundBridge], callers: Sequence[_Caller]) -> Iterator[str]:
    at_ports = _at_ports(bridges, callers)
    yield f"# Begun by headway network draft. Complete what says {TODO}, and look at what was guessed; docs/network.md"
    yield "# has every key. Then: headway network show FILE, headway controller --check."
    repeated = sorted({b.name for b in bridges if sum(b.name == other.name for other in bridges) > 1})
    for name in repeated:
        yield f'# Two bridges are called "{name}": give one of them another name on its machine, then here.'
    yield f"name: {TODO}                 # the network's"
    largest = [port.mtu_bytes for bridge in bridges for port in bridge.ports if port.mtu_bytes]
    largest += [caller.interface.mtu_bytes for caller in callers if caller.interface.mtu_bytes]
    whose = "port or an agent's host" if callers else "port"
    yield f"mtu: {min(largest, default=_USUAL_MTU_BYTES)}                  # the smallest that a {whose} has"
    yield "sites:"
    names = _site_names(bridges, callers)
    for bridge, site in zip(bridges, names, strict=True):
        yield f"  {site}:  # {_where(bridge)}"
        dpid = f'"{bridge.dpid:016x}"' if bridge.dpid else TODO
        yield f"    switch: {{name: {bridge.name}, dpid: {dpid}}}"
        hosts = [port for port in bridge.ports if not _leads_out(port)]
        yield "    hosts:" if hosts else "    hosts: {}  # no port that looks like a host's"
        for port in hosts:
            caller = at_ports.get((bridge, port))
            name = f"{site}-{_plain(port.name)}" if caller is None else caller.hello.host
            address = f"address: {TODO}" if caller is None else caller.addresses
            yield f"      {name}: {{{address}, {_port(port, caller)}}}{_remark(port, caller)}"
    yield from _elsewhere(caller for caller in callers if caller not in at_ports.values())
    yield from _circuits(bridges)


def _at_ports(
    bridges: Iterable[FoundBridge], callers: Iterable[_Caller]
) -> dict[tuple[FoundBridge, FoundPort], _Caller]:
    """Return whose port each is that is called after a host whose agent has called, by bridge and port."""
    found: dict[tuple[FoundBridge, FoundPort], _Caller] = {}
    ports = [(bridge, port) for bridge in bridges for port in bridge.ports if not _leads_out(port)]
    for caller in callers:
        name = re.compile(rf"(?<![a-z0-9]){re.escape(caller.hello.host)}(?![a-z0-9])", re.IGNORECASE)
        where = next((at for at in ports if at not in found and name.search(at[1].name)), None)
        if where is not None:
            found[where] = caller
    return found


def _elsewhere(callers: Iterable[_Caller]) -> Iterator[str]:
    """Yield, as comments, the hosts whose port nothing tells."""
    for number, caller in enumerate(callers):
        if number == 0:
            yield "# These agents called too, and no port is called after them: write them in place of a host above."
        rate = f", rate: {shown_rate(caller.interface.rate_bps)}" if caller.interface.rate_bps else ""
        others = f"; also {caller.others}" if caller.others else ""
        yield f"#   {caller.hello.host}: {{{caller.addresses}{rate}}}  its {caller.interface.name}{others}"


def _circuits(bridges: Sequence[FoundBridge]) -> Iterator[str]:
    sides = [[_Side(bridge, port) for port in bridge.ports if _leads_out(port)] for bridge in bridges]
    pairs, alone = _joined(sides)
    yield "circuits:" if pairs else f"circuits: {{}}  # {TODO}: no two ports look like the ends of one"
    for number, (a, z) in enumerate(pairs, 1):
        yield f"  circuit-{number}:  # guessed: that these two ports are its ends"
        yield f"    delay: {TODO}  # one way, as in 90 ms; not known: delay_at_most: 300 ms"
        for key, side in (("a", a), ("z", z)):
            yield f"    {key}: {{switch: {side.bridge.name}, {_port(side.port)}}}{_remark(side.port)}"
    for side in alone:
        yield f"# {side.bridge.name} {side.port.name}: a circuit's, by its name; no port was left for its far end"


def _joined(sides: Sequence[Sequence[_Side]]) -> tuple[list[tuple[_Side, _Side]], list[_Side]]:
    """Return the ports that look out, as pairs of two bridges in the order they were given, and those without one."""
    pairs, alone = [], []
    for each in zip_longest(*sides):
        row = [side for side in each if side is not None]
        pairs += list(zip(row[::2], row[1::2], strict=False))
        alone += row[len(row) // 2 * 2 :]
    return pairs, alone


def _port(port: FoundPort, caller: _Caller | None = None) -> str:
    number = f"number: {port.port_no}, " if port.port_no else ""
    rate_bps = _rate_bps(port, caller)
    return f"port: {port.name}, {number}rate: {shown_rate(rate_bps) if rate_bps else TODO}"


def _rate_bps(port: FoundPort, caller: _Caller | None) -> int:
    """Return the rate of a port, or of what is at it; 0 if neither says it."""
    return port.rate_bps or (caller.interface.rate_bps if caller is not None else 0)


def _remark(port: FoundPort, caller: _Caller | None = None) -> str:
    said = [f"guessed: that it is the host's {caller.interface.name}, by the port's name"] if caller is not None else []
    said += [f"the host also has {caller.others}"] if caller is not None and caller.others else []
    said += [f"a bond of {port.interfaces} interfaces: the first is named"] if port.interfaces > 1 else []
    said += [] if _rate_bps(port, caller) else ["its interface does not say its rate"]
    return f"  # {'; '.join(said)}" if said else ""


def _leads_out(port: FoundPort) -> bool:
    return bool(_CIRCUIT_PORT.search(port.name))


def _site_names(bridges: Iterable[FoundBridge], callers: Iterable[_Caller]) -> list[str]:
    """Return a name for each site that no host, switch or other site has."""
    bridges = list(bridges)
    taken = {bridge.name for bridge in bridges} | {caller.hello.host for caller in callers}
    names = []
    for bridge in bridges:
        wanted = _plain(bridge.machine.partition(".")[0]) or f"site-{_plain(bridge.name)}"
        others = (f"site-{_plain(bridge.name)}{f'-{n}' if n else ''}" for n in count())
        name = next(name for name in chain((wanted,), others) if name not in taken)
        taken.add(name)
        names.append(name)
    return names


def _where(bridge: FoundBridge) -> str:
    return (
        f"guessed: named after its machine, {bridge.machine}" if bridge.machine else "guessed: its machine has no name"
    )


def _plain(name: str) -> str:
    return _NOT_OF_A_NAME.sub("-", name)
