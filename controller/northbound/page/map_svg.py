"""The network as a picture of what it carries now: sites, hosts and circuits, as SVG. Pure.

A line's width is its circuit's rate, its filled part what is delivered. A line that is down or worked on is dashed,
and says so. It is drawn twice, for a wide screen and for a narrow one, and the style sheet shows the one that fits.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot, log10
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import networkx as nx

from controller.northbound.page.look import Look
from controller.northbound.page.series import Sample
from controller.northbound.page.words import clock, measured_rate
from controller.plan.lines import LineState
from topology.network import Circuit, Network, Switch
from topology.units import shown_rate

MARGIN_X, MARGIN_Y = 82, 56  # in which no site's middle is
SEED = 7  # of the layout: the same network always looks the same
BEND = 46  # how far circuits beside each other are bent apart
THIN, THICK = 4.0, 18.0
SLOWEST = 1e8  # bit/s, of the thinnest line
SIGNS = {LineState.UP: "", LineState.DOWN: "✕ down", LineState.RETURNING: "↻ coming back"}


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a site is drawn."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Frame:
    """What the picture is drawn in.

    Attributes:
        name: its class in the style sheet, by which a screen shows the one that fits.
        width: of the picture, and of a screen on which its text has its size.
        heights: of two sites, and of more.
        is_tall: whether the network is turned to lie along its height, and circuits side by side are named in turn.
        most_named: sites; of more, only those that need somebody, and the circuits that are not up, are named.
        before: what its ids begin with, as both frames are on the page.
    """

    name: str
    width: int
    heights: tuple[int, int]
    is_tall: bool
    most_named: int
    before: str

    def height(self, network: Network) -> int:
        """Return the height of the picture of a network."""
        return self.heights[len(network.sites) > 2]


WIDE = Frame("wide", 600, (180, 320), is_tall=False, most_named=16, before="map-")
NARROW = Frame("narrow", 340, (320, 460), is_tall=True, most_named=6, before="narrow-")  # of a telephone


@dataclass(frozen=True, slots=True)
class Folded:
    """Which sites are drawn as a dot: those that need nobody, and where too many do, all; and in which frame."""

    frame: Frame
    well: bool
    needy: bool


def places(network: Network, frame: Frame = WIDE) -> dict[str, Spot]:
    """Return where each site is drawn; two beside each other, more where springs along the circuits pull them."""
    sites = network.edge_sites
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(network.sites)
    graph.add_edges_from((sites[c.a_end], sites[c.z_end]) for c in network.circuits)
    if len(graph) <= 2:
        found = {site: (float(number), 0.5) for number, site in enumerate(graph)}
    else:
        found = {
            name: (float(x), float(y)) for name, (x, y) in nx.spring_layout(graph, seed=SEED, iterations=200).items()
        }
    if frame.is_tall:
        found = {site: (y, x) for site, (x, y) in found.items()}
    height = frame.height(network)
    return {
        site: Spot(
            MARGIN_X + (frame.width - 2 * MARGIN_X) * _part(x, [x for x, _ in found.values()]),
            MARGIN_Y + (height - 2 * MARGIN_Y) * _part(y, [y for _, y in found.values()]),
        )
        for site, (x, y) in found.items()
    }


def _part(value: float, among: list[float]) -> float:
    """Return where a value is among others, from 0 to 1."""
    least, most = min(among), max(among)
    return (value - least) / (most - least) if most > least else 0.5


def drawn(network: Network, where: Mapping[str, Spot], look: Look, frame: Frame = WIDE) -> str:
    """Return the picture.

    Args:
        network: what is drawn.
        where: as :func:`places` has it.
        look: what was seen.
        frame: what it is drawn in.
    """
    size = f'class="{frame.name}" viewBox="0 0 {frame.width} {frame.height(network)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="group" aria-label="Map">'
    lines = (part for circuit in network.circuits for part in _circuit(network, where, look, circuit, frame))
    folds = len(network.sites) > frame.most_named
    needy = sum(bool(_badges(network, look, site)) for site in network.sites) if folds else 0
    folded = Folded(frame, folds, folds and needy > frame.most_named)
    sites = (part for site in network.sites for part in _site(network, where[site], look, site, folded))
    return "\n".join((head, *lines, *sites, "</svg>"))


def _circuit(network: Network, where: Mapping[str, Spot], look: Look, circuit: Circuit, frame: Frame) -> Iterator[str]:
    sites = network.edge_sites
    if sites[circuit.a_end] == sites[circuit.z_end]:  # between two switches of one site, which are one sign
        return
    a, z = where[sites[circuit.a_end]], where[sites[circuit.z_end]]
    beside = [
        c.name
        for c in network.circuits
        if {sites[c.a_end], sites[c.z_end]} == {sites[circuit.a_end], sites[circuit.z_end]}
    ]
    number = beside.index(circuit.name)
    bend = BEND * 2 * (number - (len(beside) - 1) / 2)
    length = hypot(z.x - a.x, z.y - a.y) or 1.0
    if (a.x, a.y) > (z.x, z.y):  # the same side for all between the same two
        bend = -bend
    over = (a.x + z.x) / 2 - (z.y - a.y) / length * bend, (a.y + z.y) / 2 + (z.x - a.x) / length * bend
    curve = f"M{a.x:.1f} {a.y:.1f} Q{over[0]:.1f} {over[1]:.1f} {z.x:.1f} {z.y:.1f}"
    state = look.view.lines[circuit.name]
    carried = {end: _delivered_bps(look.sample, circuit, end) for end in (circuit.a_end, circuit.z_end)}
    most_bps = max(carried.values())
    width = THIN + (THICK - THIN) * min(1.0, max(0.0, log10(circuit.rate_bps / SLOWEST) / 3))
    part = min(1.0, most_bps / circuit.rate_bps)
    said = (
        SIGNS[state] or _worked_on(look, circuit.name) or f"{measured_rate(most_bps)} of {shown_rate(circuit.rate_bps)}"
    )
    kind = "worked-on" if state is LineState.UP and circuit.name in look.worked_on else state
    about = f"{circuit.name}: {state}, {said}"
    along = (number + 1) / (len(beside) + 1) if frame.is_tall else 0.5
    x, y = (_between(ends, along) for ends in ((a.x, over[0], z.x), (a.y, over[1], z.y)))
    link = f"/circuits/{quote(circuit.name)}"
    yield _linked(link, f"{frame.before}{circuit.name}", about)
    yield f'<path class="pipe {kind}" d="{curve}" stroke-width="{width:.1f}"/>'
    if state is LineState.UP and part:
        yield f'<path class="flow" d="{curve}" stroke-width="{max(1.5, width * part):.1f}"/>'
    if len(network.sites) <= frame.most_named or kind is not LineState.UP:
        yield from _label(circuit.name, said, x, y, frame.width)
    yield "</a>"


def _between(ends: tuple[float, float, float], part: float) -> float:
    """Return where a quadratic Bezier curve is, of its begin, control and end.

    >>> _between((0.0, 4.0, 0.0), 0.5)
    2.0
    """
    begin, over, end = ends
    return (1 - part) ** 2 * begin + 2 * part * (1 - part) * over + part**2 * end


def _worked_on(look: Look, circuit: str) -> str:
    """Return until when a circuit is worked on, in words; empty if it is not."""
    return f"maintenance until {clock(look.worked_on[circuit])}" if circuit in look.worked_on else ""


def _linked(to: str, name: str, about: str) -> str:
    """Return the beginning of a link with words for who points at it, or has it read to him."""
    return f'<a href="{to}" id={quoteattr(name)} aria-label={quoteattr(about)}><title>{escape(about)}</title>'


def _delivered_bps(taken: Sample, circuit: Circuit, end: str) -> int:
    return sum(
        p.delivered_bps or 0 for name, p in taken.items() if name.circuit == circuit.name and name.link.tail == end
    )


def _label(name: str, said: str, x: float, y: float, most: int) -> Iterator[str]:
    width = 7.2 * max(len(name), len(said)) + 12
    x = min(max(x, width / 2), max(most - width / 2, width / 2))  # all of it inside the picture
    yield f'<rect class="label" x="{x - width / 2:.1f}" y="{y - 18:.1f}" width="{width:.0f}" height="36" rx="4"/>'
    yield f'<text class="name" x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle">{escape(name)}</text>'
    yield f'<text x="{x:.1f}" y="{y + 12:.1f}" text-anchor="middle">{escape(said)}</text>'


def _counted(network: Network, look: Look, site: str) -> Counter[bool]:
    """Return how many of a site's hosts have an agent that is connected or has yet to call, and how many have not."""
    hosts, awaited = look.view.hosts, look.view.yet_to_call
    here = (h.name for h in network.hosts if h.site == site and h.name in hosts)
    return Counter(hosts[name].connected or name in awaited for name in here)


