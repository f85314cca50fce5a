"""What a report says of a run in which all is as it should be, for tests of its aims."""

from typing import Any

FAULT: dict[str, Any] = {
    "worst_gap_ms": {"base22": 20},
    "messages": 0,
    "rules": 40,
    "rules_put_again": 0,
    "state_as_before": True,
    "resent_bytes": {"base22": 0},
    "edge_drops_packets": {"ls1": 0},
    "settled_after_ms": 300,
    "fell_back": [],
    "lasted_ms": 8000,
}
GIVEN_AWAY: dict[str, Any] = FAULT | {
    "ok": True,
    "reasons": [],
    "most_sockets_bps": 98_338_991,
    "violations": [],
    "planned": ["efd-replication", "raw-images"],
    "planned_payload_bps": {"raw-images": 87_463_408},
    "calendar_off_s": 3600,
}
KEPT = {"state": "arrived", "bytes": 40, "delivered_bytes": 40, "exact": True, "late_s": -0.4}
PAIR: dict[str, Any] = {
    "state": "active",
    "rates_payload_bps": {"image": 87_444_889, "reservation": 941_482},
    "planned_payload_bps": {"image": 87_463_408, "reservation": 941_482},
    "classes": {"image": "urgent", "reservation": "background"},
    "violations": [],
    "early_ms": 333.7,
    "kept": KEPT,
    "is_listed": True,
}
NOTICED = {"noticed_s": 0.2, "says_where": True}
POINTS: dict[str, Any] = {
    "offers": {"first": 201, "refused": 409, "offered": 2, "taken": [{"status": 201}, {"status": 201}]},
    "circuit port gone and back": {
        "announced": 201,
        "carried": False,
        "says_where": True,
        "began_lines": 1,
        "over_lines": 1,
        "without_queues_s": 0.1,
    },
    "changed while it runs": {"status": 200, "circuits_before": ["north"], "circuits_after": ["north"]},
    "announced twice": {"statuses": [201, 200, 409], "is_the_same": True},
    "host port down": NOTICED | {"well_again_s": 0.2},
    "host port under another number": NOTICED | {"well_again_s": 0.2},
    "somebody else's queues": NOTICED | {"well_again_s": 9.0},
    "rules of nobody's": {"status": 200, "lines": 1, "error_lines": 0},
    "switch that is unknown": NOTICED,
    "switch claimed twice": NOTICED,
    "reservations that have ended": {
        "made": 3,
        "in_memory_before": 3,
        "in_memory": 0,
        "found": [[200, "released"]],
        "not_listed": 0,
    },
    "database hangs": {
        "writes": 3,
        "write_statuses": [503],
        "without_retry_after": 0,
        "slowest_write_s": 1.6,
        "read_statuses": [200],
        "read_while_a_write_waited": 9,
        "slowest_read_s": 0.1,
        "lease_s": 3.0,
        "without_renewal_s": 1.0,
        "failures": [],
    },
}
LOST = ["base22: too much is lost", "base23: too much is lost"]
FAULTS: dict[str, Any] = {
    "violated": [],
    "points": POINTS,
    "pair": PAIR,
    "one_percent": {"transfers": 80, "sent_segments": 1000, "sent_again_segments": 11, "fell": []},
    "lease_s": 3.0,
    "faults": {
        "openflow cut": FAULT,
        "vswitchd killed": FAULT | {"messages": 50, "rules_put_again": 40},
        "plan changes back": FAULT,
        "controller away": FAULT | {"fell_back": ["base22", "base23"]},
        "vswitchd away": FAULT | {"worst_gap_ms": {"base22": 4000}},
        "agent dead, clock forward": GIVEN_AWAY,
        "agent dead, image deleted, clock back": GIVEN_AWAY | {"calendar_off_s": -3600},
        "controller restarts beside a silent agent": GIVEN_AWAY,
        "so much is lost": FAULT
        | {"fell_back": ["base22", "base23"], "hindrances": {"raw-images": "fallback"}, "reasons": LOST},
    },
}
