"""What is planned from a host here to one beyond a circuit, as a switch sees it: class, way and meter. Pure.

A class's meter protects the other classes; a lane's own meter protects the others of its class from a host that sends
more than its allocation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controller.plan.keys import ClassShare
from controller.plan.plan import THE_REST, Flow, Plan, answers
from controller.plan.policy import Policy
from controller.southbound.openflow.meter_numbers import LaneKey, MeterNumbers
from topology.network import Hop, Host, Network, Switch
from topology.protocol import FlowClass
from topology.wire import PPM, answers_ppm

Ways = Mapping[LaneKey, tuple[FlowClass, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Lane:
    """The packets of one planned flow, or the answers to one, at the switch where they enter the circuit.

    Attributes:
        near: the host here, which sends.
        far: the host beyond.
        mark: the code point that tells them from others of the two hosts; None for all that no other lane has.
        flow_class: the class they go in.
        path: the way they go.
        meter_id: the lane's own meter.
        frame_bps: what that lets through, bit/s of frames, whole kbit/s.
        is_alone: whether no other lane is in its class on its circuit link.
    """

    near: Host
    far: Host
    mark: int | None
    flow_class: FlowClass
    path: tuple[str, ...]
    meter_id: int
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


def lane_ways(plan: Plan, policy: Policy) -> Ways:
    """Return the class and the path of all that is planned, by the two hosts and the mark: data, and answers to it."""
    flows = [entry.flow for entry in plan.entries]
    found: dict[LaneKey, tuple[FlowClass, tuple[str, ...]]] = {}
    for flow in flows:
        found.setdefault(_key(flow), (flow.flow_class, flow.path))
    for (host, target), flow in answers(flows, policy).items():  # answers carry no mark
        found.setdefault((target, host, None), (flow.flow_class, flow.path))
    return found


def lanes(network: Network, switch: Switch, plan: Plan, policy: Policy, numbers: MeterNumbers) -> tuple[Lane, ...]:
    """Return what is planned from the hosts here, with what its meters let through.

    A lane's meter lets through its allocation and what the answers that ride with it may need. What the lanes of a
    class do not need of the class's meter, each gets an equal part of; so one that is only to answer has plenty.
    Rounded up to what a meter can be told, so that no host's allocation exceeds its meter; the class's own meter, which
    counts after the lane's, keeps the sum.

    Raises:
        MetersExhausted: there are more lanes than meters.
    """
    known = _unmetered(network, switch, lane_ways(plan, policy), numbers)
    needs_bps = _needs_bps(network, plan)
    needed: dict[ClassShare, list[int]] = {}
    for lane in known:
        needed.setdefault(ClassShare(lane.hop, lane.flow_class), []).append(needs_bps.get(_key_of(lane), 0))
    spare_bps = {
        share: max(0, plan.links[share.hop].classes[share.flow_class].meter_bps - sum(shared)) // len(shared)
        for share, shared in needed.items()
    }
    metered = []
    for lane in known:
        share = ClassShare(lane.hop, lane.flow_class)
        rate_bps = needs_bps.get(_key_of(lane), 0) + spare_bps[share]
        metered.append(replace(lane, frame_bps=-(-rate_bps // 1000) * 1000, is_alone=len(needed[share]) == 1))
    return tuple(metered)


def stands_for(of_pair: Iterable[Lane], policy: Policy) -> Lane:
    """Return the lane with which two hosts look for each other: the one without a mark, else as answers choose."""
    classes = policy.classes

    def rank(lane: Lane) -> tuple[bool, int, int, int]:
        of_class = classes[lane.flow_class]
        return lane.mark is not None, -of_class.cap_ppm, of_class.priority, lane.mark or 0

    return min(of_pair, key=rank)


def _unmetered(network: Network, switch: Switch, ways: Ways, numbers: MeterNumbers) -> tuple[Lane, ...]:
    near = {h.name: place for place, h in enumerate(h for h in network.hosts if is_local(network, switch, h.name))}
    far = {h.name: place for place, h in enumerate(remote_hosts(network, switch))}
    here = {key: way for key, way in sorted(ways.items(), key=repr) if key[0] in near and key[1] in far}
    meter_ids = numbers.of(switch.name, {key: near[key[0]] * len(far) + far[key[1]] for key in here})
    return tuple(
        Lane(network.host(a), network.host(z), mark, flow_class, path, meter_ids[a, z, mark])
        for (a, z, mark), (flow_class, path) in here.items()
    )


def _needs_bps(network: Network, plan: Plan) -> dict[LaneKey, int]:
    """Return what each lane's allocation and the answers that ride with it take, bit/s of frames."""
    ppm = answers_ppm(network.framing)
    found: dict[LaneKey, int] = {}
    for entry in plan.entries:
        answered: LaneKey = entry.flow.target, entry.flow.host, None
        for key, bps in ((_key(entry.flow), entry.frame_bps), (answered, -(-entry.frame_bps * ppm // PPM))):
            found[key] = found.get(key, 0) + bps
    return found


def _key(flow: Flow) -> LaneKey:
    return flow.host, flow.target, None if flow.selector == THE_REST else flow.mark


def _key_of(lane: Lane) -> LaneKey:
    return lane.near.name, lane.far.name, lane.mark
