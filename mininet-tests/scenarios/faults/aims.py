"""What faults may cost the traffic, by case. Pure."""

from typing import Any

from mininet_tests.testing.aims import Aim, above, at_least, below, equal, none_of

CREATED, CONFLICT, UNAVAILABLE = 201, 409, 503  # of HTTP
RESTART_GAP_MS = 800  # seen: 80; an attempt a second later would make it 1,600 to 2,100
NO_GAP_MS = 60  # super-packets at the database's 5% of 100 Mbit/s, seen every 10 ms
SETTLED_MS = 10_000
BARE_S = 1.0  # of a circuit's port that is back; an audit comes each 10 s
ANSWERED_S = 2.5  # a write is answered within 2 s; the rest is a busy machine's
READ_S = 3.0  # seen: 1.0 beside two labs; one that waited for the database would take as long as that hangs
NOTICED_S = 5.0
WELL_AGAIN_S = 12.0  # the next audit lifts the alarm
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
    found = {"layers above the next": none_of(report["violated"])} | of_points(report["points"])
    for name, seen in report["faults"].items():
        found |= {f"{name}: {aim}": one for aim, one in _of_a_case(name, seen, report["lease_s"]).items()}
    return found


def of_points(points: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of what ``points.py`` did."""
    offers, port, hung = points["offers"], points["circuit port gone and back"], points["database hangs"]
    down, twice = points["host port down"], points["switch claimed twice"]
    refused = [offer for offer in offers["taken"] if offer["status"] != CREATED]
    return {
        "offers: asked for too much": equal(offers["refused"], CONFLICT),
        "offers": at_least(offers["offered"], 2),
        "offers that are not granted": none_of(refused),
        "circuit port gone: an announcement": equal([port["announced"], port["carried"]], [CREATED, False]),
        "circuit port gone: its reason names the place": equal(port["says_where"], expected=True),
        "circuit port gone: lines": equal([port["began_lines"], port["over_lines"]], [1, 1]),
        "circuit port back: without queues, s": below(port["without_queues_s"], BARE_S),
        "host port down: noticed after, s": below(down["noticed_s"], NOTICED_S),
        "host port down: a reason names the host": equal(down["says_where"], expected=True),
        "host port back: well after, s": below(down["well_again_s"], WELL_AGAIN_S),
        "switch claimed twice: noticed after, s": below(twice["noticed_s"], NOTICED_S),
        "switch claimed twice: a reason names the switch": equal(twice["says_where"], expected=True),
        "database hangs: writes": above(hung["writes"], 1),
        "database hangs: their answers": equal(hung["write_statuses"], [UNAVAILABLE]),
        "database hangs: answers without Retry-After": none_of(hung["without_retry_after"]),
        "database hangs: slowest write, s": below(hung["slowest_write_s"], ANSWERED_S),
        "database hangs: slowest read, s": below(hung["slowest_read_s"], READ_S),
    }


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
