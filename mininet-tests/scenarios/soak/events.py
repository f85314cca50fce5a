"""What happens in a soak, drawn from a seed: announcements, reservations and faults, one after the other. Pure."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mininet_tests.site.lsst import RECEIVER, SENDERS


class EventKind(StrEnum):
    """What can happen."""

    ANNOUNCE = "announce"
    RESERVE = "reserve"
    KILL_AGENT = "kill agent"
    STOP_AGENT = "stop agent"
    CUT_MANAGEMENT = "cut management"
    KILL_CONTROLLER = "kill controller"
    CUT_OPENFLOW = "cut openflow"
    KILL_SWITCH = "kill vswitchd"
    RESTART_SWITCH = "restart vswitchd"
    PORT_DOWN = "host port down"
    OTHER_NUMBER = "host port under another number"
    HOLD_DATABASE = "database silent"
    SET_CLOCK = "clock set"


WEIGHTS = {
    EventKind.ANNOUNCE: 40,
    EventKind.RESERVE: 25,
    EventKind.KILL_AGENT: 6,
    EventKind.STOP_AGENT: 6,
    EventKind.CUT_MANAGEMENT: 5,
    EventKind.KILL_CONTROLLER: 5,
    EventKind.CUT_OPENFLOW: 5,
    EventKind.KILL_SWITCH: 4,
    EventKind.RESTART_SWITCH: 4,
}
LATER_WEIGHTS = WEIGHTS | {
    EventKind.PORT_DOWN: 4,
    EventKind.OTHER_NUMBER: 4,
    EventKind.HOLD_DATABASE: 4,
    EventKind.SET_CLOCK: 4,
}
FAULTS = frozenset(LATER_WEIGHTS) - {EventKind.ANNOUNCE, EventKind.RESERVE}
OF_A_HOST = frozenset(
    {
        EventKind.KILL_AGENT,
        EventKind.STOP_AGENT,
        EventKind.CUT_MANAGEMENT,
        EventKind.PORT_DOWN,
        EventKind.OTHER_NUMBER,
    }
)
OWN_PORTS = {(RECEIVER, "base20"): 5411, (RECEIVER, "base21"): 5412}  # where a pair has a second promise
CLOCK_STEP_S = 3600
IMAGERS = (("base20",), ("base21",), ("base20", "base21"))
RESERVABLE = ((RECEIVER, "base20"), (RECEIVER, "base21"), ("base20", RECEIVER), ("base21", RECEIVER))
LEAST_BYTES, MOST_BYTES = 500_000, 12_000_000
USED_SHARE = 0.7  # of those from the far end; the others are what images from there draw on
SLOWEST = 5.0  # times as long as the image would take alone
WIRE_OVER_PAYLOAD = 1538 / 1448


@dataclass(frozen=True, slots=True)
class SoakEvent:
    """One thing that happens.

    Attributes:
        number: counts from 0.
        kind: what.
        wait_s: after the one before.
        what: its particulars, by name.
    """

    number: int
    kind: EventKind
    wait_s: float
    what: dict[str, Any] = field(default_factory=dict)


def events(seed: int, count: int, mean_wait_s: float, rate_bps: int, rtt_s: float) -> Iterator[SoakEvent]:
    """Yield so many events; the same for the same arguments, and the first ones the same for every count.

    The first dozen has every kind of ``WEIGHTS``, so that a short run lacks none of them; after it come ports that are
    down or have other numbers, a silent database, clocks that are set, and second promises of a pair.

    Args:
        seed: of the random numbers.
        count: how many.
        mean_wait_s: the mean time between two, seconds.
        rate_bps: the circuit's rate, bit/s.
        rtt_s: its round-trip time, seconds.
    """
    draw = random.Random(seed)
    head = _head(draw)
    for number in range(count):
        is_later = number >= len(head)
        kind = draw.choices(list(LATER_WEIGHTS), list(LATER_WEIGHTS.values()))[0] if is_later else head[number]
        wait_s = round(draw.uniform(0.3, 1.7) * mean_wait_s, 3)
        what = _what(kind, draw, rate_bps, rtt_s)
        if is_later and kind is EventKind.RESERVE and draw.random() < 0.5:
            what["dest_port"] = OWN_PORTS.get((what["from"], what["to"]), 0)
        yield SoakEvent(number, kind, wait_s, what)


def _head(draw: random.Random) -> list[EventKind]:
    """Return one of each kind and a few promises more, shuffled."""
    head = [*WEIGHTS, EventKind.ANNOUNCE, EventKind.ANNOUNCE, EventKind.RESERVE]
    draw.shuffle(head)
    return head


def _what(kind: EventKind, draw: random.Random, rate_bps: int, rtt_s: float) -> dict[str, Any]:
    if kind is EventKind.ANNOUNCE:
        size_bytes = round(draw.uniform(LEAST_BYTES, MOST_BYTES))
        alone_s = 8 * size_bytes * WIRE_OVER_PAYLOAD / (0.93 * rate_bps) + 3 * rtt_s
        deadline_s = round(alone_s * draw.uniform(1.2, SLOWEST), 3) if draw.random() < 0.7 else None
        return {"from": list(draw.choice(IMAGERS)), "bytes": size_bytes, "deadline_s": deadline_s}
    if kind is EventKind.RESERVE:
        sender, receiver = draw.choice(RESERVABLE)
        return {
            "from": sender,
            "to": receiver,
            "class": draw.choice(("urgent", "background")),
            "rate_bps": 1000 * draw.randint(1_000, rate_bps // 4_000),
            "start_in_s": round(draw.uniform(1, 4), 1),
            "duration_s": draw.randint(5, 15),
            "used": draw.random() < USED_SHARE and sender == RECEIVER,
        }
    if kind in OF_A_HOST:
        return {"host": draw.choice((*SENDERS, RECEIVER)), "lasts_s": round(draw.uniform(0.2, 6), 1)}
    if kind is EventKind.SET_CLOCK:
        return {"by_s": draw.choice((-CLOCK_STEP_S, CLOCK_STEP_S)), "lasts_s": round(draw.uniform(0.2, 6), 1)}
    if kind in (EventKind.KILL_CONTROLLER, EventKind.KILL_SWITCH, EventKind.HOLD_DATABASE):
        return {"lasts_s": round(draw.choice((0, draw.uniform(0.2, 5))), 1)}
    return {}
