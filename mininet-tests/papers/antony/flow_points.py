"""Antony's figures 5, 8, 9, 11, 12 and 13, point by point, and what is read off each flow. Pure.

The paper's path: Amsterdam to Chicago, 96 ms, a circuit of 622 Mbit/s whose port has 0.5 MB, interfaces of 1 Gbit/s.
"""

from itertools import pairwise
from typing import Any

from controller.plan.bursts import MBIT
from mininet_tests.papers.antony.flows import LONG_QUEUE
from mininet_tests.papers.antony.points import BUFFER_BYTES, FIG2_PORT_BPS, FRAME_BYTES, GIGABIT

RTT_MS = 96
SHORT_QUEUE = 100  # packets, "the default queue length"
QUEUES = (4, 8, 16, 32, 64, 100, 300, 1_000)
QUICK_QUEUES = (8, 1_000)
EVENT = (15.0, 1.0, 800 * MBIT)  # "by sending approximately 800 Mbps UDP from another host to the receiver"
EVENT_LASTS_S = 45.0
CASES = {  # the paper's four; then what Linux does today, and Headway
    "reno, short queue": ("reno", SHORT_QUEUE),
    "reno": ("reno", LONG_QUEUE),
    "highspeed": ("highspeed", LONG_QUEUE),
    "highspeed, short queue": ("highspeed", SHORT_QUEUE),
    "cubic": ("cubic", LONG_QUEUE),
    "headway": ("headway", LONG_QUEUE),
}
QUICK_CASES = ("highspeed", "headway")
DELAYS_US = (0, 2, 4, 8, 20)  # before each packet, in the driver
SOCKETS_MB = (2, 8, 16)
LONG_S, BACKGROUND_BPS = 100.0, 35 * MBIT
EXPERIMENTS = ("fig5", "fig8", "fig9", "fig11", "fig13")
DILATION = 3


def flow_points(experiment: str, *, quick: bool) -> list[dict[str, Any]]:
    """Return the points of one of the figures; ``quick`` for few of them."""
    made = {"fig5": _fig5, "fig8": _fig8, "fig9": _fig9, "fig11": _fig11, "fig13": _fig13}
    return made[experiment](quick=quick)


def _flow(name: str, sender: str, lasts_s: float, every_s: float, **more: Any) -> dict[str, Any]:
    flow = {"sender": sender, "nic_bps": GIGABIT, "queue_packets": LONG_QUEUE, "port_bps": FIG2_PORT_BPS}
    flow |= {"buffer_bytes": BUFFER_BYTES, "rtt_ms": RTT_MS, "lasts_s": lasts_s, "every_s": every_s}
    return {"name": name.replace(", ", "-").replace(" ", "-"), "flow": flow | more}


def _fig5(*, quick: bool) -> list[dict[str, Any]]:  # noqa: ARG001 (like the others)
    return [
        _flow(f"fig5-{sender}", sender, 1.5, 0.1, is_traced=True, first_segments=1) for sender in ("reno", "headway")
    ]


def _fig8(*, quick: bool) -> list[dict[str, Any]]:
    return [
        _flow(f"fig8-{sender}-{queue}", sender, 5.0, 0.5, queue_packets=queue)
        for sender in ("reno", "cubic", "headway")
        for queue in (QUICK_QUEUES if quick else QUEUES)
    ]


def _fig9(*, quick: bool) -> list[dict[str, Any]]:
    return [
        _flow(f"fig9-{case}", sender, EVENT_LASTS_S, 0.5, queue_packets=queue, flood=list(EVENT)) | {"case": case}
        for case, (sender, queue) in CASES.items()
        if case in QUICK_CASES or not quick
    ]


def _fig11(*, quick: bool) -> list[dict[str, Any]]:
    delays_us, sockets_mb = ((0, 8), (16,)) if quick else (DELAYS_US, SOCKETS_MB)
    found = [
        _flow(
            f"fig11-{socket_mb}MB-{delay_us}us",
            "reno",
            5.0,
            0.5,
            nic_bps=delayed_bps(delay_us),
            socket_bytes=socket_mb * 1_000_000,
        )
        | {"delay_us": delay_us, "socket_mb": socket_mb}
        for socket_mb in sockets_mb
        for delay_us in delays_us
    ]
    return [*found, _flow("fig11-headway", "headway", 5.0, 0.5)]


def delayed_bps(delay_us: float) -> int:
    """Return the rate, frames, of an interface of 1 Gbit/s that waits before each full frame.

    >>> delayed_bps(0), delayed_bps(8)
    (1000000000, 602227526)
    """
    frame_s = FRAME_BYTES * 8 / GIGABIT
    return round(FRAME_BYTES * 8 / (frame_s + delay_us / 1e6))


def _fig13(*, quick: bool) -> list[dict[str, Any]]:
    lasts_s = 20.0 if quick else LONG_S
    more = {"flood": [0.0, lasts_s, BACKGROUND_BPS], "planned_bps": FIG2_PORT_BPS - BACKGROUND_BPS}
    return [_flow(f"fig13-{sender}", sender, lasts_s, 2.0, **more) for sender in ("highspeed", "headway")]


def rates_mbps(seen: dict[str, Any]) -> list[float]:
    """Return the payload rate in each interval of a flow, Mbit/s.

    >>> rates_mbps({"arrived_bytes": [0, 125_000, 375_000], "flow": {"every_s": 1.0}})
    [1.0, 2.0]
    """
    arrived, every_s = seen["arrived_bytes"], seen["flow"]["every_s"]
    return [(after - before) * 8 / every_s / 1e6 for before, after in pairwise(arrived)]


def mean_mbps(seen: dict[str, Any], from_s: float = 0, to_s: float | None = None) -> float:
    """Return the payload rate of a flow between two times, Mbit/s."""
    every_s = seen["flow"]["every_s"]
    first, last = round(from_s / every_s), len(seen["arrived_bytes"]) - 1 if to_s is None else round(to_s / every_s)
    arrived = seen["arrived_bytes"]
    return float((arrived[last] - arrived[first]) * 8 / ((last - first) * every_s) / 1e6)


def again_after_s(seen: dict[str, Any], share: float = 0.95) -> float | None:
    """Return how long after the end of its event a flow has again a share of what it had before; None if it has not."""
    at_s, for_s, _ = seen["flow"]["flood"]
    every_s = seen["flow"]["every_s"]
    before = mean_mbps(seen, at_s / 2, at_s)
    after = enumerate(rates_mbps(seen)[round((at_s + for_s) / every_s) :], start=1)
    return next((number * every_s for number, rate in after if rate >= share * before), None)
