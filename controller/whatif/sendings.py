"""Who is sending: how much is left of it, and at which rate it goes. Pure.

What is left is counted in bits x microseconds, so that a rate times a time is exact and nothing is ever rounded away.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller.plan.keys import FlowId
from controller.plan.plan import Entry
from controller.plan.shares import max_min
from controller.whatif.movers import Mover
from topology.network import Network, hops
from topology.wire import Framing, Layer, converted_bps

US = 1_000_000


@dataclass(slots=True)
class Sending:
    """A flow that has something to send.

    Attributes:
        flow: its name in the plan.
        host: who sends.
        target: who receives.
        left: bits x 1,000,000 that are still to be sent; None for without end.
        mover: how it is sent.
        file_bytes: the size of each file; 0 for one.
        owner: the transfer it is a part of; empty for none.
        sent: bits x 1,000,000 that have left, what was lost on a dead circuit included.
        lost: those of them that were lost there.
        rate_bps: payload that arrives for good, now.
        since_us: since when it sends at this rate.
        path: the way that it takes now.
        ended_us: when the last of it has left; None before.
        confirmed_us: when that is confirmed.
    """

    flow: FlowId
    host: str
    target: str
    left: int | None
    mover: Mover
    file_bytes: int = 0
    owner: str = ""
    sent: int = 0
    lost: int = 0
    rate_bps: int = 0
    since_us: int = 0
    path: tuple[str, ...] = ()
    ended_us: int | None = None
    confirmed_us: int | None = None

    def goes_on(self, took_us: int) -> None:
        """Take in that it has sent at its rate for a time."""
        sent = self.rate_bps * took_us
        if self.left is not None:
            sent = min(sent, self.left)
            self.left -= sent
        self.sent += sent

    @property
    def ends_in_us(self) -> int | None:
        """After how long nothing is left to send at this rate; None for never."""
        return None if self.left is None or not self.rate_bps else -(-self.left // self.rate_bps)

    def confirmed_bytes(self, now_us: int, rtt_us: int) -> int:
        """Return how much of it its host knows to have arrived: not what has left within the last round trip."""
        if self.confirmed_us is not None and self.confirmed_us <= now_us:
            return (self.sent - self.lost) // (8 * US)
        flying = self.rate_bps * max(0, min(rtt_us, now_us - self.since_us))
        return max(0, self.sent - self.lost - flying) // (8 * US)

    def loses(self, now_us: int, delay_us: int) -> None:
        """Take back what has left within the one-way delay before a circuit on its way died."""
        end_us = now_us if self.ended_us is None else self.ended_us
        flying_us = min(delay_us - (now_us - end_us), end_us - self.since_us)
        gone = min(self.sent - self.lost, max(0, self.rate_bps * flying_us))
        self.lost += gone
        if self.left is not None:
            self.left += gone


def rates_bps(
    sendings: Iterable[Sending], held: Iterable[Entry], network: Network, dead: frozenset[str]
) -> dict[FlowId, tuple[int, Entry]]:
    """Return, by flow, the payload rate that the hosts' kernels give it, and by which entry.

    Where an entry stands for several flows, those that send share it evenly, as the kernel does.

    Args:
        sendings: who has something to send.
        held: what the hosts act on, where the rules in force send it.
        network: where.
        dead: circuits that carry nothing; what is led over one of them arrives nowhere.
    """
    by_name = {name: entry for entry in held for name in entry.flow.names}
    members: dict[FlowId, list[Sending]] = {}
    for one in sendings:
        entry = by_name.get(one.flow)
        if entry is not None:
            members.setdefault(entry.flow.name, []).append(one)
    found: dict[FlowId, tuple[int, Entry]] = {}
    for of_entry in members.values():
        entry = by_name[of_entry[0].flow]
        is_dead = bool(dead) and any(network.link(*hop).circuit in dead for hop in entry.flow.links)
        part_bps = 0 if is_dead else entry.payload_bps // len(of_entry)
        for one in of_entry:
            rtt_us = network.path_rtt_us(entry.flow.path) if one.mover.pauses else 0
            found[one.flow] = (one.mover.effective_bps(part_bps, rtt_us, one.file_bytes), entry)
    return found


def let_in(wanted_bps: Mapping[FlowId, int], drains_bps: int) -> dict[FlowId, int]:
    """Return what each flow to a store that is full can send: as much together as is drained, max-min fairly."""
    parts = max_min(drains_bps, [0] * len(wanted_bps), list(wanted_bps.values()))
    return dict(zip(wanted_bps, parts, strict=True))


def wire_bps(payload_bps: int, framing: Framing) -> int:
    """Return what a payload rate takes on the wire, rounded down as everywhere."""
    return converted_bps(payload_bps, Layer.PAYLOAD, Layer.WIRE, framing)


def delay_to_us(network: Network, path: tuple[str, ...], circuit: str) -> int | None:
    """Return how long a byte takes along a path to the far end of a circuit; None if the path does not cross it."""
    delay_us = 0
    for hop in hops(path):
        delay_us += network.delay_us(*hop)
        if network.link(*hop).circuit == circuit:
            return delay_us
    return None


def reserved_payload_bps(reserved_bps: int, framing: Framing) -> int:
    """Return the payload of a rate that is reserved on the wire, less what the layers round away on the way.

    A meter counts whole kbit/s.
    """
    return max(0, converted_bps(reserved_bps, Layer.WIRE, Layer.PAYLOAD, framing) - 1_000)
