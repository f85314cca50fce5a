"""When each TCP segment comes to the port and to the receiver: a time sequence graph, as Antony's figure 5."""

import socket
import struct
import time
from collections import Counter
from typing import Any

from mininet_tests.papers.antony.line import Nic
from mininet_tests.papers.antony.udp import STAMPS_AFTER_S, listening, stamped
from mininet_tests.site.long_line import LongLine
from mininet_tests.site.tcp_flows import until

ETHERNET, LEAST_IP = 14, 20  # header bytes, without options of IP, which nobody sends here
MOST_SEGMENTS = 40_000


class SegmentTrace:
    """Listens at both ends of the line from now on; read once by ``seen``."""

    def __init__(self, line: LongLine, nic: Nic) -> None:
        """Begin to listen.

        Args:
            line: the line.
            nic: whose segments are to be told.
        """
        self._port = nic.port
        places = ((line.near, f"lan{nic.number}"), (line.receiver, line.receiver.interface))
        self._ends = [listening(place, device) for place, device in places]
        until(time.monotonic() + STAMPS_AFTER_S)

    def seen(self, rtt_ms: float) -> dict[str, Any]:
        """Return what was sent in each round trip, and each segment: ms from the first one, and payload before it.

        Args:
            rtt_ms: of the line; the first round trip begins with the first segment.
        """
        at_port, at_receiver = (self._segments(end) for end in self._ends)
        first_ns, first_number = at_port[0]
        rounds: list[int] = []
        for at_ns, _ in at_port:
            number = int((at_ns - first_ns) / 1e6 / rtt_ms)
            rounds += [0] * (number + 1 - len(rounds))
            rounds[number] += 1
        lost = Counter(number for _, number in at_port) - Counter(number for _, number in at_receiver)
        return {
            "segments_by_round": rounds,
            "at_port": [[(ns - first_ns) / 1e6, (n - first_number) % (1 << 32)] for ns, n in at_port[:MOST_SEGMENTS]],
            "first_lost_ms": next(((ns - first_ns) / 1e6 for ns, n in at_port if n in lost), None),
        }

    def _segments(self, end: socket.socket) -> list[tuple[int, int]]:
        """Return when each segment with payload came, Unix nanoseconds, and its sequence number; close the end."""
        found: list[tuple[int, int]] = []
        for at_ns, head in stamped(end):
            length, protocol = struct.unpack_from(">H", head, ETHERNET + 2)[0], head[ETHERNET + 9]
            if protocol != socket.IPPROTO_TCP:
                continue
            port, _, number = struct.unpack_from(">HHI", head, ETHERNET + LEAST_IP)
            payload_bytes = length - LEAST_IP - (head[ETHERNET + LEAST_IP + 12] >> 4) * 4
            if port == self._port and payload_bytes:
                found.append((at_ns, number))
        end.close()
        return found
