"""What faults may cost the traffic, by case. Pure."""

from typing import Any

from mininet_tests.scenarios.faults.cases import BACKGROUND_FLOW
from mininet_tests.site.standing import RATE_BPS
from mininet_tests.testing.aims import Aim, above, at_least, at_most, below, equal, none_of
from mininet_tests.testing.networks import chile_illinois
from topology.wire import Layer, converted_bps

OK, CREATED, CONFLICT, UNAVAILABLE = 200, 201, 409, 503  # of HTTP
RESTART_GAP_MS = 800  # seen: 80; an attempt a second later would make it 1,600 to 2,100
NO_GAP_MS = 60  # super-packets at the database's 5% of 100 Mbit/s, seen every 10 ms
SETTLED_MS = 10_000
BARE_S = 1.0  # of a circuit's port that is back; an audit comes each 10 s
ANSWERED_S = 2.5  # a write is answered within 2 s; the rest is a busy machine's
NOTICED_S = 5.0
WELL_AGAIN_S = 5.0  # what comes up is audited at once; an audit comes each 10 s
AUDITED_S = 12.0  # what only an audit finds
DATABASE = "base22"
ROUNDED = 0.999  # rates at a meter are whole kbit/s
CIRCUIT_FRAME_BPS = converted_bps(RATE_BPS, Layer.WIRE, Layer.FRAME, chile_illinois().framing)
IN_USE, GIVEN_AWAY = 0.8, 0.7  # of the circuit
STANDING = ["efd-replication", "raw-images"]
TRANSFERS = 80  # under loss
FORWARDING_STAYS = (
    "openflow cut",
    "openflow silent, plan changes",
    "plan changes back",
    "controller away",
    "database and openflow",
)
NOTHING_AGAIN = ("openflow cut", "controller away", "database and openflow")
WITH_A_SILENT_AGENT = (
    "agent dead, clock forward",
    "agent dead, image deleted, clock back",
    "controller restarts beside a silent agent",
)
CLOCK_OFF_S = {"agent dead, clock forward": 3600, "agent dead, image deleted, clock back": -3600}
NOTHING_LOST = ("openflow cut", "openflow silent, plan changes", "database and openflow")


