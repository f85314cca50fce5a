"""One allocation for 1 to 100 connections that come, go, wait and ask for less."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mininet_tests.probes.tcp_watch import Meter
from mininet_tests.site.long_line_site import MBIT, LongLineSite
from mininet_tests.site.tcp_flows import TcpStream, until
from mininet_tests.testing.eventually import eventually

PORT, RTT_MS, RATE_BPS = 5001, 180, 400 * MBIT
PHASE_S, SETTLED_S, SLICE_S = 1.8, 0.8, 0.05
WARMING_BYTES, WARMING_S = 50_000, 4  # the receiver's whole window is known then, and the unpaced first segments gone
TALKERS, RPC_BYTES, RPC_EVERY_S = 20, 300, 0.1


class Phases:
    """A sequence of changes, with what arrived after each."""

    def __init__(self, site: LongLineSite, meter: Meter) -> None:
        self._site, self._curve = site, meter.curves[PORT]
        self.seen: list[dict[str, Any]] = []

    def then(
        self, name: str, change: Callable[[], object], sending: list[TcpStream], *, lasts_s: float = PHASE_S
    ) -> None:
        """Make a change, let it last, and note it; ``sending`` are those whose parts are compared."""
        at_s = time.monotonic()
        change()
        changed_s = time.monotonic()
        until(changed_s + SETTLED_S)
        from_s, before = self._site.received(sending)
        until(changed_s + lasts_s)
        to_s, after = self._site.received(sending)
        self.seen.append(
            {
                "name": name,
                "at_s": at_s,
                "from_s": from_s,
                "to_s": to_s,
                "change_took_s": changed_s - at_s,
                "connections": len(sending),
                "parts_bps": [(b - a) * 8 / (to_s - from_s) for a, b in zip(before, after, strict=True)],
            }
        )

    def finished(self) -> list[dict[str, Any]]:
        """Return what was noted, with what had arrived when; the meter must have been closed."""
        for phase in self.seen:
            arrives_s = phase["at_s"] + self._site.rtt_s / 2
            phase["settled_bps"] = self._curve.bps(phase["from_s"], phase["to_s"])
            phase["slices_bps"] = self._curve.slices_bps(arrives_s, phase["to_s"], SLICE_S)
        return self.seen


def run(folder: Path, *, few: bool) -> dict[str, Any]:
    """Return what arrived, for each phase; with ``few``, of fewer numbers of connections between the least and most."""
    with LongLineSite(folder, RTT_MS, RATE_BPS, single_packets=False) as site:
        site.plan(site.allocation(PORT, RATE_BPS))
        pool = site.opened(PORT, 100)
        site.feeder.feed(pool, WARMING_BYTES)
        until(time.monotonic() + WARMING_S)
        meter = Meter(site.line, (PORT,))
        phases = Phases(site, meter)
        with site.measured():
            _numbers(site, phases, pool, few=few)
            _small_talk(site, phases, pool)
        meter.close()
    return {
        "planned_bps": RATE_BPS,
        "talk_bps": TALKERS * RPC_BYTES * 8 / RPC_EVERY_S,
        "rtt_s": site.rtt_s,
        "slice_s": SLICE_S,
        "phases": phases.finished(),
        "idle_share": site.idle_share,
    }


def _numbers(site: LongLineSite, phases: Phases, pool: list[TcpStream], *, few: bool) -> None:
    """Change the number of those that send."""
    feeder = site.feeder
    phases.then("1 sends", lambda: feeder.feed(pool[:1]), pool[:1])
    phases.then("4 send", lambda: feeder.feed(pool[1:4]), pool[:4])
    if not few:
        phases.then("27 send", lambda: feeder.feed(pool[4:27]), pool[:27])
    phases.then("100 send", lambda: feeder.feed(pool[4 if few else 27 :]), pool)
    phases.then("96 stop", lambda: _stop(site, pool[4:], pool[:4]), pool[:4])
    fresh: list[TcpStream] = []
    phases.then("23 connect and send", lambda: fresh.extend(_fresh(site, 23)), pool[:4])
    phases.then("23 close", lambda: site.close(fresh), pool[:4])
    phases.then("4 stop", lambda: _stop(site, pool[:4], []), pool[:4])
    if not few:
        phases.then("27 start at once", lambda: feeder.feed(pool[:27]), pool[:27])
        phases.then("27 stop", lambda: _stop(site, pool[:27], []), pool[:27])
    phases.then("100 start at once", lambda: feeder.feed(pool), pool)
    phases.then("99 stop", lambda: _stop(site, pool[1:], pool[:1]), pool[:1])


def _stop(site: LongLineSite, streams: list[TcpStream], rest: list[TcpStream]) -> None:
    """Write no more to some; return when they have nothing left that was not sent.

    The rest is fed anew: the backlog that it had as one of many would not last it for a millisecond now.
    """
    site.feeder.feed(rest)
    site.feeder.feed(streams, 0)
    eventually(lambda: not any(s.told.notsent_bytes for s in streams), within_s=10, what="all is sent")


def _fresh(site: LongLineSite, count: int) -> list[TcpStream]:
    streams = site.opened(PORT, count)
    site.feeder.feed(streams)
    return streams


def _small_talk(site: LongLineSite, phases: Phases, pool: list[TcpStream]) -> None:
    """Have connections that take little, or ask for little, beside those that take all they get."""
    feeder = site.feeder
    phases.then("4 send beside 96 idle", lambda: feeder.feed(pool[1:4]), pool[:4])
    stop = threading.Event()

    def talk() -> None:
        while not stop.wait(RPC_EVERY_S):
            feeder.feed(pool[50 : 50 + TALKERS], RPC_BYTES)

    thread = threading.Thread(target=talk, daemon=True)
    phases.then("20 talk", thread.start, pool[:4])
    stop.set()
    thread.join()
    phases.then("1 asks for a tenth", lambda: pool[0].ask_for(RATE_BPS // 80), pool[:4])
