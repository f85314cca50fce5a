"""What lanes are to keep: both circuits' payload, an order without gaps, and a dead lane's rest. Pure."""

from typing import Any

from mininet_tests.lab.saturation import LEAST_IDLE_SHARE
from mininet_tests.testing.aims import Aim, at_least, at_most, equal, none_of

OF_BOTH_LANES = 0.97  # of what both are planned for, from the first byte to the last one's confirmation
SAID_WITHIN_MS = 1000  # after a circuit's death, that the promise will be late


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    found = {"CPU idle": at_least(report["idle_share"], LEAST_IDLE_SHARE)}
    for name, one in report["runs"].items():
        of_one = _of_a_death(one) if "death" in one else _undisturbed(one)
        found |= {f"{name}: {aim}": kept for aim, kept in of_one.items()}
        found[f"{name}: layers above the next"] = none_of(one["violations"])
    return found


def _undisturbed(one: dict[str, Any]) -> dict[str, Aim]:
    return {
        "of both lanes": at_least(one["of_both_lanes"], OF_BOTH_LANES),
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
