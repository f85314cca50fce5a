"""PFTP over lanes as a fluid, block by block: what the paper's figure 11 simulates. Pure.

Blocks are dealt to streams in turn, streams to lanes; a lane is shared max-min fairly. With the lock step a stream
waits a round trip after each block until that is confirmed.
"""

from dataclasses import dataclass, field

from controller.whatif.fluid import filled
from topology.wire import Framing, Layer, converted_bps

US = 1_000_000
LANES, RTT_US, JUMBO = 4, 40_000, Framing(9000)
LANE_BPS = converted_bps(10**9, Layer.WIRE, Layer.PAYLOAD, JUMBO)  # an encryptor pair's 1 Gbit/s
FILE_BYTES, BLOCK_BYTES, BUFFER_BYTES = 4_000_000_000, 16_000_000, 8_000_000
SETUP_ROUND_TRIPS = 3


@dataclass(frozen=True, slots=True)
class Pftp:
    """How PFTP sends a file.

    Attributes:
        streams: the stripe width.
        lock_step: whether a stream waits until its block is confirmed.
        slow_start: whether windows begin with two segments and double, up to the buffers.
        setup: how many round trips the session takes before the first block.
        block_bytes: the size of a block.
        lane_bps: what each lane carries, payload, bit/s.
    """

    streams: int
    lock_step: bool = True
    slow_start: bool = True
    setup: int = SETUP_ROUND_TRIPS
    block_bytes: int = BLOCK_BYTES
    lane_bps: int = LANE_BPS


@dataclass(slots=True)
class _Stream:
    lane: int
    blocks: list[int]  # bits x 1,000,000 of each, the last first
    left: int = 0
    window_bytes: int = 0
    doubles_us: int = 0
    idle_until_us: int | None = None
    rate_bps: int = field(default=0)

    def bound_bps(self, lane_bps: int) -> int:
        return self.window_bytes * 8 * US // RTT_US if self.window_bytes else lane_bps


def takes_s(pftp: Pftp, file_bytes: int = FILE_BYTES) -> float:
    """Return how long a file takes, seconds, from the beginning of the session until the last block is confirmed."""
    streams = _dealt(pftp, file_bytes)
    now_us = pftp.setup * RTT_US
    for one in streams:
        one.left = one.blocks.pop() if one.blocks else 0
        one.window_bytes = 2 * JUMBO.mss_bytes if pftp.slow_start else 0
        one.doubles_us = now_us + RTT_US
    while any(one.left or one.idle_until_us is not None for one in streams):
        now_us = _next_event(pftp, streams, now_us)
    return (now_us if pftp.lock_step else now_us + RTT_US) / US


def _dealt(pftp: Pftp, file_bytes: int) -> list[_Stream]:
    """Return the streams with their blocks, block i to stream i mod N, stream j on lane j mod P."""
    streams = [_Stream(number % LANES, []) for number in range(pftp.streams)]
    for number, size in enumerate(blocks_in(file_bytes, pftp.block_bytes)):
        streams[number % pftp.streams].blocks.append(size * 8 * US)
    for one in streams:
        one.blocks.reverse()
    return streams


def blocks_in(file_bytes: int, block_bytes: int) -> list[int]:
    """Return the blocks of a file in their order, bytes; the last may be smaller.

    >>> blocks_in(45, 20)
    [20, 20, 5]
    """
    return [min(block_bytes, file_bytes - at) for at in range(0, file_bytes, block_bytes)]


def _next_event(pftp: Pftp, streams: list[_Stream], now_us: int) -> int:
    """Let the streams go on until the next of them changes, and return when that is."""
    sending = {number: one for number, one in enumerate(streams) if one.left and one.idle_until_us is None}
    ways = {number: (one.lane,) for number, one in sending.items()}
    bounds = {n: one.bound_bps(pftp.lane_bps) for n, one in sending.items()}
    rates = filled(bounds, ways, dict.fromkeys(range(LANES), pftp.lane_bps))
    times = [now_us - (-one.left // rates[number]) for number, one in sending.items() if rates[number]]
    times += [one.doubles_us for one in sending.values() if one.window_bytes and one.window_bytes < BUFFER_BYTES]
    times += [one.idle_until_us for one in streams if one.idle_until_us is not None]
    next_us = min(times)
    for number, one in sending.items():
        one.left -= min(one.left, rates[number] * (next_us - now_us))
        if one.window_bytes and next_us >= one.doubles_us:
            one.window_bytes, one.doubles_us = min(BUFFER_BYTES, 2 * one.window_bytes), one.doubles_us + RTT_US
        if not one.left:
            one.idle_until_us = next_us + RTT_US if pftp.lock_step else next_us
    for one in streams:
        if one.idle_until_us is not None and one.idle_until_us <= next_us:
            one.idle_until_us = None
            one.left = one.blocks.pop() if one.blocks else 0
            one.doubles_us = max(one.doubles_us, next_us)
    return next_us


def blocks_of(pftp: Pftp, file_bytes: int = FILE_BYTES) -> list[list[int]]:
    """Return the sizes of each stream's blocks, bytes, in their order."""
    return [[size // (8 * US) for size in reversed(one.blocks)] for one in _dealt(pftp, file_bytes)]


def mbytes_per_s(pftp: Pftp) -> float:
    """Return the rate of a whole file, MB/s."""
    return FILE_BYTES / takes_s(pftp) / 1e6
