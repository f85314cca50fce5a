"""What a host may send in a class by a circuit, as the switch that it hangs on polices it. Pure.

A class's meter protects the other classes; a sender's own meter protects the others of its class from a host that sends
more than it may.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from controller.plan.keys import ClassShare
from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.circuit_ports import QUEUE_ID, circuit_ports
from controller.southbound.openflow.lanes import is_local
from controller.southbound.openflow.meter_numbers import MeterNumbers, SenderKey
from controller.southbound.openflow.plan_lanes import LaneWays, plan_lanes
from topology.network import Network, Switch


class PolicedSender(NamedTuple):
    """All that is planned from a host here in a class by a circuit.

    Attributes:
        key: the host, the class, and the node that the circuit begins with.
        meter_id: its meter.
        frame_bps: what that lets through, bit/s of frames, whole kbit/s.
        is_alone: whether no other host here sends in that class by that circuit.
    """

    key: SenderKey
    meter_id: int
    frame_bps: int
    is_alone: bool


def senders(
    network: Network, switch: Switch, plan: Plan, policy: Policy, numbers: MeterNumbers
) -> tuple[PolicedSender, ...]:
    """Return the senders at a switch, with what their meters let through.

    Raises:
        MetersExhausted: there are more of them than meters.
    """
    begun = plan_lanes(network, plan, policy).begun.get(switch.name, {})
    meter_ids = sender_meter_ids(network, switch, begun, numbers)
    found = (sender for share, ways in begun.items() for sender in senders_of_share(plan, share, ways, meter_ids))
    return tuple(sorted(found))


def senders_of_share(
    plan: Plan, share: ClassShare, ways: LaneWays, meter_ids: Mapping[SenderKey, int]
) -> tuple[PolicedSender, ...]:
    """Return the senders of a class by a circuit.

    A sender's meter lets through its allocations and what the answers that ride with them may need. What the senders of
    a class do not need of the class's meter, each gets an equal part of; so one that is only to answer has plenty.
    Rounded up to what a meter can be told, so that no host's allocations exceed its meter; the class's own meter, which
    counts after it, keeps the sum.
    """
    meter_bps = plan.links[share.hop].classes[share.flow_class].meter_bps
    needs_bps: dict[str, int] = {}
    for (near, _, _), way in ways.items():
        needs_bps[near] = needs_bps.get(near, 0) + way.needs_bps
    spare_bps = max(0, meter_bps - sum(needs_bps.values())) // max(1, len(needs_bps))
    found = []
    for near, needed_bps in needs_bps.items():
        key = SenderKey(near, share.flow_class, share.hop.head)
        own_bps = -(-(needed_bps + spare_bps) // 1000) * 1000
        found.append(PolicedSender(key, meter_ids[key], own_bps, len(needs_bps) == 1))
    return tuple(found)


def sender_meter_ids(
    network: Network, switch: Switch, begun: Mapping[ClassShare, LaneWays], numbers: MeterNumbers
) -> Mapping[SenderKey, int]:
    """Return the meters of the senders at a switch.

    Raises:
        MetersExhausted: there are more senders than meters.
    """
    hosts, heads = _places(network, switch)
    keys = {SenderKey(near, c, hop.head) for (hop, c), ways in begun.items() for near, _, _ in ways}

    def home(key: SenderKey) -> int:
        return (hosts[key.host] * len(heads) + heads[key.head]) * len(QUEUE_ID) + QUEUE_ID[key.flow_class]

    return numbers.of(switch.name, keys, home)


@lru_cache(maxsize=1024)
def _places(network: Network, switch: Switch) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the places of the hosts of a switch among themselves, and of the circuits that leave it."""
    here = [host.name for host in network.hosts if is_local(network, switch, host.name)]
    heads = [head for head, _ in circuit_ports(network, switch.name)]
    return {name: n for n, name in enumerate(here)}, {head: n for n, head in enumerate(heads)}


def most_senders(network: Network, switch: Switch) -> int:
    """Return how many senders a switch has if each host there sends in each class by each circuit."""
    hosts, heads = _places(network, switch)
    return len(hosts) * len(heads) * (len(QUEUE_ID) - 1)
