"""What is planned from a host here to one beyond a circuit, as a switch sees it: class, way and meter. Pure.

A class's meter protects the other classes; a lane's own meter protects the others of its class from a host that sends
more than its allocation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from controller.plan.keys import ClassShare
from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.meter_numbers import LaneKey, MeterNumbers
from controller.southbound.openflow.plan_lanes import LaneWays, plan_lanes
from topology.network import Hop, Host, Network, Switch
from topology.protocol import FlowClass


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
    def key(self) -> LaneKey:
        """What tells it from others."""
        return self.near.name, self.far.name, self.mark

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


def lanes(network: Network, switch: Switch, plan: Plan, policy: Policy, numbers: MeterNumbers) -> tuple[Lane, ...]:
    """Return what is planned from the hosts here, with what its meters let through.

    Raises:
        MetersExhausted: there are more lanes than meters.
    """
    begun = plan_lanes(network, plan, policy).begun.get(switch.name, {})
    meter_ids = lane_meter_ids(network, switch, begun, numbers)
    found = (lane for share, ways in begun.items() for lane in lanes_of_share(network, plan, share, ways, meter_ids))
    return tuple(sorted(found, key=lambda lane: repr(lane.key)))


def lanes_of_share(
    network: Network, plan: Plan, share: ClassShare, ways: LaneWays, meter_ids: Mapping[LaneKey, int]
) -> tuple[Lane, ...]:
    """Return the lanes of a class that enter a circuit.

    A lane's meter lets through its allocation and what the answers that ride with it may need. What the lanes of a
    class do not need of the class's meter, each gets an equal part of; so one that is only to answer has plenty.
    Rounded up to what a meter can be told, so that no host's allocation exceeds its meter; the class's own meter, which
    counts after the lane's, keeps the sum.
    """
    meter_bps = plan.links[share.hop].classes[share.flow_class].meter_bps
    spare_bps = max(0, meter_bps - sum(way.needs_bps for way in ways.values())) // len(ways)
    return tuple(
        Lane(
            network.host(near),
            network.host(far),
            mark,
            way.flow_class,
            way.path,
            meter_ids[near, far, mark],
            -(-(way.needs_bps + spare_bps) // 1000) * 1000,
            len(ways) == 1,
        )
        for (near, far, mark), way in ways.items()
    )


def stands_for(of_pair: Iterable[Lane], policy: Policy) -> Lane:
    """Return the lane with which two hosts look for each other: the one without a mark, else as answers choose."""
    classes = policy.classes

    def rank(lane: Lane) -> tuple[bool, int, int, int]:
        of_class = classes[lane.flow_class]
        return lane.mark is not None, -of_class.cap_ppm, of_class.priority, lane.mark or 0

    return min(of_pair, key=rank)


def lane_meter_ids(
    network: Network, switch: Switch, begun: Mapping[ClassShare, LaneWays], numbers: MeterNumbers
) -> Mapping[LaneKey, int]:
    """Return the meters of the lanes that begin at a switch.

    Raises:
        MetersExhausted: there are more lanes than meters.
    """
    near, far = _places(network, switch)
    keys = {key for ways in begun.values() for key in ways}
    return numbers.of(switch.name, keys, lambda key: near[key[0]] * len(far) + far[key[1]])


@lru_cache(maxsize=1024)
def _places(network: Network, switch: Switch) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the places of the hosts of a switch among themselves, and of all others among themselves."""
    here = [host.name for host in network.hosts if is_local(network, switch, host.name)]
    beyond = [host.name for host in remote_hosts(network, switch)]
    return {name: n for n, name in enumerate(here)}, {name: n for n, name in enumerate(beyond)}
