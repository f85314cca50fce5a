"""A flow that is watched, on the long line: how soon its demand is told, and how soon its end."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from mininet_tests.site.long_line_site import MBIT, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream, until
from topology.protocol import Allocation, Demand
from topology.uncollected import uncollected

PORT, LOCAL_PORT, RTT_MS, RATE_BPS, STANDBY_BPS = 5001, 5002, 180, 200 * MBIT, 20 * MBIT
SIZE_BYTES = 3_000_000  # 120 ms: a warm flight is over before its first byte can be confirmed
SIZES_BYTES = (SIZE_BYTES, SIZE_BYTES, 0)  # announced: of a new connection that was accepted, and twice again
LATE_BYTES = 14 * 1448  # written when all before has left; whole segments: Nagle does not hold them
LOOK_S = 0.0002
PAUSE_S = 1.0
LASTS_S = 5.0


def run(folder: Path) -> dict[str, Any]:
    """Return when the flights of each kind of connection were told to begin and to end."""
    with LongLineSite(folder, RTT_MS, RATE_BPS) as site:
        _stand_by(site)
        (connected,) = site.opened(PORT)
        seen = [_flight(site, connected, PORT, SIZE_BYTES)]
        (accepted,) = site.opened(LOCAL_PORT, sender_connects=False)
        seen += [_flight(site, accepted, LOCAL_PORT, size_bytes) for size_bytes in SIZES_BYTES]
        seen += [_flight(site, accepted, LOCAL_PORT, SIZE_BYTES, LATE_BYTES)]
    return {
        "rtt_s": site.rtt_s,
        "size_bytes": SIZE_BYTES,
        "announced_bytes": [SIZE_BYTES, *SIZES_BYTES, SIZE_BYTES],
        "seen": seen,
        "idle_share": site.idle_share,
    }


def _entries(site: LongLineSite, rate_bps: int, size_bytes: int = 0) -> list[Allocation]:
    entries = (site.allocation(PORT, RATE_BPS), site.allocation(LOCAL_PORT, RATE_BPS, local=True))
    return [replace(one, rate_bps=rate_bps, standby_bps=STANDBY_BPS, size_bytes=size_bytes) for one in entries]


def _stand_by(site: LongLineSite) -> None:
    site.plan(*_entries(site, STANDBY_BPS))
    until(time.monotonic() + PAUSE_S)


def _flight(site: LongLineSite, stream: TcpStream, port: int, size_bytes: int, late_bytes: int = 0) -> dict[str, float]:
    """Write, give the rate when it is wanted, and note the times; ``late_bytes`` are written when all else has left."""
    site.plan(*_entries(site, STANDBY_BPS, size_bytes))
    stream.sender.setblocking(True)
    with site.measured(), uncollected():
        return _noted(site, stream, port, size_bytes, late_bytes)


def _noted(site: LongLineSite, stream: TcpStream, port: int, size_bytes: int, late_bytes: int) -> dict[str, float]:
    wrote_s = time.monotonic()
    writing = threading.Thread(target=_written, args=(stream, late_bytes))
    writing.start()
    wanted_s = _heard(site, port, wants=True, after_s=wrote_s)
    sent_before = stream.told.sent_segments
    applied_s = _applied(site, site.send(*_entries(site, RATE_BPS, size_bytes)))
    while stream.told.sent_segments < sent_before + 20:  # at the standby rate 20 segments take 12 ms
        time.sleep(LOOK_S)
    grown_s = time.monotonic()
    writing.join()
    _all_left(stream)
    left_s, told = time.monotonic(), stream.told
    ended_s = _heard(site, port, wants=False, after_s=wanted_s)
    until(time.monotonic() + PAUSE_S)
    stream.sender.setblocking(False)
    return {
        "wanted_s": wanted_s - wrote_s,
        "applied_s": applied_s - wanted_s,
        "grown_s": grown_s - applied_s,
        "left_s": left_s - wrote_s,
        "ended_s": ended_s - left_s,
        "unconfirmed_segments": told.unacked_segments,
    }


def _written(stream: TcpStream, late_bytes: int) -> None:
    stream.sender.sendall(bytes(SIZE_BYTES - late_bytes))
    if late_bytes:
        _all_left(stream)
        stream.sender.sendall(bytes(late_bytes))


def _all_left(stream: TcpStream) -> None:
    while stream.told.notsent_bytes:
        time.sleep(LOOK_S)


def _heard(site: LongLineSite, port: int, *, wants: bool, after_s: float) -> float:
    """Return when the controller heard that the entry wants its rate, or no more.

    Raises:
        TimeoutError: it did not.
    """
    at_s = site.agent.controller.demand_at_s
    while time.monotonic() < after_s + LASTS_S:
        for one, heard_s in list(at_s.items()):
            if heard_s > after_s and _is(one, port, wants):
                return heard_s
        time.sleep(LOOK_S)
    raise TimeoutError(f"demand of port {port}")


def _applied(site: LongLineSite, epoch: int) -> float:
    """Return when a plan was confirmed, looking more often than ``obey`` does."""
    applied = site.agent.controller.applied_at_s
    while epoch not in applied:
        time.sleep(LOOK_S)
    return applied[epoch]


def _is(demand: Demand, port: int, wants: bool) -> bool:
    return demand.name == f"port{port}" and demand.wants is wants
