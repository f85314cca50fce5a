"""A thousand transfers at one percent of loss: does any fall off its plan, or wait for a timeout again and again?

What is sent again after the last new segment is nothing but repetitions, some hundred of them here. Whoever takes these
for a share of what was sent in a time calls it a catastrophe, if the time begins where the new ones end. So transfers
follow each other after pauses of many lengths, on connections that were used before and on new ones.

On a new connection a timeout is up to three round trips (RFC 6298 section 2.2), so there a repetition that is lost too
is what costs most.
"""

import random
import threading
from pathlib import Path
from typing import Any

from mininet_tests.scenarios.longpath.tail import confirmed_s
from mininet_tests.site.long_line_site import MSS_BYTES, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream

PORT, SIDE_BY_SIDE = 5001, 10  # transfers at once, of one allocation
ROUNDS = 13  # with each round trip: on new connections, and once more on these
RTTS_MS = (400, 500, 650, 800)
LOSS_PERCENT = 1.0
WINDOW_SEGMENTS = 12_000  # of the allocation: 120 repetitions behind the last new segment
WINDOWS = 1.4  # that a transfer is long
LONGEST_PAUSE_S = 3.5  # longer than the time over which loss is judged
TRANSFER_BYTES = int(WINDOWS * WINDOW_SEGMENTS * MSS_BYTES / SIDE_BY_SIDE)
SEED = 20_261_123


def run(folder: Path, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return how many transfers there were, what was lost, which fell off the plan, and how late each was."""
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
                    seen.append({"rtt_ms": rtt_ms, "reused": reused} | _transferred(site, streams, rtt_ms, reused))
                    threading.Event().wait(rng.uniform(0, LONGEST_PAUSE_S))
                site.close(streams)
            fallen = sum(one["fell"] for one in seen)
            latest = {new: sorted(_more(seen, rtt_ms, new))[-5:] for new in (True, False)}
            print(f"{rtt_ms} ms: {fallen} fell so far; latest of the new and of the others: {latest}", flush=True)
        fell = site.fallbacks.fell
    return {
        "transfers": SIDE_BY_SIDE * len(seen),
        "loss_percent": LOSS_PERCENT,
        "window_segments": WINDOW_SEGMENTS,
        "sent_segments": sum(one["sent_segments"] for one in seen),
        "retransmitted_segments": sum(one["retransmitted_segments"] for one in seen),
        "more_rtts": [
            {"rtt_ms": rtt_ms, "new": new, "seen": _more(seen, rtt_ms, new)}
            for rtt_ms in RTTS_MS
            for new in (True, False)
        ],
        "fell": [one for one in seen if one["fell"]],
        "fallbacks": fell,
    }


def _more(seen: list[dict[str, Any]], rtt_ms: int, new: bool) -> list[float]:
    """Return by how many round trips transfers were later than without loss."""
    chosen = (one["more_rtts"] for one in seen if (one["rtt_ms"], not one["reused"]) == (rtt_ms, new))
    return [round(rtts, 3) for some in chosen for rtts in some]


def _transferred(site: LongLineSite, streams: list[TcpStream], rtt_ms: int, reused: bool) -> dict[str, Any]:
    """Return what one transfer on each connection has sent, how late it was, and whether any was not held afterwards.

    On a line without loss all end at once, as they share a rate; a sender that connects waits for a round trip more
    before it may send a window (RFC 7323 section 2.2).
    """
    before = [stream.told for stream in streams]
    limit_s = (WINDOWS + (1 if reused else 2)) * rtt_ms / 1000
    took_s = confirmed_s(site, streams, TRANSFER_BYTES, WINDOWS * rtt_ms / 1000, rtt_ms)
    after = [stream.told for stream in streams]
    return {
        "more_rtts": [(one_s - limit_s) * 1000 / rtt_ms for one_s in took_s],
        "fell": not all(stream.algorithm.startswith("headway") for stream in streams),
        "sent_segments": sum(a.sent_segments - b.sent_segments for a, b in zip(after, before, strict=True)),
        "retransmitted_segments": sum(
            a.retransmitted_segments - b.retransmitted_segments for a, b in zip(after, before, strict=True)
        ),
    }
