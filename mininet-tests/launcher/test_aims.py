"""Every aim can be missed, and a run that is as it should be misses none; no lab is needed for this."""

import copy
import json

import pytest

from mininet_tests.bench import agent, reservations
from mininet_tests.papers.antony import aims as antony
from mininet_tests.papers.freemon import aims as freemon
from mininet_tests.papers.freemon import tail
from mininet_tests.scenarios.drift import aims as drift
from mininet_tests.scenarios.failover import aims as failover
from mininet_tests.scenarios.faults import aims as faults
from mininet_tests.scenarios.faults.samples import FAULTS
from mininet_tests.scenarios.figure2 import aims as figure2
from mininet_tests.scenarios.floods import aims as floods
from mininet_tests.scenarios.handover import aims as handover
from mininet_tests.scenarios.lanes import aims as lanes
from mininet_tests.scenarios.layers import aims as layers
from mininet_tests.scenarios.longpath import aims as longpath
from mininet_tests.scenarios.ring import aims as ring
from mininet_tests.scenarios.soak import aims as soak
from mininet_tests.testing.aims import at_most, equal, stated

HOSTS = ("base20", "base22", "base23")
NO_DROPS = dict.fromkeys(HOSTS, 0)

FIGURE2 = {
    "rate_bps": 10**9,
    "rtt_ms": 180,
    "cpu": {"least_idle_share": 0.4, "needed_idle_share": 0.03},
    "utilisation": 0.998,
    "urgent": {"seconds": 24.7, "limit_seconds": 24.5},
    "predictable": {"min_share": 0.05, "max_share": 0.05},
    "handover": {"start_gap_ms": 20.9, "end_gap_ms": 10.4, "bin_ms": 10.485},
    "plan": {"violations": 0},
    "loss_seen": 1e-4,
    "loss_interval": [0.5e-4, 2e-4],
    "edge_drops_packets": {"ls1": 0},
    "fallbacks": 0,
}
FAILOVER = {
    "idle_share": 0.3,
    "cases": {
        "both": {
            "allowed_ms": 280,
            "write_status_before": None,
            "back_at_plan_ms": dict.fromkeys(HOSTS, 200.0),
            "planned_payload_bps": {"base20": 1},
            "prepared_payload_bps": {"base20": 1},
            "least_share_of_plan": dict.fromkeys(HOSTS, 0.95),
            "retransmitted_segments": {"while_down": NO_DROPS, "on_return": NO_DROPS},
            "edge_drops": {"on_return": NO_DROPS},
            "violations": [],
        }
    },
}
LANE = {"what": "undisturbed", "is_reserved": False, "own_paths": False, "violations": []}
TRANSFER = LANE | {
    "of_both_lanes": 0.98,
    "whole_s": 16.8,
    "promised_s": 17.2,
    "lanes_used": 2,
    "counted": {"out_of_order": 0, "sent_again": 0, "dropped": 0},
    "events": {"late": 0, "not_carried": 0},
}
LANES = {
    "idle_share": 0.3,
    "runs": {
        "curl, undisturbed": TRANSFER,
        "mptcp, undisturbed": TRANSFER | {"own_paths": True, "held_of_plan": {"base20": 0.99, "base20.eth1": 0.98}},
        "curl, north dies": LANE
        | {
            "what": "north dies",
            "death": {"allowed_ms": 300, "back_at_plan_ms": {"base20": 200.0}, "said_to_be_late_after_ms": 20.0},
            "events": {"late": 1, "not_carried": 0},
        },
        "mptcp-stale1, interface dies": LANE
        | {"what": "interface dies", "own_paths": True, "death": {"holes_s": [[0.0, 0.2]]}},
        "sctp, undisturbed": LANE | {"is_reserved": True, "burst_ms": 386.0, "by_windows": {}},
        "sctp-cmt, undisturbed": LANE
        | {
            "is_reserved": True,
            "burst_ms": 20.0,
            "by_windows": {"of_windows": 0.9, "least_share": 0.47, "came_of_sent": 1.003},
        },
        "sctp, interface dies": LANE
        | {"what": "interface dies", "is_reserved": True, "death": {"holes_s": [[0.0, 1.2]]}},
    },
}
WARM = {
    "connection": "warm",
    "start_gap_ms": 25,
    "end_gap_ms": 35,
    "drops": 0,
    "retransmitted_segments": 0,
    "seconds": 2.5,
    "promised_seconds": 2.6,
}
HANDOVER = {
    "cpu": {"least_idle_share": 0.4, "needed_idle_share": 0.03},
    "violations": 0,
    "variants": [WARM, WARM | {"connection": "fresh"}],
}
ROW = {"mtu_bytes": 1500, "vlan": False, "single_packets": True, "tags_in_frames": False, "error": 5e-4}
LAYERS = {
    "idle_share": 0.3,
    "rows": [
        ROW | {"layer": "pacing", "above_set": 5e-4, "dropped": 0},
        ROW | {"layer": "meter", "above_set": -5e-4, "dropped": 100},
        ROW | {"layer": "meter", "single_packets": False, "above_set": 0.04, "error": 0.004, "dropped": 30},
    ],
}
FLOOD = {
    "kind": "udp",
    "ratio": 1.0,
    "cpu_idle_share": 0.4,
    "urgent_s": 1.0,
    "retransmitted_segments": {},
    "queue_drops_packets": {},
    "openflow_messages": 5,
    "flood_arrived_bps": 90_000,
    "meter_drops_packets": {"ls1 meter 1000": 7},
}
LIAR = {"name": "liar-in-the-same-class", "flood_arrived_bps": 1_000_000, "meter_drops_packets": {"ls1 meter 2001": 5}}
FLOODS = {
    "limit_s": 1.0,
    "cases": [FLOOD | {"name": "undisturbed", "kind": ""}, FLOOD | {"name": "arp"}, FLOOD | LIAR],
    "plan": {
        "layers": {"ls1->ch1": {"meters_frame_bps": {"unplanned": 100_000}}},
        "installed": {"allocations": [{"path": ["base21"], "payload_bps": 956_407}]},
    },
}
BREAK = {
    "name": "rule deleted",
    "kind": "flow",
    "shape": "missing",
    "repaired_after_s": 0.2,
    "messages": 1,
    "expected_messages": 1,
    "deviations": [
        {"kind": "flow", "shape": "missing", "outcome": "repaired"},
        {"kind": "flow", "shape": "shadowed", "outcome": "left alone"},
    ],
}
PROPER = {"messages": 0, "latest": {"deviations": [], "errors": []}}
DRIFT = {
    "plan": {"allocations": [{"payload_bps": 100}]},
    "before": {"places": [PROPER]},
    "after": {"places": [{"messages": 1}]},
    "traffic": {"each_second_bps": [0, 0, 0, 99, 98, 0, 0], "retransmits": 0},
    "drops": {"line": {"a": 0}, "port": {"b": 0}},
    "foreign_rule_there": True,
    "ignored_rule_there": True,
    "breaks": [BREAK],
}
RING_PAIR = {
    name: {
        "state": "active",
        "class": one.flow_class.value,
        "path": ring.WAYS[name],
        "planned_payload_bps": 0.9405 * one.rate_bps,
        "received_payload_bps": 0.94 * one.rate_bps,
    }
    for name, one in ring.PROMISES.items()
}
RING = {
    "round_trips_ms": [50.5, 51.0],
    "received_payload_bps": 998,
    "transit_bytes": {"background": 999, "urgent": 1},
    "plan": {"installed": {"allocations": [{"path": ring.PATH, "payload_bps": 1000}]}},
    "violations": [],
    "reserved": {
        "path": ring.RESERVED_PATH,
        "released": "released",
        "received_payload_bps": 37_550_000,
        "transit_bytes": {"background": 1, "urgent": 999},
        "violations": [],
    },
    "pair": {"promises": RING_PAIR, "violations": []},
}
QUEUE_SENDER = {"paced_bps": 100, "in_flight_segments": 15, "rtt_ms": 210}
LONGPATH = {
    "sharing": {
        "idle_share": 0.3,
        "planned_bps": 100,
        "phases": [{"name": "4 send", "settled_bps": 100, "parts_bps": [25, 25, 25, 25]}],
    },
    "change": {
        "rtt_s": 0.18,
        "changes": [{"paced_after_s": [0.001]}],
        "idle": {"first_paced_bps": 100, "rate_bps": 100},
    },
    "fq": {"planned_bps": 100, "rates_bps": {"fq": 100}},
    "queue": {
        "planned_bps": 100,
        "window_segments": 10,
        "rtt_ms": 180,
        "queues": {"foreign": {"dropped": 0, "senders": [QUEUE_SENDER]}},
    },
    "tail": {"seen": [{"rtt_ms": 50, "more_rtts": [1.0, 0.5]}]},
    "faults": {
        "lease_s": 3.0,
        "rtt_s": 0.18,
        "planned_bps": 100,
        "faults": {"killed": {"own_after_s": 3.0, "back_after_s": 4.0, "then_bps": 100}},
    },
    "loss": {
        "held_before": True,
        "held_in_loss": False,
        "over_s": 2.0,
        "hold_s": 5.0,
        "own_after_s": 4.0,
        "told_after_s": 5.0,
        "back_after_fall_s": 6.0,
        "back_after_clear_s": 8.0,
    },
}
SOAK = {"complete": True, "violated": [], "dropped": [], "late": [], "unconfirmed": [], "unsettled": []}
TRIED = [{"buffer_bytes": 10_000_000, "dropped": 9, "sent_again": 9}]
ANTONY = {
    "freemon": {
        "printed_mb": {2: 11},
        "points": [
            {
                "name": "whole",
                "sender": "whole window",
                "senders": 2,
                "idle_share": 0.3,
                "smallest_bytes": 11_300_000,
                "predicted_bytes": 11_250_000,
                "tried": TRIED,
            },
            {
                "name": "paced",
                "sender": "headway",
                "idle_share": 0.3,
                "buffer_bytes": 9000,
                "dropped": 0,
                "sent_again": 0,
            },
        ],
    },
    "antony_fig2": {
        "idle_share": 0.3,
        "predicted": {"passing": 1600, "lost": 1050},
        "measured": {
            "passing": 1601,
            "lost": 1049,
            "share_lost_after_first": 278 / 900,
            "most_lost_in_a_row": 1,
            "nic_bps": 900e6,
            "port_bps": 622e6,
        },
    },
    "antony_fig4": {
        "buffer_bytes": 500,
        "points": [
            {"sender": sender, "rtt_ms": 100, "port_bps": 1, "predicted_bytes": 600, "idle_share": 0.3}
            | {"dropped": 0 if sender == "headway" else 9, "sent_again": 0}
            for sender in ("whole window", "slow start", "headway")
        ],
    },
}
WORST = {"worst_median_over_limit_rtts": 0.9, "worst_p95_over_limit_rtts": 1.9}
FREEMON = {
    "failed": {},
    "not_measured": {},
    "saturated": [],
    "on_fallback": {},
    "fallback_not_noted": 0,
    "runs_below_limit": [],
    "table1": {
        "sender_connects": {"cells": 60, "cells_at_or_below_paper": 60, "cells_at_or_below_paper_by_mean": 60} | WORST,
    },
    "table2": {"cells": 60, "cells_at_or_below_paper": 60} | WORST,
    "figure2": {"1g": {"violations": 0}},
    "figure3": {"sender connects": {"s": 2.6456, "paper_s": 2.65}},
    "starts": {"starts-pause-10-4MB": {"way": "pause", "queue_dropped": 0}},
    "night": {"late": 0, "background_share_of_leftover": 0.995},
}
AGENT = {"cpu_over_cubic": {"1": 0.94, "100": 0.94}, "push_ms": {"p99_200": 16.2}}
RESERVATIONS = {
    "decision_us": {"p99_at_30000": 159},
    "cpu_p99_over_p50_at_30000": 1.5,
    "p99_over_p50_at_30000": 1.6,
    "pairs_over_bare_commits": {"sqlite": 0.9},
}

