"""A thousand transfers at one percent of loss: does any allocation fall off its plan?

What is sent again after the last new segment is nothing but repetitions, some hundred of them here. Whoever takes these
for a share of what was sent in a time calls it a catastrophe, if the time begins where the new ones end. So transfers
follow each other after pauses of many lengths, on connections that were used before and on new ones.
"""

import random
import threading
from pathlib import Path
from typing import Any

from mininet_tests.site.long_line_site import MSS_BYTES, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream
from mininet_tests.testing.eventually import eventually

PORT, SIDE_BY_SIDE = 5001, 10  # transfers at once, of one allocation
ROUNDS = 13  # with each round trip: on new connections, and once more on these
RTTS_MS = (400, 500, 650, 800)
LOSS_PERCENT = 1.0
WINDOW_SEGMENTS = 12_000  # of the allocation: 120 repetitions behind the last new segment
WINDOWS = 1.4  # that a transfer is long
LONGEST_PAUSE_S = 3.5  # longer than the time over which loss is judged
GIVE_UP_S = 30.0
SEED = 20_261_123


def run(folder: Path, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return how many transfers there were, what was lost, and which fell off the plan."""
    seen: list[dict[str, Any]] = []
    rates_bps = [int(WINDOW_SEGMENTS * MSS_BYTES * 8 * 1000 / rtt_ms) for rtt_ms in RTTS_MS]
    rng = random.Random(SEED)
    with LongLineSite(folder, max(RTTS_MS), rates_bps[-1]) as site:
        for rtt_ms, rate_bps in zip(RTTS_MS, rates_bps, strict=True):
            site.line.change(rtt_ms=rtt_ms, loss_percent=0)
            site.plan(site.allocation(PORT, rate_bps, rtt_ms=rtt_ms))
            site.line.change(loss_percent=LOSS_PERCENT)
            for _ in range(rounds):
                streams = site.opened(PORT, SIDE_BY_SIDE)
                for reused in (False, True):
                    seen.append({"rtt_ms": rtt_ms, "reused": reused} | _transferred(site, streams))
                    threading.Event().wait(rng.uniform(0, LONGEST_PAUSE_S))
                site.close(streams)
            print(f"{rtt_ms} ms: {sum(one['fell'] for one in seen)} fell so far", flush=True)
        fell = site.fallbacks.fell
    return {
        "transfers": SIDE_BY_SIDE * len(seen),
        "loss_percent": LOSS_PERCENT,
        "window_segments": WINDOW_SEGMENTS,
        "sent_segments": sum(one["sent_segments"] for one in seen),
        "retransmitted_segments": sum(one["retransmitted_segments"] for one in seen),
        "fell": [one for one in seen if one["fell"]],
        "fallbacks": fell,
    }


def _transferred(site: LongLineSite, streams: list[TcpStream]) -> dict[str, Any]:
    """Return what one transfer on each connection has sent, and whether any was not held afterwards."""
    before = [stream.told for stream in streams]
    site.feeder.feed(streams, int(WINDOWS * WINDOW_SEGMENTS * MSS_BYTES / SIDE_BY_SIDE))
    eventually(
        lambda: not any(s.unconfirmed_bytes for s in streams), within_s=GIVE_UP_S, what="the transfers are confirmed"
    )
    after = [stream.told for stream in streams]
    return {
        "fell": not all(stream.algorithm.startswith("headway") for stream in streams),
        "sent_segments": sum(a.sent_segments - b.sent_segments for a, b in zip(after, before, strict=True)),
        "retransmitted_segments": sum(
            a.retransmitted_segments - b.retransmitted_segments for a, b in zip(after, before, strict=True)
        ),
    }
