"""What an interface's hardware is set to, and what it and its qdisc have dropped. Reads only.

Rings, coalescing and PAUSE frames are asked by ioctl (linux/ethtool.h, SIOCETHTOOL): the library at hand asks for no
PAUSE parameters, and drivers answer this where their netlink form is missing. What a driver does not have is None.
"""

import ctypes
import fcntl
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_SIOCETHTOOL = 0x8946  # include/uapi/linux/sockios.h
_GCOALESCE, _GRINGPARAM, _GPAUSEPARAM = 0x0E, 0x10, 0x12  # include/uapi/linux/ethtool.h
_COALESCE_WORDS, _RING_WORDS, _PAUSE_WORDS = 23, 9, 4
_ADAPTIVE_RX = 11  # the word of ethtool_coalesce.use_adaptive_rx_coalesce


@dataclass(frozen=True, slots=True)
class Rings:
    """The frames that the hardware can hold for the kernel, and the most that it could."""

    receive: int
    receive_most: int
    send: int
    send_most: int


@dataclass(frozen=True, slots=True)
class Coalescing:
    """How long the hardware may keep an interrupt for what has arrived, and whether it chooses that by itself."""

    receive_us: int
    adaptive: bool


@dataclass(frozen=True, slots=True)
class PauseFrames:
    """Whether it stops when its switch asks it to, and whether it asks its switch (IEEE 802.3 annex 31B)."""

    obeyed: bool
    sent: bool


@dataclass(frozen=True, slots=True)
class Drops:
    """Packets lost in this host since the interface was there.

    Attributes:
        queued: by the interface's qdiscs, which hold at most ``queue_packets`` (txqueuelen) where they have no limit of
            their own.
        sent: by the interface, on their way out.
        received: for want of room in its ring; what nobody here wanted is not counted.
        queue_packets: txqueuelen.
    """

    queued: int = 0
    sent: int = 0
    received: int = 0
    queue_packets: int = 1000


@dataclass(frozen=True, slots=True)
class Hardware:
    """What one interface says of itself."""

    rings: Rings | None = None
    coalescing: Coalescing | None = None
    pause: PauseFrames | None = None
    drops: Drops = Drops()


def hardware(name: str, link: Any, qdiscs: Iterable[Any]) -> Hardware:
    """Return what an interface says.

    Args:
        name: of the interface.
        link: its message of netlink.
        qdiscs: those of its qdiscs.
    """
    rings, coalescing, pause = (
        _asked(name, command, words)
        for command, words in (
            (_GRINGPARAM, _RING_WORDS),
            (_GCOALESCE, _COALESCE_WORDS),
            (_GPAUSEPARAM, _PAUSE_WORDS),
        )
    )
    return Hardware(
        rings=Rings(rings[5], rings[1], rings[8], rings[4]) if rings else None,
        coalescing=Coalescing(coalescing[1], bool(coalescing[_ADAPTIVE_RX])) if coalescing else None,
        pause=PauseFrames(bool(pause[2]), bool(pause[3])) if pause else None,
        drops=drops(link, qdiscs),
    )


def drops(link: Any, qdiscs: Iterable[Any]) -> Drops:
    """Return what an interface and its qdiscs have dropped, by netlink (IFLA_STATS64, TCA_STATS)."""
    seen = link.get_attr("IFLA_STATS64") or {}
    roots = [one.get_attr("TCA_STATS") or {} for one in qdiscs if one.get("parent") == 0xFFFFFFFF]  # TC_H_ROOT
    return Drops(
        queued=sum(int(one.get("drop", 0)) for one in roots),
        sent=int(seen.get("tx_dropped", 0)),
        received=sum(int(seen.get(what, 0)) for what in ("rx_missed_errors", "rx_fifo_errors")),
        queue_packets=int(link.get_attr("IFLA_TXQLEN") or 0),
    )


def _asked(name: str, command: int, words: int) -> tuple[int, ...] | None:
    """Return the 32-bit words that a driver answers to a command; None if it has no such thing."""
    answer = ctypes.create_string_buffer(struct.pack("=I", command), 4 * words)
    request = struct.pack("16sP16x", name.encode(), ctypes.addressof(answer))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
        except OSError:  # not supported, or the interface has gone
            return None
    return struct.unpack(f"={words}I", answer.raw)
