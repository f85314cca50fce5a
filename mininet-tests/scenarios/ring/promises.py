"""Three promises of one pair of hosts at once, in two classes and both ways round, and a third party's beside them."""

import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controller.plan.policy import DEFAULT_POLICY
from mininet_tests.site.emulation import Emulation
from mininet_tests.site.faults import Traffic, held
from mininet_tests.site.tcp_flows import until
from mininet_tests.testing.eventually import eventually
from topology.protocol import FlowClass

PAIR, THIRD = ("albu20", "pop20"), ("albu10", "pop10")
LOS_ALAMOS, LIVERMORE = "albuquerque-los-alamos", "livermore-albuquerque"
BEGIN_IN_S, LAST_S = 5, 600
UNDER_WAY_S, OVER_S = 2.0, 5.0  # 2 s are 25 round trips


@dataclass(frozen=True, slots=True)
class RingPromise:
    """A reservation, and the connection that uses it.

    Attributes:
        ends: who sends to whom.
        flow_class: whose share.
        rate_bps: on the wire.
        avoided: the circuit that it must not touch, so that it goes the other way round.
        port: the receiver's port of its connection.
        is_by_port: whether it is for connections to that port alone.
        is_marked: whether its application marks what it sends with its class's code point.
    """

    ends: tuple[str, str]
    flow_class: FlowClass
    rate_bps: int
    avoided: str
    port: int
    is_by_port: bool = False
    is_marked: bool = False


PROMISES = {
    "the rest": RingPromise(PAIR, FlowClass.URGENT, 30_000_000, LOS_ALAMOS, 5311),
    "by its port": RingPromise(PAIR, FlowClass.BACKGROUND, 20_000_000, LIVERMORE, 5312, is_by_port=True),
    "by its mark": RingPromise(PAIR, FlowClass.BACKGROUND, 10_000_000, LOS_ALAMOS, 5313, is_marked=True),
    "a third party": RingPromise(THIRD, FlowClass.URGENT, 35_000_000, LIVERMORE, 5314),
}


def promised(site: Emulation) -> dict[str, Any]:
    """Return, by promise, its way, what it was planned and what arrived of it, with all of them in use at once.

    Raises:
        AssertionError: one did not become active, or its connection was not taken over, in time.
        RuntimeError: one was refused.
    """
    start_s = time.time() + BEGIN_IN_S
    made = {name: site.asked("POST", "/v1/reservations", _asked(one, start_s)) for name, one in PROMISES.items()}
    paths = {name: f"/v1/reservations/{one['id']}" for name, one in made.items()}
    eventually(
        lambda: all(site.get(path)["state"] == "active" for path in paths.values()), within_s=60, what="all are active"
    )
    traffic = Traffic(site)
    for name, one in PROMISES.items():
        stream = traffic.open(name, *one.ends, one.port)
        if one.is_marked:
            dscp = DEFAULT_POLICY.classes[one.flow_class].dscp
            stream.sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        traffic.feed(name)
    eventually(lambda: all(held(s) for s in traffic.streams.values()), within_s=60, what="agents hold all of them")
    until(time.monotonic() + UNDER_WAY_S)
    received_bps = _received_bps(traffic)
    plan = site.get("/v1/plan")
    allocations = plan["installed"]["allocations"]
    carried = {name.partition("/")[0]: allocation for allocation in allocations for name in allocation["carries"]}
    states = {name: site.get(path)["state"] for name, path in paths.items()}
    traffic.close()
    for path in paths.values():
        site.asked("DELETE", path)
    entries = {name: carried[one["id"]] for name, one in made.items()}
    return {
        "promises": {
            name: {
                "rate_bps": one.rate_bps,
                "state": states[name],
                "class": entries[name]["class"],
                "path": entries[name]["path"],
                "planned_payload_bps": entries[name]["payload_bps"],
                "received_payload_bps": received_bps[name],
            }
            for name, one in PROMISES.items()
        },
        "violations": plan["violations"],
    }


def _asked(one: RingPromise, start_s: float) -> dict[str, Any]:
    """Return the body that asks for a promise."""
    body = {
        "from": one.ends[0],
        "to": one.ends[1],
        "class": one.flow_class.value,
        "rate_bps": one.rate_bps,
        "start": datetime.fromtimestamp(start_s, UTC).isoformat(),
        "duration_s": LAST_S,
        "constraints": {"exclude": [one.avoided]},
        "commit": True,
    }
    return body | ({"connections": {"dest_port": one.port}} if one.is_by_port else {})


def _received_bps(traffic: Traffic) -> dict[str, int]:
    """Return what arrives of each connection for some seconds, payload bit/s."""
    streams = traffic.streams
    before = {name: (time.monotonic(), stream.received_bytes) for name, stream in streams.items()}
    until(time.monotonic() + OVER_S)
    after = {name: (time.monotonic(), stream.received_bytes) for name, stream in streams.items()}
    return {
        name: round(8 * (after[name][1] - count) / (after[name][0] - at_s)) for name, (at_s, count) in before.items()
    }
