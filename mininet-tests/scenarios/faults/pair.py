"""Two promises of one pair of hosts at once, in two classes, and what is told of them while they are kept and after."""

from datetime import UTC, datetime
from typing import Any

from mininet_tests.scenarios.faults.cases import IMAGE, IMAGER, WITHIN_S, under_way
from mininet_tests.site.emulation import now_us
from mininet_tests.site.faults import Traffic
from mininet_tests.site.lsst import RECEIVER
from mininet_tests.testing.eventually import eventually
from topology.wire import Layer, converted_bps

NAME, SIZE_BYTES = "image-of-a-pair", 40_000_000
RESERVED_BPS, RESERVED_S = 1_000_000, 600


def pair(traffic: Traffic) -> dict[str, Any]:
    """Reserve in one class, announce in another for the same pair, send; return what was planned, told and kept.

    Raises:
        AssertionError: something did not come about in time.
        RuntimeError: one was refused.
    """
    site, network = traffic.site, traffic.site.realised.network
    framing = network.framing_of(network.path(IMAGER, RECEIVER))
    reserved = site.asked("POST", "/v1/reservations", _reservation())
    path, told = f"/v1/reservations/{reserved['id']}", f"/v1/announcements/{NAME}"
    eventually(lambda: site.get(path)["state"] == "active", within_s=WITHIN_S, what="the reservation is active")
    promised = under_way(traffic, NAME, SIZE_BYTES)
    plan, state = site.get("/v1/plan"), site.get(path)["state"]
    carried = {name.partition("/")[0]: entry for entry in plan["installed"]["allocations"] for name in entry["carries"]}
    entry = carried[NAME]["name"]
    eventually(lambda: _delivered_bytes(traffic, entry), within_s=WITHIN_S, what="the plan shows what was delivered")
    eventually(lambda: not traffic.streams[IMAGE].unconfirmed_bytes, within_s=WITHIN_S, what="the image is confirmed")
    confirmed_us = now_us()
    eventually(lambda: site.get(told)["state"] == "arrived", within_s=WITHIN_S, what="it is said to have arrived")
    site.release(NAME)
    site.asked("DELETE", path)
    kept = site.get(told)
    listed = site.get("/v1/announcements?state=arrived")["announcements"]
    promised_us = _us(promised["promised"])
    return {
        "state": state,
        "rates_payload_bps": {
            "image": converted_bps(promised["rates"][0]["rate_bps"], Layer.WIRE, Layer.PAYLOAD, framing),
            "reservation": converted_bps(RESERVED_BPS, Layer.WIRE, Layer.PAYLOAD, framing),
        },
        "planned_payload_bps": {
            "image": carried[NAME]["payload_bps"],
            "reservation": carried[reserved["id"]]["payload_bps"],
        },
        "classes": {"image": carried[NAME]["class"], "reservation": carried[reserved["id"]]["class"]},
        "violations": plan["violations"],
        "early_ms": (promised_us - confirmed_us) / 1000,
        "kept": {key: kept[key] for key in ("state", "bytes", "delivered_bytes", "exact", "late_s")},
        "is_listed": NAME in [one["id"] for one in listed],
    }


def _delivered_bytes(traffic: Traffic, entry: str) -> int:
    """Return what the plan says was delivered of an entry; 0 once it is not in it any more."""
    entries = traffic.site.get("/v1/plan")["installed"]["allocations"]
    return sum(one["progress"]["delivered_bytes"] for one in entries if one["name"] == entry)


def _us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


def _reservation() -> dict[str, Any]:
    """Return the body that asks for a little background from now on."""
    return {
        "from": IMAGER,
        "to": RECEIVER,
        "class": "background",
        "rate_bps": RESERVED_BPS,
        "start": datetime.fromtimestamp(now_us() / 1e6, UTC).isoformat(),
        "duration_s": RESERVED_S,
        "commit": True,
    }
