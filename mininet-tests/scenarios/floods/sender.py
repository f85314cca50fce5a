"""Sends frames at a rate from an interface, past all that the host's own stack would say to it, until it is ended."""

import argparse
import json
import signal
import socket
import sys
import time
from contextlib import suppress
from itertools import cycle

from mininet_tests.scenarios.floods.frames import KINDS, FloodTarget, frames

TICK_S = 0.001
MOST_BEHIND_S = 0.05  # who had to wait longer for the processor does not send all of it at once


def flood(interface: str, sent: list[bytes], rate_bps: int, ended: list[int]) -> tuple[int, int]:
    """Send frames in turn at a rate, bit/s of frames, until a signal came; return how many, and their bytes."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((interface, 0))
        count = size_bytes = 0
        endless, started_s = cycle(sent), time.monotonic()
        print("flooding", flush=True)
        while not ended:
            started_s = max(started_s, time.monotonic() - MOST_BEHIND_S - size_bytes * 8 / rate_bps)
            due_bytes = (time.monotonic() - started_s) * rate_bps / 8
            while size_bytes < due_bytes and not ended:
                frame = next(endless)
                with suppress(OSError):  # the interface's queue is full: that one is lost
                    raw.send(frame)
                count, size_bytes = count + 1, size_bytes + len(frame)
            time.sleep(TICK_S)
    return count, size_bytes


def main() -> int:
    """Flood as the command line says; on SIGTERM say how much it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interface", required=True)
    parser.add_argument("--kind", choices=sorted(KINDS), required=True)
    parser.add_argument("--rate", type=int, required=True, help="bit/s of frames")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--target-mac", required=True)
    parser.add_argument("--dscp", type=int, default=0)
    args = parser.parse_args()
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    aim = FloodTarget(args.source, args.target, args.target_mac, args.dscp)
    count, size_bytes = flood(args.interface, frames(args.kind, aim), args.rate, ended)
    print(json.dumps({"frames": count, "bytes": size_bytes}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
