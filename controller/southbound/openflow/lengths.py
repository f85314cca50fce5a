"""Whether a message can be given to os-ken's parser, which reads on for ever at a part of length 0. Pure.

Source: OpenFlow 1.3.5, sections 7.1 (header), 7.2.3 (instructions), 7.2.4 (actions), 7.3.5 (multipart), 7.5.1 (hello).
"""

from collections.abc import Iterator
from typing import Any, Self

VERSION = 4  # of OpenFlow 1.3
HELLO, FLOW_REMOVED, MULTIPART_REPLY = 0, 11, 19
TAKEN = frozenset({HELLO, 1, 2, 3, 4, 6, 8, 10, FLOW_REMOVED, 12, MULTIPART_REPLY, 21, 25})
"""What a switch says: hello, error, echo, experimenter, features, configuration, packet-in, flow-removed, port-status,
multipart, barrier, role; a controller's own requests are not among them."""
FLOWS, COUNTS, GROUPS, METERS, METER_ROOM, TABLE_ROOM, PORTS = 1, 2, 7, 10, 11, 12, 13
"""Kinds of multipart replies: those that we ask for."""
_SIZES = {COUNTS: 24, METER_ROOM: 16}  # bytes of those that have no parts
TABLE_SIZE = 64  # ofp_table_features without its properties
_WITH_ACTIONS = frozenset({3, 4, 5})  # OFPIT_WRITE_ACTIONS, OFPIT_APPLY_ACTIONS, OFPIT_CLEAR_ACTIONS
_INSTRUCTION_SIZES = {1: 8, 2: 24, 6: 8}  # OFPIT_GOTO_TABLE, OFPIT_WRITE_METADATA, OFPIT_METER
_OUTPUT, _SET_FIELD, _EXPERIMENTER = 0, 25, 0xFFFF  # actions that are not of 8 bytes: one is of 16, two of any size
_CONNECTION_TRACKING = bytes.fromhex("000023200023")  # vendor and subtype of Open vSwitch's action that has actions
_CONNECTION_TRACKING_SIZE = 24  # bytes of it before those


class Malformed(ConnectionError):
    """A message that no switch sends; its connection is not gone on with."""


def check_message(message: bytes) -> None:
    """Refuse a message that os-ken's parser would not come to an end with, or that is not a switch's to send.

    Raises:
        Malformed: it is one.
    """
    if len(message) < 8:
        raise Malformed("shorter than a header")
    version, kind = message[0], message[1]
    if kind not in TAKEN or (version != VERSION and kind != HELLO):
        raise Malformed(f"message of version {version} and type {kind}")
    if kind == HELLO:
        _all(_parts(message, 8, len(message), length_at=2, least=4))  # os-ken looks for no padding
    elif kind == MULTIPART_REPLY:
        _check_multipart(message)


def _check_multipart(message: bytes) -> None:
    if len(message) < 16:
        raise Malformed("a multipart reply without a head")
    kind = _u16(message, 8)
    if kind not in {FLOWS, COUNTS, GROUPS, METERS, METER_ROOM, TABLE_ROOM, PORTS}:
        raise Malformed(f"a multipart reply of type {kind}, which nobody asked for")
    if kind == FLOWS:
        for at, end in _parts(message, 16, len(message), length_at=0, least=56):
            _check_flow(message, at, end)
    elif kind in _SIZES:
        if len(message) != 16 + _SIZES[kind]:
            raise Malformed(f"a multipart reply of type {kind} of {len(message) - 16} bytes")
    elif kind == TABLE_ROOM:
        _all(_parts(message, 16, len(message), length_at=0, least=TABLE_SIZE))
    elif kind == METERS:
        for at, end in _parts(message, 16, len(message), length_at=0, least=8):
            _all(_parts(message, at + 8, end, length_at=2, least=12))
    elif kind == GROUPS:
        for at, end in _parts(message, 16, len(message), length_at=0, least=8):
            for bucket, bucket_end in _parts(message, at + 8, end, length_at=0, least=16):
                _check_actions(message, bucket + 16, bucket_end)