TAIL = {
    "paths": {
        "new, 30 MB, 800 ms, 1%": {
            "twice": {"median_rtts": 1.2, "worst_rtts": 2.9},
            "once": {"median_rtts": 2.6, "worst_rtts": 5.1},
        },
        "reused, 268.8 MB, 180 ms, 0.1%": {
            "coded": {"median_rtts": 0.09, "worst_rtts": 0.3},
            "twice": {"median_rtts": 0.97, "worst_rtts": 1.01},
        },
    },
    "saturated": [],
    "on_fallback": 0,
}

VIDS = {"albuquerque-los-alamos": 301, "pop-livermore": 302, "los-alamos-pop": 303}
ALL = {
    "figure2": (figure2.aims, FIGURE2),
    "failover": (failover.aims, FAILOVER),
    "lanes": (lanes.aims, LANES),
    "handover": (handover.aims, HANDOVER),
    "layers": (layers.aims, LAYERS),
    "floods": (lambda seen: floods.aims(seen, frozenset({"arp", LIAR["name"]}), "base21"), FLOODS),
    "faults": (faults.aims, FAULTS),
    "drift": (lambda seen: drift.aims(seen, 2.0), DRIFT),
    "ring": (lambda seen: ring.aims(seen, 20_000, 40_000_000, VIDS), RING),
    "soak": (soak.aims, SOAK),
    "longpath": (longpath.aims, LONGPATH),
    "antony": (antony.aims, ANTONY),
    "freemon": (freemon.aims, FREEMON),
    "tail": (tail.aims, TAIL),
    "agent": (agent.aims, AGENT),
    "reservations": (reservations.aims, RESERVATIONS),
}


