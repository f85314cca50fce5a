"""A network as a picture: a box for each site, round a ring, and a line for each circuit. Pure text of SVG."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from xml.sax.saxutils import escape

from apps.cli.network_text import at_switch
from topology.addresses import shown_address
from topology.network import Network, Switch
from topology.units import shown_rate

MOST_HOSTS = 12  # drawn in a box; of more, how many they are
_WIDTH, _LINE, _GAP, _MARGIN, _BEND = 250, 16, 210, 40, 84
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.site{font-weight:bold;font-size:14px}.box{fill:#f4f7fa;stroke:#446}"
    ".circuit{fill:none;stroke:#1769aa;stroke-width:2.5}.label{fill:#fff;fill-opacity:.9}"
)


@dataclass(frozen=True, slots=True)
class _Box:
    """A site: where its middle is, how high it is, and what stands in it."""

    x: float
    y: float
    height: int
    lines: tuple[str, ...]


def drawn(network: Network) -> str:
    """Return a picture of a network, a document of SVG 1.1."""
    boxes = _boxes(network)
    parts = [*_lines(network, boxes), *(part for box in boxes.values() for part in _box(box))]
    left = min(box.x for box in boxes.values()) - _WIDTH / 2 - _MARGIN
    right = max(box.x for box in boxes.values()) + _WIDTH / 2 + _MARGIN
    beside = _BEND * max(len(together) for together in _together(network).values()) / 2
    top = min(box.y - box.height / 2 for box in boxes.values()) - _MARGIN - beside
    bottom = max(box.y + box.height / 2 for box in boxes.values()) + _MARGIN + beside
    size = f'viewBox="{left:.0f} {top:.0f} {right - left:.0f} {bottom - top:.0f}" width="{right - left:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    said = f"<title>{escape(network.name)}</title><style>{_STYLE}</style>"
    return "\n".join((head, said, *parts, "</svg>")) + "\n"


def _boxes(network: Network) -> dict[str, _Box]:
    """Return each switch's box, far enough apart that none covers another."""
    texts = {switch.name: _texts(network, switch) for switch in network.switches}
    for edge in network.far_edges:
        texts[edge.name] = edge.site, "not ours", *map(shown_address, network.host(edge.site).prefixes)
    heights = {name: 20 + _LINE * len(lines) for name, lines in texts.items()}
    apart = hypot(_WIDTH, max(heights.values())) + _GAP
    radius = apart / 2 / sin(pi / max(len(texts), 2))
    angle = {name: pi + 2 * pi * number / len(texts) for number, name in enumerate(texts)}
    return {
        name: _Box(radius * cos(angle[name]), radius * sin(angle[name]), heights[name], lines)
        for name, lines in texts.items()
    }


def _texts(network: Network, switch: Switch) -> tuple[str, ...]:
    hosts = at_switch(network, switch)
    rates = (shown_rate(network.link(switch.name, host.name).rate_bps) for host in hosts)
    lines = [f"{host.name}  {host.ip}  {rate}" for host, rate in zip(hosts, rates, strict=True)]
    more = [f"and {len(lines) - MOST_HOSTS} hosts more"] if len(lines) > MOST_HOSTS else []
    return switch.site, f"{switch.name}  {switch.dpid:016x}", *lines[:MOST_HOSTS], *more


def _box(box: _Box) -> Iterator[str]:
    left, top = box.x - _WIDTH / 2, box.y - box.height / 2
    yield f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{_WIDTH}" height="{box.height}" rx="6"/>'
    for number, line in enumerate(box.lines):
        kind = ' class="site"' if number == 0 else ""
        yield f'<text x="{left + 10:.1f}" y="{top + 20 + _LINE * number:.1f}"{kind}>{escape(line)}</text>'


def _together(network: Network) -> dict[frozenset[str], list[str]]:
    """Return the circuits that join the same two switches."""
    found: dict[frozenset[str], list[str]] = defaultdict(list)
    for circuit in network.circuits:
        found[frozenset((circuit.a_end, circuit.z_end))].append(circuit.name)
    return found


def _lines(network: Network, boxes: dict[str, _Box]) -> Iterator[str]:
    """Yield each circuit's line and label; those that join the same two switches are bent apart."""
    together, names = _together(network), [*boxes]
    for circuit in network.circuits:
        beside = together[frozenset((circuit.a_end, circuit.z_end))]
        first, last = sorted((circuit.a_end, circuit.z_end), key=names.index)
        a, z = boxes[first], boxes[last]
        length = hypot(z.x - a.x, z.y - a.y)
        bend = _BEND * (beside.index(circuit.name) - (len(beside) - 1) / 2)
        across, down = -(z.y - a.y) / length * bend, (z.x - a.x) / length * bend
        control = (a.x + z.x) / 2 + 2 * across, (a.y + z.y) / 2 + 2 * down
        curve = f"M{a.x:.1f} {a.y:.1f} Q{control[0]:.1f} {control[1]:.1f} {z.x:.1f} {z.y:.1f}"
        yield f'<path class="circuit" d="{curve}"><title>{escape(circuit.name)}</title></path>'
        neighbours = (names.index(last) - names.index(first)) in {1, len(names) - 1}
        part = 0.5 if neighbours else 0.35  # where diagonals cross, no label would be read
        weights = (1 - part) ** 2, 2 * part * (1 - part), part**2
        x = weights[0] * a.x + weights[1] * control[0] + weights[2] * z.x
        y = weights[0] * a.y + weights[1] * control[1] + weights[2] * z.y
        yield from _label(circuit.name, _said(network, circuit.name), x, y)


def _said(network: Network, name: str) -> str:
    """Return a circuit's rate, or its two, and its delay."""
    circuit = next(each for each in network.circuits if each.name == name)
    az, za = network.links_of(circuit)
    rates = dict.fromkeys((shown_rate(az.rate_bps), shown_rate(za.rate_bps)))
    return f"{' / '.join(rates)}, {az.said_delay}"


def _label(name: str, said: str, x: float, y: float) -> Iterator[str]:
    width = 7 * max(len(name), len(said)) + 8
    yield f'<rect class="label" x="{x - width / 2:.1f}" y="{y - 17:.1f}" width="{width}" height="34"/>'
    for text, line in ((name, -3), (said, 12)):
        yield f'<text x="{x:.1f}" y="{y + line:.1f}" text-anchor="middle">{escape(text)}</text>'