def without_properties(message: bytes) -> bytes:
    """Return a checked message, and of what tables can do no more than how many entries they hold.

    Open vSwitch describes each of its 254 tables in full; os-ken builds an object for each property of each of them.
    """
    if message[1] != MULTIPART_REPLY or _u16(message, 8) != TABLE_ROOM:
        return message
    heads = [
        message[at : at + TABLE_SIZE] for at, _ in _parts(message, 16, len(message), length_at=0, least=TABLE_SIZE)
    ]
    body = b"".join(TABLE_SIZE.to_bytes(2, "big") + head[2:] for head in heads)
    return message[:2] + (16 + len(body)).to_bytes(2, "big") + message[4:16] + body


def _check_flow(message: bytes, at: int, end: int) -> None:
    """Refuse a flow's statistics whose instructions do not fit into it."""
    first = at + 48 + (_u16(message, at + 50) + 7) // 8 * 8  # behind the match, which is padded
    if first > end:
        raise Malformed("a match is longer than its entry")
    for instruction, its_end in _parts(message, first, end, length_at=2, least=8):
        if (kind := _u16(message, instruction)) in _WITH_ACTIONS:
            _check_actions(message, instruction + 8, its_end)
        elif its_end - instruction != _INSTRUCTION_SIZES.get(kind, its_end - instruction):
            raise Malformed(f"an instruction of type {kind} of {its_end - instruction} bytes")


def _check_actions(message: bytes, first: int, end: int, *, nested: bool = False) -> None:
    """Refuse actions of another size than that of their type: os-ken goes on behind that, not behind what they say."""
    for at, its_end in _parts(message, first, end, length_at=2, least=8):
        kind, size = _u16(message, at), its_end - at
        if kind == _EXPERIMENTER:
            if message[at + 4 : at + 10] == _CONNECTION_TRACKING:
                if nested:
                    raise Malformed("connection tracking in connection tracking")
                _check_actions(message, at + _CONNECTION_TRACKING_SIZE, its_end, nested=True)
        elif kind != _SET_FIELD and size != (16 if kind == _OUTPUT else 8):
            raise Malformed(f"an action of type {kind} of {size} bytes")


def _parts(message: bytes, at: int, end: int, *, length_at: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield where each part begins and ends; each says its length, with what says it.

    Raises:
        Malformed: a length is below the least that there is, or beyond the end of what it is a part of.
    """
    while at < end:
        length = _u16(message, at + length_at) if at + length_at + 2 <= end else 0
        if length < least or at + length > end:
            raise Malformed(f"a part of {length} bytes at byte {at}")
        yield at, at + length
        at += length


def _all(parts: Iterator[tuple[int, int]]) -> None:
    for _ in parts:
        pass


def _u16(message: bytes, at: int) -> int:
    return int.from_bytes(message[at : at + 2], "big")


class Checked:
    """Repair 8. os-ken's parser reads on for ever at a part of length 0: 16 bytes of a stranger kept a core busy.

    It also takes messages that are not a switch's to send, and those of every version of OpenFlow.
    """

    def __init__(self, parsed: Any) -> None:
        """Take os-ken's ``ofproto_parser.msg``."""
        self._parsed = parsed

    @classmethod
    def of(cls, parsed: Any) -> Self:
        """Return a parser that checks; what does so already as it is."""
        return parsed if isinstance(parsed, cls) else cls(parsed)

    def __call__(self, datapath: Any, version: int, kind: int, size: int, xid: int, buf: Any) -> Any:
        """Return a message, as os-ken's own does.

        Raises:
            Malformed: it is none that a switch sends.
        """
        whole = bytes(buf[:size])
        check_message(whole)
        short = without_properties(whole)
        return self._parsed(datapath, version, kind, len(short), xid, buf if short is whole else short)
