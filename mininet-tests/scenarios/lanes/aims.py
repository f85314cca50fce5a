"""What lanes are to keep: both circuits' payload, an order without gaps, and a dead lane's rest. Pure.

Beside them what is known of protocols that have paths of their own: how long they stand still when an interface dies.
"""

from typing import Any

from controller.southbound.openflow.desired import METER_BURST_MS
from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.scenarios.lanes.programs import INTERFACE_DIES
from mininet_tests.testing.aims import Aim, at_least, at_most, equal, none_of, within

OF_BOTH_LANES = 0.97  # of what both are planned for, from the first byte to the last one's confirmation
OF_BOTH_OWN_PATHS = 0.95
"""Likewise, of MPTCP over 180 and 200 ms in 16.4 s: it lacks 4.2%.

28 of 1,448 bytes are mappings (RFC 8684, section 3.3): 1.9%. The first path is at its rate a round trip after its first
byte: two thirds of 0.18 s, 0.7%. MP_JOIN follows the first confirmation, data the fourth segment of its handshake
(section 3.2), more data the confirmation of what went at the standby rate: 0.18 + 3 x 0.2 s of a third, 1.6%.
"""
SAID_WITHIN_MS = 1000  # after a circuit's death, that the promise will be late
HELD = 0.97, 1.01  # of its plan, what a path has that is held
AHEAD_MS = METER_BURST_MS + 10  # of its lane's rate: the meter's burst, and between two looks at what has arrived
OF_WINDOWS = 0.85
"""Of what both windows carry, one association over 180 and 200 ms in 11.6 s.

Each path begins with three packets and has twice as many a round trip later, 31 times as many after five: 0.8 s of the
full rate are lost by that, 7%. The second path begins a round trip later, when a heartbeat has confirmed its address
(RFC 9260, section 5.4): half of 0.2 s, 1%. The rest is for confirmations that are delayed while there are few of them.
"""
LEAST_SHARE = 0.4
"""Of all bytes by the path that has less.

Windows of one size carry in proportion to 1/180 and 1/200: 47.4%. Without concurrent multipath transfer the second path
has what is sent again, and no more.
"""
CAME_OF_SENT = 0.999, 1.02
"""SCTP in UDP has 56 bytes of headers a packet, of which 52 are not counted: 0.3% of 1,444. More has come twice.

Packets of two paths overtake each other: who takes that for losses sends again what has come.
"""
STANDS_STILL_S = {"mptcp": (0.0, 3.0), "mptcp-stale1": (0.0, 0.3), "sctp": (1.0, 1.5), "sctp-rfc4960": (63.0, 66.1)}
"""When an interface dies, all times together in which nothing comes.

SCTP: the first timeout, RTO.min of 1 s, and a round trip until more than a first packet comes by the other path. By RFC
4960 (section 8.2) a path is given up after Path.Max.Retrans + 1 timeouts in a row, each twice as long as the one before
(section 6.3.3): 1 + 2 + 4 + 8 + 16 + 32 = 63 s. Linux rounds timers up: at 250 Hz one of 0.3 to 2 s to 32 ms, one of
up to 16 s to 256 ms, a longer one to 2,048 ms (kernel/time/timer.c): all six by 2.9 s at the most.
MPTCP: a path is given up after ``stale_loss_cnt`` + 1 timeouts of its retransmission timer without a word from it, each
of 0.2 s (TCP_RTO_MIN) to 0.6 s (that, and two round trips): by 3 s. Until then the other path carries on as long as the
receiver has room for what waits for the missing, so it may stand still for much less, and less is better.
"""


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    found = {"CPU idle": at_least(report["idle_share"], LEAST_IDLE_SHARE)}
    for name, one in report["runs"].items():
        of_one = _aims_of(name.split(",")[0], one)
        found |= {f"{name}: {aim}": kept for aim, kept in of_one.items()}
        found[f"{name}: layers above the next"] = none_of(one["violations"])
    return found


def _aims_of(program: str, one: dict[str, Any]) -> dict[str, Aim]:
    if one["what"] == INTERFACE_DIES:
        stood_s = round(sum(length for _, length in one["death"]["holes_s"]), 3)
        return {"stands still in all, s": within(stood_s, *STANDS_STILL_S[program])}
    if one["is_reserved"]:
        return {"ahead of its lane's rate, ms of it": at_most(one["burst_ms"], AHEAD_MS)} | _of_windows(
            one["by_windows"]
        )
    if "death" in one:
        return _of_a_death(one)
    return _held(one) if one["own_paths"] else _undisturbed(one, OF_BOTH_LANES)


def _of_windows(found: dict[str, float]) -> dict[str, Aim]:
    """Return the aims of an association that uses all its paths at once; of another none."""
    if not found:
        return {}
    return {
        "of what its windows carry": at_least(found["of_windows"], OF_WINDOWS),
        "of all bytes by the path with less": at_least(found["least_share"], LEAST_SHARE),
        "came, of what was sent": within(found["came_of_sent"], *CAME_OF_SENT),
    }


def _held(one: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a program that adds its second path itself: each is held, from when it is there."""
    aims = _undisturbed(one, OF_BOTH_OWN_PATHS)
    held = {f"{lane} of its plan": within(share, *HELD) for lane, share in one["held_of_plan"].items()}
    return aims | held


def _undisturbed(one: dict[str, Any], of_both_lanes: float) -> dict[str, Aim]:
    return {
        "of both lanes": at_least(one["of_both_lanes"], of_both_lanes),
        "done, s after the start": at_most(one["whole_s"], one["promised_s"]),
        "lanes used": equal(one["lanes_used"], 2),
        "segments out of order": none_of(one["counted"]["out_of_order"]),
        "segments sent again": none_of(one["counted"]["sent_again"]),
        "packets dropped": none_of(one["counted"]["dropped"]),
        "events of the promise": none_of(sum(one["events"].values())),
    }


def _of_a_death(one: dict[str, Any]) -> dict[str, Aim]:
    death = one["death"]
    return {
        **{
            f"{lane} at its new plan, ms": at_most(ms, death["allowed_ms"])
            for lane, ms in death["back_at_plan_ms"].items()
        },
        "said to be late, ms": at_most(death["said_to_be_late_after_ms"], SAID_WITHIN_MS),
        "said not to be carried": none_of(one["events"]["not_carried"]),
    }
