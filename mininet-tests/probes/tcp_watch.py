"""What the connections over the long line do: payload that arrives over time, and what their kernel says of them."""

import bisect
import threading
import time
from dataclasses import dataclass, field
from typing import Self

from mininet_tests.probes.counters import HEADERS_BYTES, NftCounters
from mininet_tests.probes.sampling import Sampling
from mininet_tests.site.long_line import LongLine
from mininet_tests.site.tcp_flows import StreamInfo, TcpStream

COUNT_EVERY_S = 0.01


@dataclass(slots=True)
class Curve:
    """Payload that has arrived for one port, over time."""

    at_s: list[float] = field(default_factory=list)
    payload_bytes: list[int] = field(default_factory=list)

    def at(self, when_s: float) -> float:
        """Return the bytes that had arrived by a time, between samples in proportion."""
        after = bisect.bisect_left(self.at_s, when_s)
        if after == 0:
            return self.payload_bytes[0]
        if after == len(self.at_s):
            return self.payload_bytes[-1]
        (t0, t1), (b0, b1) = self.at_s[after - 1 : after + 1], self.payload_bytes[after - 1 : after + 1]
        return b0 + (b1 - b0) * (when_s - t0) / (t1 - t0)

    def bps(self, start_s: float, end_s: float) -> float:
        """Return the mean rate between two times, bit/s."""
        return (self.at(end_s) - self.at(start_s)) * 8 / (end_s - start_s)

    def slices_bps(self, start_s: float, end_s: float, width_s: float) -> list[float]:
        """Return the rate of each whole slice between two times, bit/s."""
        count = int((end_s - start_s) / width_s + 1e-9)
        return [self.bps(start_s + n * width_s, start_s + (n + 1) * width_s) for n in range(count)]


class Meter:
    """Counts, every 10 ms, the payload that arrives at the receiver for each of some ports."""

    def __init__(self, line: LongLine, ports: tuple[int, ...]) -> None:
        counters = "\n".join(f"  counter p{port} {{ }}" for port in ports)
        rules = "\n".join(
            f"    meta l4proto tcp th {side} {port} counter name p{port}"
            for port in ports
            for side in ("sport", "dport")
        )
        chain = f"  chain received {{\n    type filter hook prerouting priority -300;\n{rules}\n  }}"
        table = f"table inet longpath\ndelete table inet longpath\ntable inet longpath {{\n{counters}\n{chain}\n}}\n"
        line.receiver.run("nft", "-f", "-", text=table)
        self._counters: NftCounters = line.receiver.inside(NftCounters)
        self.curves = {port: Curve() for port in ports}
        self._header_bytes = HEADERS_BYTES
        self._sampling = Sampling()
        self._sampling.start(COUNT_EVERY_S, self._sample)

    def close(self) -> None:
        """End the thread, with a last sample."""
        self._sampling.stop()

    def _sample(self) -> None:
        began_s = time.monotonic()
        counts = self._counters.read()
        at_s = (began_s + time.monotonic()) / 2
        for port, curve in self.curves.items():
            count = counts[f"p{port}"]
            curve.at_s.append(at_s)
            curve.payload_bytes.append(count.size_bytes - self._header_bytes * count.packets)


class StreamWatch:
    """Notes, at intervals, what the kernel tells of some streams, and by which algorithm they run."""

    def __init__(self, streams: list[TcpStream], every_s: float = 0.02) -> None:
        self.streams, self._every_s = streams, every_s
        self.told: list[list[StreamInfo]] = [[] for _ in streams]
        self.algorithms: list[tuple[float, list[str]]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._look()
        self._look()

    def _look(self) -> None:
        for stream, told in zip(self.streams, self.told, strict=True):
            told.append(stream.told)
        algorithms = [stream.algorithm for stream in self.streams]
        if not self.algorithms or self.algorithms[-1][1] != algorithms:
            self.algorithms.append((time.monotonic(), algorithms))

    def __enter__(self) -> Self:
        """It runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()
