"""How long the last bytes of a transfer take when packets are lost."""

import threading
import time
from pathlib import Path
from typing import Any

from mininet_tests.site.long_line_site import MBIT, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream

FIRST_PORT, SIDE_BY_SIDE, RATE_BPS = 5001, 4, 60 * MBIT
TRANSFER_BYTES = 2_000_000  # 1382 segments: fourteen losses, and in every seventh transfer one of them twice
RTTS_MS = (50, 180, 400, 800)
LOSS_PERCENT = 1.0
ROUNDS, CALM_ROUNDS = 16, 3
LOOKS_PER_RTT = 50
GIVE_UP_S, QUIET_S = 30.0, 0.5


def run(folder: Path) -> dict[str, Any]:
    """Return the times of the transfers with the agent's own least timeout."""
    return _run(folder, {})


def run_plain(folder: Path) -> dict[str, Any]:
    """Return the times of the transfers with the kernel's least timeout."""
    return _run(folder, {"rto_min": "200 ms"})


def _run(folder: Path, settings: dict[str, object]) -> dict[str, Any]:
    seen = []
    ports = range(FIRST_PORT, FIRST_PORT + SIDE_BY_SIDE)
    with LongLineSite(folder, max(RTTS_MS), SIDE_BY_SIDE * RATE_BPS, settings=settings) as site:
        for rtt_ms in RTTS_MS:
            site.line.change(rtt_ms=rtt_ms, loss_percent=0)
            site.plan(*(site.allocation(port, RATE_BPS, rtt_ms=rtt_ms) for port in ports))
            streams = [site.opened(port, 1)[0] for port in ports]
            _took_s(site, streams, rtt_ms)  # opens the window of new connections
            calm_s = [took_s for _ in range(CALM_ROUNDS) for took_s in _took_s(site, streams, rtt_ms)]
            site.line.change(loss_percent=LOSS_PERCENT)
            with site.measured():
                lossy_s = [took_s for _ in range(ROUNDS) for took_s in _took_s(site, streams, rtt_ms)]
            told = [stream.told for stream in streams]
            site.line.change(loss_percent=0)
            site.close(streams)
            without_s = min(calm_s)  # the last segment's confirmation may be delayed or not
            print(f"{rtt_ms} ms: {sorted(round((t - without_s) * 1000 / rtt_ms, 2) for t in lossy_s)}", flush=True)
            seen.append(
                {
                    "rtt_ms": rtt_ms,
                    "calm_s": calm_s,
                    "more_rtts": [(took_s - without_s) * 1000 / rtt_ms for took_s in lossy_s],
                    "sent_segments": sum(t.sent_segments for t in told),
                    "retransmitted_segments": sum(t.retransmitted_segments for t in told),
                }
            )
    return {
        "planned_bps": RATE_BPS,
        "transfer_bytes": TRANSFER_BYTES,
        "loss_percent": LOSS_PERCENT,
        "seen": seen,
        "idle_share": site.idle_share,
    }


def _took_s(site: LongLineSite, streams: list[TcpStream], rtt_ms: float) -> list[float]:
    """Return how long one transfer on each took until its last byte was confirmed, side by side."""
    took_s = confirmed_s(site, streams, TRANSFER_BYTES, TRANSFER_BYTES * 8 / RATE_BPS, rtt_ms)
    threading.Event().wait(QUIET_S + rtt_ms / 1000)
    return took_s


def confirmed_s(
    site: LongLineSite, streams: list[TcpStream], size_bytes: int, least_s: float, rtt_ms: float
) -> list[float]:
    """Return how long it took on each until the last of its bytes was confirmed, all written at once.

    Args:
        site: the line.
        streams: what is written to, side by side.
        size_bytes: of each.
        least_s: none can be confirmed before.
        rtt_ms: of the line.

    Raises:
        AssertionError: one was not confirmed for a very long time.
    """
    began_s = time.monotonic()
    site.feeder.feed(streams, size_bytes)
    took_s: dict[int, float] = {}
    pause = threading.Event()
    pause.wait(least_s)
    while len(took_s) < len(streams):
        pause.wait(rtt_ms / 1000 / LOOKS_PER_RTT)
        now_s = time.monotonic() - began_s
        if now_s > GIVE_UP_S:
            raise AssertionError(f"not confirmed: {took_s}, {[stream.told for stream in streams]}")
        for number, stream in enumerate(streams):
            if number not in took_s and not stream.unconfirmed_bytes:
                took_s[number] = now_s
    return [took_s[number] for number in range(len(streams))]
