"""The pairs of hosts that meet across a circuit at one switch: class, way, and the meter that is each pair's own. Pure.

A class's meter protects the other classes; a pair's own meter protects the others of its class from a host that sends
more than its allocation. Every pair has its number under every plan; only rates change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from controller.plan.keys import ClassShare
from controller.plan.paths import default_path
from controller.plan.plan import Entry, Plan
from topology.network import Hop, Host, Network, Switch
from topology.protocol import FlowClass
from topology.wire import PPM, answers_ppm

FIRST_PAIR_METER_ID = 2000


@dataclass(frozen=True, slots=True)
class Pair:
    """A host of the switch and a host beyond a circuit.

    Attributes:
        near: the one here, which sends.
        far: the other.
        in_port: the port of the switch that the near one hangs on.
        meter_id: the pair's own meter.
        flow_class: the class its packets go in.
        path: the way they go.
        frame_bps: what its own meter lets through, bit/s of frames, whole kbit/s.
        is_alone: whether no other pair is in its class on its circuit link.
    """

    near: Host
    far: Host
    in_port: int
    meter_id: int
    flow_class: FlowClass
    path: tuple[str, ...]
    frame_bps: int = 0
    is_alone: bool = False

    @property
    def hop(self) -> Hop:
        """The circuit link by which it leaves this switch."""
        return Hop(self.path[1], self.path[2])


def is_local(network: Network, switch: Switch, host: str) -> bool:
    """Return whether a host hangs on the switch itself."""
    return network.graph.has_edge(switch.name, host)


def remote_hosts(network: Network, switch: Switch) -> list[Host]:
    """Return the hosts that a switch reaches over a circuit."""
    return [h for h in network.hosts if not is_local(network, switch, h.name)]


def pair_paths(plan: Plan) -> dict[tuple[str, str], tuple[FlowClass, tuple[str, ...]]]:
    """Return, by source and target, the class and the path of a pair of hosts that is planned.

    The answers of a planned flow ride in its class, back along its path, unless that pair has a flow of its own.
    """
    sent = {(e.flow.host, e.flow.target): (e.flow.flow_class, e.flow.path) for e in plan.entries}
    return {(z, a): (c, path[::-1]) for (a, z), (c, path) in sent.items()} | sent


def pairs(network: Network, switch: Switch, plan: Plan) -> tuple[Pair, ...]:
    """Return every pair of a host here and one beyond a circuit, planned or not, with what its meter lets through.

    A pair's meter lets through its allocation and what the answers to the other's allocation may need. What the
    members of a class do not need of the class's meter, each gets an equal part of; so one that is only to answer has
    plenty. Pairs of no plan share a class whose members owe each other nothing: each has the class's whole rate.
    Rounded up to what a meter can be told, so that no host's allocation exceeds its meter; the class's own meter,
    which counts after the pair's, keeps the sum.
    """
    known = tuple(_unmetered(network, switch, plan))
    entries = {(e.flow.host, e.flow.target): e for e in plan.entries}
    needs_bps = [_need_bps(pair, entries, answers_ppm(network.framing)) for pair in known]
    members: dict[ClassShare, list[int]] = {}
    for pair, need_bps in zip(known, needs_bps, strict=True):
        members.setdefault(ClassShare(pair.hop, pair.flow_class), []).append(need_bps)
    metered = []
    for pair, need_bps in zip(known, needs_bps, strict=True):
        class_bps = plan.links[pair.hop].classes[pair.flow_class].meter_bps
        shared = members[ClassShare(pair.hop, pair.flow_class)]
        if pair.flow_class is FlowClass.UNPLANNED:
            rate_bps = class_bps
        else:
            rate_bps = need_bps + max(0, class_bps - sum(shared)) // len(shared)
        metered.append(replace(pair, frame_bps=-(-rate_bps // 1000) * 1000, is_alone=len(shared) == 1))
    return tuple(metered)


def _unmetered(network: Network, switch: Switch, plan: Plan) -> Iterator[Pair]:
    planned = pair_paths(plan)
    far_hosts = remote_hosts(network, switch)
    number = FIRST_PAIR_METER_ID
    for near in (h for h in network.hosts if is_local(network, switch, h.name)):
        in_port = network.link(switch.name, near.name).port_no
        for far in far_hosts:
            unplanned = FlowClass.UNPLANNED, default_path(network, near.name, far.name, plan.down)
            flow_class, path = planned.get((near.name, far.name), unplanned)
            yield Pair(near, far, in_port, number, flow_class, path)
            number += 1


def _need_bps(pair: Pair, entries: Mapping[tuple[str, str], Entry], ppm: int) -> int:
    """Return what a pair's allocation and its answers to the other's take, bit/s of frames."""
    own, answered = entries.get((pair.near.name, pair.far.name)), entries.get((pair.far.name, pair.near.name))
    return (own.frame_bps if own else 0) + (-(-answered.frame_bps * ppm // PPM) if answered else 0)
