"""What faults may cost the traffic, by case. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, above, below, equal, none_of

RESTART_GAP_MS = 800  # seen: 80; an attempt a second later would make it 1,600 to 2,100
NO_GAP_MS = 60  # super-packets at the database's 5% of 100 Mbit/s, seen every 10 ms
SETTLED_MS = 10_000
DATABASE = "base22"
FORWARDING_STAYS = (
    "openflow cut",
    "openflow silent, plan changes",
    "plan changes back",
    "controller away",
    "database and openflow",
)
NOTHING_AGAIN = ("openflow cut", "controller away", "database and openflow")
NOTHING_LOST = ("openflow cut", "openflow silent, plan changes", "database and openflow")


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report, for those cases of which something is asked."""
    found = {"layers above the next": none_of(report["violated"])}
    for name, seen in report["faults"].items():
        found |= {f"{name}: {aim}": one for aim, one in _of_a_case(name, seen, report["lease_s"]).items()}
    return found


def _of_a_case(name: str, seen: dict[str, Any], lease_s: float) -> dict[str, Aim]:
    found: dict[str, Aim] = {}
    if name in FORWARDING_STAYS:
        found["database's worst gap, ms"] = below(seen["worst_gap_ms"][DATABASE], NO_GAP_MS)
    if name in NOTHING_AGAIN:
        found |= {
            "messages": none_of(seen["messages"]),
            "rules put again": none_of(seen["rules_put_again"]),
            "state as before": equal(seen["state_as_before"], expected=True),
        }
    if name in NOTHING_LOST:
        found["bytes sent again"] = none_of(sum(seen["resent_bytes"].values()))
        found["packets dropped at the edge"] = none_of(sum(seen["edge_drops_packets"].values()))
    if name == "vswitchd killed":
        found |= {
            "state as before": equal(seen["state_as_before"], expected=True),
            "rules put again": equal(seen["rules_put_again"], seen["rules"]),
            "messages, one for each rule and more": above(seen["messages"], seen["rules"]),
            "messages, all of them once": below(seen["messages"], 1.5 * seen["rules"]),
            "worst gap, ms": below(max(seen["worst_gap_ms"].values()), RESTART_GAP_MS),
        }
    if name == "plan changes back":
        found["settled after, ms"] = below(seen["settled_after_ms"], SETTLED_MS)
    if name == "controller away":
        found["hosts that fell back"] = equal(seen["fell_back"], ["base22", "base23"])
        found["longer than the lease, ms"] = above(seen["lasted_ms"], 1000 * lease_s)
    if name == "openflow cut":
        found["hosts that fell back"] = none_of(seen["fell_back"])
    return found