@pytest.mark.parametrize("name", ALL)
def test_a_run_that_is_as_it_should_be_misses_nothing(name):
    found, report = ALL[name]
    both = stated(found(report))
    assert both["aims"]
    assert both["falls_short"] == [], both["aims"]
    assert json.loads(json.dumps(both)) == both


GROWS = (
    "retransmitted_segments",
    "queue_drops_packets",
    "meter_drops_packets",
    "failed",
    "not_measured",
    "on_fallback",
)
"""What was counted by name: a name more is what can be wrong with it."""


def spoilt(value):
    """Another value of the same kind, beyond any bound from above, and from below."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 10**12, -(10**12)]
    return [f"not {value}"] if isinstance(value, str) else []


def spoilt_reports(report, part=None, path=()):
    """Yield the report again and again, with one value at the end of a path beyond all bounds, or one thing more."""
    part = report if part is None else part
    steps = list(part) if isinstance(part, dict) else list(range(len(part)))
    for step in steps:
        inner = part[step]
        if isinstance(inner, (dict, list)) and inner and step != "meter_drops_packets":
            yield from spoilt_reports(report, inner, (*path, step))
        for other in [["one more"]] if inner == [] else [{"one more": 1}] if step in GROWS else spoilt(inner):
            again = copy.deepcopy(report)
            where = again
            for before in path:
                where = where[before]
            where[step] = other
            yield again


@pytest.mark.parametrize("name", ALL)
def test_each_aim_can_be_missed(name):
    found, report = ALL[name]
    missed = set()
    for again in spoilt_reports(report):
        try:
            missed |= set(stated(found(again))["falls_short"])
        except (KeyError, ValueError):  # it is no such report any more
            continue
    assert set(found(report)) - missed == set()


def test_what_was_not_seen_misses_its_aim_and_can_be_written():
    both = stated({"gap": at_most(None, 3), "ratio": at_most(float("nan"), 3), "list": equal([1], [1])})
    assert both["falls_short"] == ["gap", "ratio"]
    assert json.loads(json.dumps(both, allow_nan=False)) == both


def test_of_what_nobody_asks_nothing_is_an_aim():
    assert not any(name.startswith("vswitchd away") for name in faults.aims(FAULTS))
