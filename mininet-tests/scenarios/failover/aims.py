"""What the death and the return of a circuit may cost. Pure."""

from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.testing.aims import Aim, above, at_least, at_most, equal, none_of

UNAVAILABLE = 503  # of HTTP
URGENT, PREDICTABLE, BACKGROUND = "base20", "base22", "base23"


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    found = {"CPU idle": at_least(report["idle_share"], LEAST_IDLE_SHARE)}
    for name, seen in report["cases"].items():
        found |= {f"{name}: {aim}": one for aim, one in _of_a_case(seen).items()}
    return found


def _of_a_case(seen: dict[str, Any]) -> dict[str, Aim]:
    back_ms, again, status = seen["back_at_plan_ms"], seen["retransmitted_segments"], seen["write_status_before"]
    held = {} if status is None else {"the database hung, a write before": equal(status, UNAVAILABLE)}
    return held | {
        "urgent back at its plan, ms": at_most(back_ms[URGENT], seen["allowed_ms"]),
        "predictable back at its plan, ms": at_most(back_ms[PREDICTABLE], seen["allowed_ms"]),
        "plan in force is the one that was ready": equal(seen["planned_payload_bps"], seen["prepared_payload_bps"]),
        "background beside it, least share of its plan": above(seen["least_share_of_plan"][BACKGROUND], 0.9),
        "background beside it, segments sent again": none_of(again["while_down"][BACKGROUND]),
        "segments sent again on the return": none_of(sum(again["on_return"].values())),
        "packets dropped on the return": none_of(sum(seen["edge_drops"]["on_return"].values())),
        "layers above the next": none_of(seen["violations"]),
    }
