"""A network's file begun from what switches say: what they cannot say is marked, what was guessed is said. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice, zip_longest

from apps.cli.network_asked import FoundBridge, FoundPort
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


def drafted(bridges: Sequence[FoundBridge]) -> str:
    """Return the text of a file to be completed: wherever it says TODO, and its comments say what was guessed.

    A port that is called like a way out (``wan``, ``uplink``, ``vxlan`` ...) is taken for a circuit's, every other one
    for a host's. Circuits join the first such port of one bridge to the first of another, and so on.
    """
    return "\n".join(_lines(bridges)) + "\n"


def _lines(bridges: Sequence[FoundBridge]) -> Iterator[str]:
    yield f"# Begun by headway network draft. Complete what says {TODO}, and look at what was guessed; docs/network.md"
    yield "# has every key. Then: headway network show FILE, headway controller --check."
    repeated = sorted({b.name for b in bridges if sum(b.name == other.name for other in bridges) > 1})
    for name in repeated:
        yield f'# Two bridges are called "{name}": give one of them another name on its machine, then here.'
    yield f"name: {TODO}                 # the network's"
    largest = [port.mtu_bytes for bridge in bridges for port in bridge.ports if port.mtu_bytes]
    yield f"mtu: {min(largest, default=_USUAL_MTU_BYTES)}                  # the smallest that a port has"
    yield "sites:"
    names = _site_names(bridges)
    for bridge, site in zip(bridges, names, strict=True):
        yield f"  {site}:  # {_where(bridge)}"
        dpid = f'"{bridge.dpid:016x}"' if bridge.dpid else TODO
        yield f"    switch: {{name: {bridge.name}, dpid: {dpid}}}"
        hosts = [port for port in bridge.ports if not _leads_out(port)]
        yield "    hosts:" if hosts else "    hosts: {}  # no port that looks like a host's"
        for port in hosts:
            yield f"      {site}-{_plain(port.name)}: {{address: {TODO}, {_port(port)}}}{_remark(port)}"
    yield from _circuits(bridges)


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


def _port(port: FoundPort) -> str:
    number = f"number: {port.port_no}, " if port.port_no else ""
    return f"port: {port.name}, {number}rate: {_rate(port)}"


def _rate(port: FoundPort) -> str:
    return shown_rate(port.rate_bps) if port.rate_bps else TODO


def _remark(port: FoundPort) -> str:
    said = [f"a bond of {port.interfaces} interfaces: the first is named"] if port.interfaces > 1 else []
    said += [] if port.rate_bps else ["its interface does not say its rate"]
    return f"  # {'; '.join(said)}" if said else ""


def _leads_out(port: FoundPort) -> bool:
    return bool(_CIRCUIT_PORT.search(port.name))


def _site_names(bridges: Iterable[FoundBridge]) -> list[str]:
    """Return a name for each site that no host, switch or other site has."""
    bridges = list(bridges)
    taken = {bridge.name for bridge in bridges}
    names = []
    for bridge in bridges:
        wanted = _plain(bridge.machine.partition(".")[0]) or f"site-{_plain(bridge.name)}"
        others = (f"site-{_plain(bridge.name)}{f'-{n}' if n else ''}" for n in count())
        name = next(name for name in (wanted, *islice(others, len(bridges))) if name not in taken)
        taken.add(name)
        names.append(name)
    return names


def _where(bridge: FoundBridge) -> str:
    return (
        f"guessed: named after its machine, {bridge.machine}" if bridge.machine else "guessed: its machine has no name"
    )


def _plain(name: str) -> str:
    return _NOT_OF_A_NAME.sub("-", name)
