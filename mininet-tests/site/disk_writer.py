"""A program that writes to a file what one connection brings, and says when: read, and on the disk."""

import argparse
import json
import os
import resource
import socket
import time
from pathlib import Path

BLOCK_BYTES = 1 << 18
LONG_S = 0.02  # a write into the page cache is no longer than that unless the kernel holds it up


def written(listener: socket.socket, path: Path, size_bytes: int, over_bytes: int | None = None) -> dict[str, float]:
    """Write what comes by one connection to a file.

    Args:
        listener: where it comes.
        path: the file.
        size_bytes: so much comes.
        over_bytes: after so much at least the file is written over from its beginning; None: never.

    Returns:
        When the first of it was read, all of it was, and all of it was on the disk (CLOCK_MONOTONIC, seconds); the CPU
        time that it took; and how long the kernel held up a write at the longest, and all those of 20 ms and more.
    """
    end, _ = listener.accept()
    block, first_s, left = bytearray(BLOCK_BYTES), 0.0, size_bytes
    round_bytes, at = over_bytes or size_bytes, 0
    writes_s = [0.0]
    with path.open("wb", buffering=0) as file:
        while left and (got := end.recv_into(block)):
            first_s = first_s or time.monotonic()
            began_s = time.monotonic()
            file.write(memoryview(block)[:got])
            writes_s.append(time.monotonic() - began_s)
            left -= got
            at += got
            if at >= round_bytes:
                at = file.seek(0)
        read_s = time.monotonic()
        os.fsync(file.fileno())
        stored_s = time.monotonic()
    used = resource.getrusage(resource.RUSAGE_SELF)
    if left:
        raise SystemExit(f"{left:,} bytes are missing")
    return {
        "first_s": first_s,
        "read_s": read_s,
        "stored_s": stored_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "longest_write_s": max(writes_s),
        "held_up_s": sum(one for one in writes_s if one >= LONG_S),
    }


def main() -> None:
    """Listen, say so, write what comes, and say when."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True, help="address")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--over", type=int, help="write the file over from its beginning after so many bytes")
    args = parser.parse_args()
    with socket.create_server((args.listen, args.port)) as listener:
        print("listening", flush=True)
        print(json.dumps(written(listener, args.file, args.bytes, args.over)), flush=True)


if __name__ == "__main__":
    main()
