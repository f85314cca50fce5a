"""What the ring of sites is to show. Pure."""

from collections.abc import Iterator
from typing import Any

from mininet_tests.scenarios.ring.promises import PROMISES
from mininet_tests.testing.aims import Aim, above, at_least, equal, none_of, within
from mininet_tests.testing.networks import asc_ring
from topology.relinking import tagged
from topology.wire import Layer, converted_bps

PATH = ["albu10", "albu1", "losa1", "pop1", "pop10"]
RESERVED_PATH = ["albu20", "albu1", "live1", "pop1", "pop20"]
IN_CLASS = 0.99  # of what crosses the second circuit
AS_PLANNED = 0.01
ROUNDED = 0.999  # rates at a meter are whole kbit/s
WAYS = {
    "the rest": RESERVED_PATH,
    "by its port": ["albu20", "albu1", "losa1", "pop1", "pop20"],
    "by its mark": RESERVED_PATH,
    "a third party": PATH,
}


def aims(report: dict[str, Any], delay_us: int, reserved_bps: int, vlan_vids: dict[str, int]) -> dict[str, Aim]:
    """Return the aims of a report, of a ring with this delay of its circuits and this reservation."""
    network, reserved = asc_ring(delay_us=delay_us), report["reserved"]
    rtt_ms = network.path_rtt_us(network.path("albu20", "pop20")) / 1000
    payload_bps = converted_bps(
        reserved_bps, Layer.WIRE, Layer.PAYLOAD, tagged(asc_ring(), vlan_vids).framing_of(tuple(RESERVED_PATH))
    )
    (allocation,) = report["plan"]["installed"]["allocations"]
    flow, transfer = report["received_payload_bps"], reserved["received_payload_bps"]
    pair = {
        f"{name}: {aim}": one
        for name, seen in report["pair"]["promises"].items()
        for aim, one in _kept(name, seen, vlan_vids)
    }
    return {
        "round trip unplanned, ms": within(min(report["round_trips_ms"], default=None), rtt_ms, rtt_ms + 1),
        "way of the flow": equal(allocation["path"], PATH),
        "flow, payload bit/s": within(flow, 0.99 * allocation["payload_bps"], 1.001 * allocation["payload_bps"]),
        "flow in its class on the second circuit, share": above(_share(report, "background"), IN_CLASS),
        "layers above the next": none_of(report["violations"]),
        "way of the reservation": equal(reserved["path"], RESERVED_PATH),
        "reservation given back": equal(reserved["released"], "released"),
        "reserved transfer, payload bit/s": within(transfer, 0.985 * payload_bps, 1.001 * payload_bps),
        "reserved transfer in its class on both circuits, share": above(_share(reserved, "urgent"), IN_CLASS),
        "layers above the next under the reservation": none_of(reserved["violations"]),
        **pair,
        "layers above the next under all promises": none_of(report["pair"]["violations"]),
    }


def _kept(name: str, seen: dict[str, Any], vlan_vids: dict[str, int]) -> Iterator[tuple[str, Aim]]:
    """Yield what is asked of a promise that is in use beside others of its pair."""
    one = PROMISES[name]
    framing = tagged(asc_ring(), vlan_vids).framing_of(tuple(WAYS[name]))
    floor_bps = converted_bps(one.rate_bps, Layer.WIRE, Layer.PAYLOAD, framing)
    planned_bps = seen["planned_payload_bps"]
    yield "state", equal(seen["state"], "active")
    yield "class", equal(seen["class"], one.flow_class.value)
    yield "way", equal(seen["path"], WAYS[name])
    yield "planned, payload bit/s", at_least(planned_bps, ROUNDED * floor_bps)
    yield (
        "arrives, payload bit/s",
        within(seen["received_payload_bps"], (1 - AS_PLANNED) * planned_bps, (1 + AS_PLANNED) * planned_bps),
    )


def _share(seen: dict[str, Any], flow_class: str) -> float | None:
    """Return which part of the bytes that went on over a circuit was in a class."""
    total = sum(seen["transit_bytes"].values())
    return seen["transit_bytes"][flow_class] / total if total else None
