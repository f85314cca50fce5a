"""Announcements: bytes that are coming, and the promise or the refusal they are answered with."""

from dataclasses import dataclass
from enum import Enum

from controller.plan.plan import CircuitPath, Flow, planned
from controller.plan.policy import Policy
from topology.protocol import FlowClass
from topology.wire import transfer_us

LAPSE_FACTOR = 2  # an announcement nobody releases is forgotten at twice its promised duration ...
LAPSE_GRACE_US = 30_000_000  # ... and half a minute: a script that died must not keep the circuit from the others


@dataclass(frozen=True, slots=True)
class Announcement:
    """``size_bytes`` of a class, sent in equal parts by ``flows``.

    Attributes:
        announcement_id: names it in the API.
        size_bytes: payload, all parts together.
        flows: one per sending host.
        announced_us: when, Unix time.
        promised_us: when the last byte will be confirmed, Unix time.
    """

    announcement_id: str
    size_bytes: int
    flows: tuple[Flow, ...]
    announced_us: int
    promised_us: int

    @property
    def lapses_us(self) -> int:
        """When it is forgotten if nobody releases it, Unix time."""
        return self.announced_us + LAPSE_FACTOR * (self.promised_us - self.announced_us) + LAPSE_GRACE_US


class Reason(Enum):
    """Why an announcement is refused."""

    DEADLINE_UNREACHABLE = "deadline-unreachable"


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer no, with the numbers.

    Attributes:
        reason: why.
        circuit: where.
        asked_us: the deadline asked for, microseconds from the announcement.
        needed_us: how long the bytes take at the rate the plan can give now.
        rate_bps: that rate, bit/s of payload.
    """

    reason: Reason
    circuit: str
    asked_us: int
    needed_us: int
    rate_bps: int

    def __str__(self) -> str:
        """What, where, how much, what to try."""
        return (
            f"{self.circuit}: due in {self.asked_us / 1e6:.3f} s asked, {self.needed_us / 1e6:.3f} s needed at the "
            f"{self.rate_bps:,} bit/s of payload that the plan can give; ask for a later deadline or announce less"
        )


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client announces.

    Attributes:
        announcement_id: chosen by the service.
        circuit: the circuit the bytes cross.
        size_bytes: payload, all flows together.
        flows: one per sending host.
        deadline_us: by when, microseconds from now; None for as soon as possible.
    """

    announcement_id: str
    circuit: str
    size_bytes: int
    flows: tuple[Flow, ...]
    deadline_us: int | None


def decided(
    wish: Wish, standing: tuple[Flow, ...], path: CircuitPath, policy: Policy, now_us: int
) -> Announcement | Refused:
    """Return the promise for a wish, or the refusal.

    The promise is computed from the plan as it would be with the wish in it: each sender moves an equal part at its
    share, on a connection that must still open its window (two round trips: handshake, then the SYN's unscaled
    window, RFC 7323 section 2.2), and the last byte is confirmed a round trip later.

    Args:
        wish: what is asked.
        standing: every flow in the plan now.
        path: the circuit.
        policy: the classes.
        now_us: Unix time.
    """
    plan = planned(0, path, policy, (*standing, *wish.flows))
    names = {f.name for f in wish.flows}
    rates = [e.payload_bps for e in plan.entries if e.flow.name in names]
    part_bytes = -(-wish.size_bytes // len(wish.flows))
    needed_us = max(transfer_us(part_bytes, rate, path.rtt_us) for rate in rates) + 2 * path.rtt_us
    if wish.deadline_us is not None and needed_us > wish.deadline_us:
        return Refused(Reason.DEADLINE_UNREACHABLE, wish.circuit, wish.deadline_us, needed_us, sum(rates))
    return Announcement(wish.announcement_id, wish.size_bytes, wish.flows, now_us, now_us + needed_us)


ANNOUNCEABLE = (FlowClass.URGENT, FlowClass.BACKGROUND)
