"""What must hold of every soak. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, equal, none_of


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report."""
    return {
        "complete": equal(report["complete"], expected=True),
        "layers above the next": none_of(report["violated"]),
        "drops at the edge but by a fault": none_of(report["dropped"]),
        "promises not kept that no fault broke": none_of(report["late"]),
        "transfers never confirmed": none_of(report["unconfirmed"]),
        "faults after which not all was settled": none_of(report["unsettled"]),
    }
