"""What arrives at a host of a running site, by sender."""

import threading
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

from mininet_tests.probes.counters import NftCounters, install
from mininet_tests.site.emulation import Emulation, now_us
from mininet_tests.site.wiring import in_namespace

EVERY_S = 0.0025


class Arrivals:
    """Counts, in a thread of its own, the payload that arrives of each of some senders.

    Attributes:
        seen: Unix time (microseconds), and the bytes of each sender so far.
    """

    def __init__(self, site: Emulation, receiver: str, senders: Sequence[str], every_s: float = EVERY_S) -> None:
        """Start; all senders have addresses of one family."""
        network, pid = site.realised.network, site.realised.net[receiver].pid
        addresses = {name: str(network.host(name).ip) for name in senders}
        install(pid, addresses)
        self.seen: list[tuple[int, dict[str, int]]] = []
        is_ipv6 = any(":" in one for one in addresses.values())
        self._counters = in_namespace(pid, partial(NftCounters, is_ipv6=is_ipv6))
        self._senders, self._every_s = senders, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            began_us, counts = now_us(), self._counters.read()
            self.seen.append(((began_us + now_us()) // 2, {name: counts[name].payload_bytes for name in self._senders}))

    def bps(self, over_us: int, *senders: str) -> float:
        """Return the rate of some senders together over the last stretch, bit/s; of all if none is named."""
        if not self.seen or self.seen[-1][0] - self.seen[0][0] < over_us:
            return 0.0
        (end_us, end) = self.seen[-1]
        start_us, start = next((t, counts) for t, counts in reversed(self.seen) if end_us - t >= over_us)
        return sum(end[name] - start[name] for name in senders or self._senders) * 8e6 / (end_us - start_us)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        """It has started already."""
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        """Stop."""
        self.stop()
