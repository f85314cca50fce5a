"""What a host may send in a class by a circuit, as the switch that it hangs on polices it. Pure.

A class's meter protects the other classes; a sender's own meter protects the others of its class from a host that sends
more than it may. A host that sends to few others has a meter for each of them: then it does not slow down, by what it
floods one with, the data that it answers to another.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from controller.plan.keys import ClassShare
from controller.plan.plan import Plan
from controller.plan.policy import Policy
from controller.southbound.openflow.aggregates import is_local, remote_hosts
from controller.southbound.openflow.circuit_ports import QUEUE_ID, circuit_ports
from controller.southbound.openflow.meter_numbers import MeterNumbers, SenderKey
from controller.southbound.openflow.plan_aggregates import AggregateKey, AggregateWays, plan_aggregates
from topology.network import Network, Switch

MOST_PAIR_METERS = 1_000
"""How many meters a switch may have for pairs, beside which those of its senders are few."""


class PolicedSender(NamedTuple):
    """What is planned from a host here in a class by a circuit: to one host, or all of it.

    Attributes:
        key: the host, the class, the node that the circuit begins with, and the host that it is for, "" for any.
        meter_id: its meter.
        frame_bps: what that lets through, bit/s of frames, whole kbit/s.
        is_alone: whether nothing else from here in that class by that circuit has a meter.
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
    begun = plan_aggregates(network, plan, policy).begun.get(switch.name, {})
    meter_ids = sender_meter_ids(network, switch, begun, numbers)
    most = targets_apart(network, switch)
    found = (
        sender
        for share, ways in begun.items()
        for sender in senders_of_share(plan, share, ways, sender_keys(share, ways, most), meter_ids)
    )
    return tuple(sorted(found))


def senders_of_share(
    plan: Plan,
    share: ClassShare,
    ways: AggregateWays,
    keys: Mapping[AggregateKey, SenderKey],
    meter_ids: Mapping[SenderKey, int],
) -> tuple[PolicedSender, ...]:
    """Return the senders of a class by a circuit.

    A sender's meter lets through its allocations and what the answers that ride with them may need. What the senders of
    a class do not need of the class's meter, each gets an equal part of; so one that is only to answer has plenty.
    Where the class has room for it, answers may come to need what all they answer may come to send: so the meters of
    those that only answer stay as they are, whoever sends (decision 53). Among many senders it is what is sent now.
    Rounded up to what a meter can be told, so that no host's allocations exceed its meter; the class's own meter, which
    counts after it, keeps the sum.

    Args:
        plan: who may send what.
        share: the class and the circuit.
        ways: the aggregates of that class that enter the circuit.
        keys: the senders, by aggregate (:func:`sender_keys`).
        meter_ids: the senders' meters.
    """
    meter_bps = plan.links[share.hop].classes[share.flow_class].meter_bps
    has_room = sum(ways[aggregate].data_bps + ways[aggregate].may_answer_bps for aggregate in keys) <= meter_bps
    needs_bps: dict[SenderKey, int] = {}
    for aggregate, key in keys.items():
        way = ways[aggregate]
        needs_bps[key] = needs_bps.get(key, 0) + way.data_bps + (way.may_answer_bps if has_room else way.answers_bps)
    spare_bps = max(0, meter_bps - sum(needs_bps.values())) // max(1, len(needs_bps))
    found = []
    for key, needed_bps in needs_bps.items():
        own_bps = -(-(needed_bps + spare_bps) // 1000) * 1000
        found.append(PolicedSender(key, meter_ids[key], own_bps, len(needs_bps) == 1))
    return tuple(found)


def sender_keys(share: ClassShare, ways: AggregateWays, most_targets: int) -> dict[AggregateKey, SenderKey]:
    """Return by which meter each aggregate of a class that enters a circuit is policed.

    That of its two hosts, if the sender has few targets: then what it floods one with harms no other, whose data its
    answers keep going. Else all that the sender has there have one.
    """
    targets: dict[str, set[str]] = {}
    for near, far, _ in ways:
        targets.setdefault(near, set()).add(far)
    apart = {near for near, beyond in targets.items() if len(beyond) <= most_targets}
    flow_class, head = share.flow_class, share.hop.head
    return {
        aggregate: SenderKey(aggregate[0], flow_class, head, aggregate[1] if aggregate[0] in apart else "")
        for aggregate in ways
    }


def sender_meter_ids(
    network: Network, switch: Switch, begun: Mapping[ClassShare, AggregateWays], numbers: MeterNumbers
) -> Mapping[SenderKey, int]:
    """Return the meters of the senders at a switch.

    Raises:
        MetersExhausted: there are more senders than meters.
    """
    most = targets_apart(network, switch)
    return numbered_senders(network, switch, [sender_keys(share, ways, most) for share, ways in begun.items()], numbers)


def numbered_senders(
    network: Network, switch: Switch, of_shares: Iterable[Mapping[AggregateKey, SenderKey]], numbers: MeterNumbers
) -> Mapping[SenderKey, int]:
    """Return the meters of the senders at a switch, given each class's by each circuit (:func:`sender_keys`).

    Raises:
        MetersExhausted: there are more senders than meters.
    """
    hosts, beyond, heads = _places(network, switch)
    keys = set[SenderKey]().union(*(of_share.values() for of_share in of_shares))

    def home(key: SenderKey) -> int:
        of_sender = (hosts[key.host] * len(heads) + heads[key.head]) * len(QUEUE_ID) + QUEUE_ID[key.flow_class]
        if not key.target:
            return of_sender
        return (len(hosts) * len(heads) * len(QUEUE_ID)) + of_sender * len(beyond) + beyond[key.target]

    return numbers.of(switch.name, keys, home)


@lru_cache(maxsize=1024)
def _places(network: Network, switch: Switch) -> tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int]]:
    """Return the places of the hosts of a switch among themselves, of those beyond, and of the circuits that leave."""
    here = [host.name for host in network.hosts if is_local(network, switch, host.name)]
    beyond = [host.name for host in remote_hosts(network, switch)]
    heads = [head for head, _ in circuit_ports(network, switch.name)]
    one, other, third = ({name: n for n, name in enumerate(names)} for names in (here, beyond, heads))
    return one, other, third


def most_senders(network: Network, switch: Switch) -> int:
    """Return how many senders a switch has if each host there sends in each class by each circuit."""
    hosts, _, heads = _places(network, switch)
    return len(hosts) * len(heads) * (len(QUEUE_ID) - 1)


def targets_apart(network: Network, switch: Switch) -> int:
    """Return to how many others a host may send in a class by a circuit and have a meter for each of them.

    It follows from the network alone, so that the plan of others changes nobody's meter; none where there are so many
    senders that two for each would be more than a switch is to spend on it.
    """
    most = MOST_PAIR_METERS // max(1, most_senders(network, switch))
    return most if most > 1 else 0
