"""A striped mover as PFTP is: blocks by several connections, in lock step or not, in turn or from a queue, checkpoints.

Each block goes as its size (8 bytes, big-endian) and so many bytes, and is confirmed by one byte once it has been read.
"""

import argparse
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mininet_tests.papers.wertz.pftp import blocks_in

AT_ONCE_BYTES = 1 << 18
SIZE = struct.Struct("!Q")
CONFIRMED = b"."


@dataclass(frozen=True, slots=True)
class Striping:
    """How a file is sent.

    Attributes:
        streams: the stripe width.
        block_bytes: the size of a block.
        lock_step: whether a stream waits until its block is confirmed.
        from_queue: whether the next block goes by whichever stream is free; otherwise block i by stream i mod N.
        checkpoint_bytes: after so much all streams stop until all is confirmed; 0 for at the end alone.
    """

    streams: int
    block_bytes: int
    lock_step: bool = False
    from_queue: bool = False
    checkpoint_bytes: int = 0


def parts(striping: Striping, file_bytes: int) -> Iterator[list[int]]:
    """Yield the blocks, bytes, up to each checkpoint.

    >>> list(parts(Striping(2, 10, checkpoint_bytes=20), 45))
    [[10, 10], [10, 10], [5]]
    """
    part_bytes = striping.checkpoint_bytes or file_bytes
    for at in range(0, file_bytes, part_bytes):
        yield blocks_in(min(part_bytes, file_bytes - at), striping.block_bytes)


def queues(striping: Striping, blocks: Sequence[int]) -> list[deque[int]]:
    """Return where each stream takes its blocks from: one of its own, or the same as all others.

    >>> queues(Striping(2, 10), [10, 9, 8])
    [deque([10, 8]), deque([9])]
    """
    if striping.from_queue:
        return [deque(blocks)] * striping.streams
    return [deque(blocks[number :: striping.streams]) for number in range(striping.streams)]


def send(to: tuple[str, int], striping: Striping, file_bytes: int, own: Sequence[str] = ("",)) -> float:
    """Send a file of nothing but zeros; return how long it took, seconds, from the first block until all is confirmed.

    Args:
        to: address and port of who serves.
        striping: how it is sent.
        file_bytes: its size.
        own: the addresses that streams are from, in turn; empty for any.

    Raises:
        OSError: a connection failed.
        ConnectionError: a block was not confirmed.
    """
    froms = [(own[number % len(own)], 0) for number in range(striping.streams)]
    streams = [socket.create_connection(to, source_address=one) for one in froms]
    try:
        with ThreadPoolExecutor(striping.streams) as pool:
            first = [deque([1]) for _ in streams]  # a byte each: from then on windows are open, and threads there
            list(pool.map(_send_blocks, streams, first, [True] * len(streams)))
            began_s = time.monotonic()
            for blocks in parts(striping, file_bytes):
                list(pool.map(_send_blocks, streams, queues(striping, blocks), [striping.lock_step] * len(streams)))
            return time.monotonic() - began_s
    finally:
        for stream in streams:
            stream.close()


def _send_blocks(stream: socket.socket, queue: deque[int], lock_step: bool) -> None:
    """Send blocks until there are no more, and wait until all of them are confirmed."""
    zeros, open_blocks = memoryview(bytes(AT_ONCE_BYTES)), 0
    while True:
        try:
            left = queue.popleft()
        except IndexError:
            break
        stream.sendall(SIZE.pack(left))
        while left:
            left -= stream.send(zeros[: min(left, AT_ONCE_BYTES)])
        open_blocks += 1
        if lock_step:
            _await(stream, open_blocks)
            open_blocks = 0
    _await(stream, open_blocks)


def _await(stream: socket.socket, blocks: int) -> None:
    while blocks:
        got = stream.recv(blocks)
        if not got:
            raise ConnectionError("a block was not confirmed")
        blocks -= len(got)


def serve(address: tuple[str, int]) -> None:
    """Read what is sent, and confirm it block by block; for ever."""
    with socket.create_server(address, backlog=64) as listening:
        while True:
            stream, _ = listening.accept()
            threading.Thread(target=_read_blocks, args=(stream,), daemon=True).start()


def _read_blocks(stream: socket.socket) -> None:
    block = memoryview(bytearray(AT_ONCE_BYTES))
    with stream:
        while head := stream.recv(SIZE.size, socket.MSG_WAITALL):
            (left,) = SIZE.unpack(head)
            while left and (got := stream.recv_into(block[: min(left, AT_ONCE_BYTES)])):
                left -= got
            if left:
                return
            stream.sendall(CONFIRMED)


def main() -> None:
    """Send or receive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("serve", "send"))
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--bytes", type=int, help="of the file")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--block", type=int, default=16_000_000, help="bytes (default: %(default)s)")
    parser.add_argument(
        "--from", dest="own", default="", help="own addresses, by commas: streams are from each in turn"
    )
    parser.add_argument("--lock-step", action="store_true", help="a stream waits until its block is confirmed")
    parser.add_argument("--queue", action="store_true", help="the next block goes by whichever stream is free")
    parser.add_argument("--checkpoint", type=int, default=0, help="bytes after which all wait; 0 for never")
    args = parser.parse_args()
    if args.what == "serve":
        serve((args.address, args.port))
    striping = Striping(args.streams, args.block, args.lock_step, args.queue, args.checkpoint)
    print(json.dumps({"took_s": send((args.address, args.port), striping, args.bytes, args.own.split(","))}))


if __name__ == "__main__":
    main()
