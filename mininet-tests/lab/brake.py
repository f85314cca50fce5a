"""Holds the guest's clock while a file of the host is on its way. Runs in the lab's guest only, below all else.

An idle guest's clock leaps to its next timer, again and again: while a program waits a millisecond of real time for
the host to open a file, hours of guest time may pass. So this process counts the guest's file requests (9p) under way
and keeps the CPU busy, at the lowest priority there is, until none is left: the clock then goes on by instructions.
Its time is booked as "nice" in /proc/stat, which ``saturation.py`` counts as idle.
"""

import os
import select
import sys
from pathlib import Path

TRACE = Path("/sys/kernel/tracing/instances/headway-brake")
"""A trace buffer of our own: it does not disturb other uses of tracing."""
LONGEST_HOLD_READS = 1_000_000
"""A request seen to begin but not to end (the trace buffer was full) must not hold the clock for ever: some seconds."""


def under_way(events: bytes, before: frozenset[bytes]) -> frozenset[bytes]:
    """Return the requests still unanswered after ``events``, lines of the trace; a request is named by client and tag.

    Source: include/trace/events/9p.h: ``9p_client_req: client N request TYPE tag  N``, ``9p_client_res: client N
    response TYPE tag  N err N``.
    """
    open_tags = set(before)
    for line in events.splitlines():
        _, kind, rest = line.partition(b"9p_client_re")
        words = rest.split()
        if not kind or len(words) < 6 or words[1] != b"client" or b"tag" not in words[:-1]:
            continue
        name = words[2] + b" " + words[words.index(b"tag") + 1]
        if words[0] == b"q:":
            open_tags.add(name)
        else:
            open_tags.discard(name)
    return frozenset(open_tags)


def main() -> None:
    """Hold the clock whenever needed, for ever; one line on stdout says that it has begun."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.nice(19)
    TRACE.mkdir(exist_ok=True)
    for event in ("9p_client_req", "9p_client_res"):
        (TRACE / "events" / "9p" / event / "enable").write_text("1")
    pipe = os.open(TRACE / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    sys.stdout.write("ready\n")
    sys.stdout.close()
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    while True:
        waiting.poll()
        _hold(pipe)


def _hold(pipe: int) -> None:
    requests: frozenset[bytes] = frozenset()
    for _ in range(LONGEST_HOLD_READS):
        try:
            requests = under_way(os.read(pipe, 65536), requests)
        except BlockingIOError:
            if not requests:
                return


if __name__ == "__main__":
    main()
