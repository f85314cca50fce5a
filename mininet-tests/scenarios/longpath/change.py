"""A plan that changes under connections that send or wait; and the connections that it does not name."""

import time
from pathlib import Path
from typing import Any

from mininet_tests.probes.tcp_watch import Meter, StreamWatch
from mininet_tests.site.long_line import OTHER_ADDRESS
from mininet_tests.site.long_line_site import MBIT, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream, opened, until
from mininet_tests.testing.eventually import eventually

PORT, OTHER_PORT, RTT_MS = 5001, 5003, 180
RATES_BPS = (100 * MBIT, 50 * MBIT, 150 * MBIT, 100 * MBIT)
SLICE_S, LASTS_S = 0.02, 1.2
UNPLANNED_BYTES, REPEATS, SETTLE_S = 8_000_000, 3, 1.0
WIDE_WMEM = "4096\t16384\t268435456"  # so that the agent's own widening gives the others nothing


def run(folder: Path) -> dict[str, Any]:
    """Return what arrived and what the sender did after each change, and what became of the unplanned."""
    with LongLineSite(folder, RTT_MS, max(RATES_BPS)) as site:
        with site.measured():
            changes = _while_sending(site)
            idle = _while_idle(site)
        unplanned = _unplanned(site)
    return {
        "rtt_s": site.rtt_s,
        "slice_s": SLICE_S,
        "changes": changes,
        "idle": idle,
        "unplanned": unplanned,
        "idle_share": site.idle_share,
    }


def _while_sending(site: LongLineSite) -> list[dict[str, Any]]:
    site.plan(site.allocation(PORT, RATES_BPS[0]))
    streams = site.opened(PORT, 4)
    meter = Meter(site.line, (PORT,))
    site.feeder.feed(streams)
    until(time.monotonic() + 1.5)
    changes: list[dict[str, Any]] = []
    with StreamWatch(streams, 0.005) as watch:
        for rate_bps in RATES_BPS[1:]:
            asked_s = time.monotonic()
            applied_s = site.plan(site.allocation(PORT, rate_bps))
            until(applied_s + LASTS_S)
            changes.append({"rate_bps": rate_bps, "asked_s": asked_s, "applied_s": applied_s})
    meter.close()
    site.close(streams)
    for change in changes:
        rate_bps, applied_s = change["rate_bps"], change["applied_s"]
        at_new = [_paced_at_s(told, rate_bps / len(streams), change["asked_s"]) for told in watch.told]
        change["paced_after_s"] = [None if at_s is None else at_s - applied_s for at_s in at_new]
        arrives_s = applied_s + site.rtt_s / 2
        end_s = applied_s + LASTS_S
        change["slices_bps"] = meter.curves[PORT].slices_bps(arrives_s, end_s, SLICE_S)
    return changes


def _paced_at_s(told: list[Any], part_bps: float, from_s: float) -> float | None:
    """Return when a sender's pacing was first within 1% of its new part."""
    near = (t.at_s for t in told if t.at_s >= from_s and abs(t.pacing_bytes_per_s * 8 / part_bps - 1) < 0.01)
    return next(near, None)


def _while_idle(site: LongLineSite) -> dict[str, Any]:
    """Change the plan while the connection waits, then send."""
    site.plan(site.allocation(PORT, RATES_BPS[0]))
    streams = site.opened(PORT, 1)
    meter = Meter(site.line, (PORT,))
    site.feeder.feed(streams, 1_000_000)
    until(time.monotonic() + 2)
    rate_bps = RATES_BPS[2]
    site.plan(site.allocation(PORT, rate_bps))
    until(time.monotonic() + 1)
    with StreamWatch(streams, 0.002) as watch:
        at_s = time.monotonic()
        site.feeder.feed(streams)
        until(at_s + 1)
    meter.close()
    site.close(streams)
    first = next(told for told in watch.told[0] if told.at_s > at_s and told.unacked_segments)
    return {
        "rate_bps": rate_bps,
        "first_paced_bps": first.pacing_bytes_per_s * 8,
        "first_after_s": first.at_s - at_s,
        "slices_bps": meter.curves[PORT].slices_bps(at_s + site.rtt_s / 2, at_s + 1, SLICE_S),
    }


def _unplanned(site: LongLineSite) -> list[dict[str, Any]]:
    """Send to an address that the plan does not name: without the agent, with it, beside a planned transfer."""
    site.agent.terminate()
    site.line.sender.set({"net.ipv4.tcp_wmem": WIDE_WMEM})
    seen = [{"beside": "no agent", **_sent(site)}]
    site.agent.restart()
    site.plan(site.allocation(PORT, RATES_BPS[0]))
    seen.append({"beside": "an agent", **_sent(site)})
    planned = site.opened(PORT, 1)
    site.feeder.feed(planned)
    seen.append({"beside": "a planned transfer", **_sent(site)})
    site.close(planned)
    return seen


def _sent(site: LongLineSite) -> dict[str, Any]:
    """Return the algorithm and the times of some transfers, each on a new connection."""
    until(time.monotonic() + SETTLE_S)  # an agent that has just started uses the CPU
    took_s, algorithms = [], set()
    for _ in range(REPEATS):
        streams = opened((site.line.sender, site.line.receiver), OTHER_PORT, 1, address=OTHER_ADDRESS)
        site.drain.add(streams)
        began_s = time.monotonic()
        site.feeder.feed(streams, UNPLANNED_BYTES)
        took_s.append(_confirmed_s(streams[0]) - began_s)
        algorithms.add(streams[0].algorithm)
        site.close(streams)
    return {"took_s": took_s, "algorithms": sorted(algorithms)}


def _confirmed_s(stream: TcpStream) -> float:
    """Return when all was confirmed, to the next look of the watch."""
    with StreamWatch([stream], 0.001) as watch:
        eventually(lambda: not stream.unconfirmed_bytes, within_s=30, what="the transfer")
    return next(told.at_s for told in watch.told[0] if told.acked_bytes > UNPLANNED_BYTES)