def _badges(network: Network, look: Look, site: str) -> list[str]:
    """Return what a site needs somebody for."""
    switches = [s for s in network.switches if s.site == site]
    gone = _gone(look, switches)
    missing = _counted(network, look, site)[False] if switches else 0
    badges = [f"✕ switch gone{f': {gone[0].name}' if len(switches) > 1 else ''}"] if gone else []
    return badges + ([f"! {missing} agent{'' if missing == 1 else 's'} missing"] if missing else [])


def _gone(look: Look, switches: list[Switch]) -> list[Switch]:
    """Return the switches that are not connected, though they have had the time to call."""
    return [s for s in switches if s.dpid not in look.connected and s.name not in look.view.yet_to_call]


def _site(network: Network, place: Spot, look: Look, site: str, folded: Folded) -> Iterator[str]:
    switches = [s for s in network.switches if s.site == site]
    name = f"{folded.frame.before}site-{site}"
    if not switches:
        about = f"{site}: not ours, what is sent from there is not planned"
        yield f"<g id={quoteattr(name)} aria-label={quoteattr(about)}><title>{escape(about)}</title>"
        yield from _sign(place, (site, "not ours"), "site far")
        yield "</g>"
        return
    hosts, badges = _counted(network, look, site).total(), _badges(network, look, site)
    gone = _gone(look, switches)
    said = f"{hosts} host{'' if hosts == 1 else 's'}"
    named = not (folded.needy if badges else folded.well)
    about = ", ".join((site, said, *badges))
    yield _linked(f"/switches/{quote((gone or switches)[0].name)}", name, about)
    state = "site" if not badges else "site needs"
    if not named:
        yield f'<circle class="{state}" cx="{place.x:.1f}" cy="{place.y:.1f}" r="6"/>'
        if badges:  # never by colour alone
            yield f'<text class="badge" x="{place.x:.1f}" y="{place.y + 4:.1f}" text-anchor="middle">!</text>'
        yield "</a>"
        return
    yield from _sign(place, (site, said, *badges), state)
    yield "</a>"


def _sign(place: Spot, lines: tuple[str, ...], state: str) -> Iterator[str]:
    """Yield a box with the lines of a site in it: its name, what it is, and what it needs."""
    width, height = max(96.0, 7.2 * max(map(len, lines)) + 16), 8 + 16 * len(lines)
    left, top = place.x - width / 2, place.y - height / 2
    yield f'<rect class="{state}" x="{left:.1f}" y="{top:.1f}" width="{width:.0f}" height="{height}" rx="6"/>'
    for number, line in enumerate(lines):
        kind = ' class="name"' if number == 0 else ' class="badge"' if number > 1 else ""
        y = top + 17 + 16 * number
        yield f'<text x="{place.x:.1f}" y="{y:.1f}" text-anchor="middle"{kind}>{escape(line)}</text>'