def aims(report: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a report, for those cases of which something is asked."""
    found = {"layers above the next": none_of(report["violated"])} | of_points(report["points"])
    if report["pair"]:
        found |= of_a_pair(report["pair"])
    if report["one_percent"]:
        found |= _of_one_percent(report["one_percent"])
    for name, seen in report["faults"].items():
        found |= {f"{name}: {aim}": one for aim, one in of_a_case(name, seen, report["lease_s"]).items()}
    return found


def of_points(points: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of what ``points.py`` did."""
    rules = points["rules of nobody's"]
    return {
        **_of_promises(points),
        **_of_the_circuit_port(points["circuit port gone and back"]),
        **_noticed(points, "host port down", NOTICED_S, WELL_AGAIN_S),
        **_noticed(points, "host port under another number", NOTICED_S, WELL_AGAIN_S),
        **_noticed(points, "somebody else's queues", AUDITED_S, AUDITED_S),
        **_noticed(points, "switch that is unknown", NOTICED_S, None),
        **_noticed(points, "switch claimed twice", NOTICED_S, None),
        "rules of nobody's: the health": equal(rules["status"], OK),
        "rules of nobody's: lines": equal(rules["lines"], 1),
        "rules of nobody's: lines of errors": none_of(rules["error_lines"]),
        **_of_the_database(points["database hangs"]),
    }


def _of_promises(points: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of offers, changes, announcements said twice, and what has ended."""
    offers, changed, twice = points["offers"], points["changed while it runs"], points["announced twice"]
    ended = points["reservations that have ended"]
    refused = [offer for offer in offers["taken"] if offer["status"] != CREATED]
    return {
        "offers: asked for too much": equal(offers["refused"], CONFLICT),
        "offers": at_least(offers["offered"], 2),
        "offers that are not granted": none_of(refused),
        "changed while it runs: judged by what is to come": equal(changed["status"], OK),
        "changed while it runs: its circuit": equal(changed["circuits_after"], changed["circuits_before"]),
        "announced twice, and otherwise: answers": equal(twice["statuses"], [CREATED, OK, CONFLICT]),
        "announced twice: the same promise": equal(twice["is_the_same"], expected=True),
        "reservations that have ended: in memory before": equal(
            ended["in_memory_before"] - ended["in_memory"], ended["made"]
        ),
        "reservations that have ended: found": equal(ended["found"], [[OK, "released"]]),
        "reservations that have ended: not in the list": none_of(ended["not_listed"]),
    }


def _of_the_circuit_port(port: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a circuit's port that is gone and comes back."""
    return {
        "circuit port gone: an announcement": equal([port["announced"], port["carried"]], [CREATED, False]),
        "circuit port gone: its reason names the place": equal(port["says_where"], expected=True),
        "circuit port gone: lines": equal([port["began_lines"], port["over_lines"]], [1, 1]),
        "circuit port back: without queues, s": below(port["without_queues_s"], BARE_S),
    }


def _noticed(points: dict[str, Any], name: str, noticed_s: float, well_again_s: float | None) -> dict[str, Aim]:
    """Return the aims of a fault that has to be noticed, and said with its place, and be over when it is mended."""
    seen = points[name]
    found = {
        f"{name}: noticed after, s": below(seen["noticed_s"], noticed_s),
        f"{name}: a reason names the place": equal(seen["says_where"], expected=True),
    }
    if well_again_s is not None:
        found[f"{name}: well after it is mended, s"] = below(seen["well_again_s"], well_again_s)
    return found


def _of_the_database(hung: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of a database that hangs."""
    return {
        "database hangs: writes": above(hung["writes"], 1),
        "database hangs: their answers": equal(hung["write_statuses"], [UNAVAILABLE]),
        "database hangs: answers without Retry-After": none_of(hung["without_retry_after"]),
        "database hangs: slowest write, s": below(hung["slowest_write_s"], ANSWERED_S),
        "database hangs: reads but of the health": equal(hung["read_statuses"], [OK]),
        "database hangs: reads answered while a write waited": above(hung["read_while_a_write_waited"], 0),
        "database hangs: a host's lease without renewal, s": below(hung["without_renewal_s"], hung["lease_s"]),
        "database hangs: unforeseen": none_of(hung["failures"]),
    }


def of_a_case(name: str, seen: dict[str, Any], lease_s: float) -> dict[str, Aim]:
    """Return the aims of one case, by what it did."""
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
    if name in WITH_A_SILENT_AGENT:
        found["most that sockets may send, frame bit/s"] = at_most(seen["most_sockets_bps"], CIRCUIT_FRAME_BPS)
        found["the image's was in use before"] = above(seen["most_sockets_bps"], IN_USE * CIRCUIT_FRAME_BPS)
        found["violations"] = none_of(seen["violations"])
        others_bps = seen["planned_payload_bps"].get(BACKGROUND_FLOW, 0)
        found["after the lease the background is planned, bit/s"] = at_least(others_bps, GIVEN_AWAY * CIRCUIT_FRAME_BPS)
    if name in CLOCK_OFF_S:
        found["the clock is said to be off, s"] = equal(seen["calendar_off_s"], CLOCK_OFF_S[name])
    if name == "agent dead, image deleted, clock back":
        found["not well without a reason"] = equal(bool(seen["ok"] or seen["reasons"]), expected=True)
        found["planned, with nothing for the image that is gone"] = equal(seen["planned"], STANDING)
    if name == "so much is lost":
        found["hosts that fell back"] = equal(seen["fell_back"], ["base22", "base23"])
        found["what is in the way"] = equal(sorted(set(seen["hindrances"].values())), ["fallback"])
        said = sorted(reason.partition(":")[0] for reason in seen["reasons"] if "too much is lost" in reason)
        found["hosts of which it is said"] = equal(said, ["base22", "base23"])
    return found


def of_a_pair(pair: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of two promises of one pair in two classes."""
    planned, promised, kept = pair["planned_payload_bps"], pair["rates_payload_bps"], pair["kept"]
    return {
        "a pair promised twice: the reservation": equal(pair["state"], "active"),
        "a pair promised twice: classes": equal(pair["classes"], {"image": "urgent", "reservation": "background"}),
        **{
            f"a pair promised twice: planned for the {name}, payload bit/s": at_least(planned[name], ROUNDED * bps)
            for name, bps in promised.items()
        },
        "a pair promised twice: layers above the next": none_of(pair["violations"]),
        "a pair promised twice: before its promise, ms": at_least(pair["early_ms"], 0),
        "what became of an announcement: state": equal(kept["state"], "arrived"),
        "what became of an announcement: delivered": equal(kept["delivered_bytes"], kept["bytes"]),
        "what became of an announcement: counted to the byte": equal(kept["exact"], expected=True),
        "what became of an announcement: late, s": at_most(kept["late_s"], 0),
        "what became of an announcement: in the list": equal(pair["is_listed"], expected=True),
    }


def _of_one_percent(seen: dict[str, Any]) -> dict[str, Aim]:
    """Return the aims of transfers of which one percent of the segments is lost."""
    return {
        "1% is lost: transfers": at_least(seen["transfers"], TRANSFERS),
        "1% is lost: segments sent again": above(seen["sent_again_segments"], 0.005 * seen["sent_segments"]),
        "1% is lost: transfers that fell off the plan": none_of(seen["fell"]),
    }
