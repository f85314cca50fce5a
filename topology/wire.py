"""Wire arithmetic: what each layer of the path counts as a byte, and the window that fills a path.

One full-sized TCP segment at MTU 1500 with timestamps is 1448 bytes of payload, 1500 of IP, 1514 of Ethernet
frame and 1538 on the wire (frame check sequence, preamble and inter-packet gap), 1542 with a VLAN tag; IPv6's header
leaves 20 bytes less of payload. A host paces payload, an OpenFlow meter and HTB count frames, a circuit is sold by the
wire. This is the only place that converts.

Linux keeps a tag beside the packet until a device puts it on the wire, so meters and HTB count every frame without it;
only the wire has it. All that was measured: ``mininet-tests/scenarios/layers/test_layers.py``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

IPV4_HEADER_BYTES = 20  # RFC 791, no options
IPV6_HEADER_BYTES = 40  # RFC 8200 section 3, no extension headers
TCP_HEADER_BYTES = 20  # RFC 9293
TCP_TIMESTAMPS_BYTES = 12  # RFC 7323 section 3.2: 10 bytes and 2 of padding
ETHERNET_HEADER_BYTES = 14  # IEEE 802.3: two addresses and the type
VLAN_TAG_BYTES = 4  # IEEE 802.1Q
ETHERNET_REST_BYTES = 24  # IEEE 802.3: FCS 4, preamble and SFD 8, inter-packet gap 12


class Layer(Enum):
    """Where bytes are counted."""

    PAYLOAD = "payload"  # what the application moves; TCP internal pacing counts this
    IP = "ip"  # the IP packet
    FRAME = "frame"  # Ethernet frame without FCS and VLAN tag: OpenFlow meters, HTB, interface counters
    WIRE = "wire"  # everything that occupies the line: the circuit


@dataclass(frozen=True, slots=True)
class Framing:
    """How full-sized TCP segments are wrapped on a path.

    Attributes:
        mtu_bytes: largest IP packet.
        vlan_tags: number of 802.1Q tags on each frame.
        is_ipv6: whether they may be IPv6's, with 20 bytes less of payload; where two hosts have both families it is so,
            for the plan has to hold whichever they use.
    """

    mtu_bytes: int = 1500
    vlan_tags: int = 0
    is_ipv6: bool = False

    def __post_init__(self) -> None:
        """Refuse an MTU that holds no payload.

        Raises:
            ValueError: the MTU is below IPv4's minimum of 68 bytes (RFC 791), or there is a negative number of tags.
        """
        if self.mtu_bytes < 68 or self.vlan_tags < 0:
            raise ValueError(f"MTU {self.mtu_bytes} B with {self.vlan_tags} VLAN tags cannot carry TCP")

    @property
    def mss_bytes(self) -> int:
        """Payload of a full segment, bytes; timestamps are taken as on."""
        return self.mtu_bytes - self.ip_header_bytes - TCP_HEADER_BYTES - TCP_TIMESTAMPS_BYTES

    @property
    def ip_header_bytes(self) -> int:
        """What IP puts before each segment, bytes."""
        return IPV6_HEADER_BYTES if self.is_ipv6 else IPV4_HEADER_BYTES

    def segment_bytes(self, layer: Layer) -> int:
        """Return the bytes that one full segment counts for at ``layer``.

        >>> [Framing().segment_bytes(layer) for layer in Layer]
        [1448, 1500, 1514, 1538]
        >>> [Framing(vlan_tags=1).segment_bytes(layer) for layer in Layer]
        [1448, 1500, 1514, 1542]
        >>> [Framing(is_ipv6=True).segment_bytes(layer) for layer in Layer]
        [1428, 1500, 1514, 1538]
        """
        if layer is Layer.PAYLOAD:
            return self.mss_bytes
        if layer is Layer.IP:
            return self.mtu_bytes
        frame_bytes = self.mtu_bytes + ETHERNET_HEADER_BYTES
        if layer is Layer.FRAME:
            return frame_bytes
        return frame_bytes + VLAN_TAG_BYTES * self.vlan_tags + ETHERNET_REST_BYTES


def converted_bps(rate_bps: int, counted_at: Layer, wanted_at: Layer, framing: Framing) -> int:
    """Return a rate of full segments counted at another layer, in bit/s, rounded down.

    Rounding down keeps every conversion on the safe side: a rate derived from a share never exceeds the share.

    >>> converted_bps(1_000_000_000, Layer.WIRE, Layer.PAYLOAD, Framing())  # the paper's 941 Mbit/s
    941482444

    Args:
        rate_bps: rate as counted at ``counted_at``, bit/s.
        counted_at: the layer ``rate_bps`` is counted at.
        wanted_at: the layer of the answer.
        framing: how the segments are wrapped.

    Raises:
        ValueError: the rate is negative.
    """
    if rate_bps < 0:
        raise ValueError(f"a rate cannot be negative, got {rate_bps} bit/s")
    return rate_bps * framing.segment_bytes(wanted_at) // framing.segment_bytes(counted_at)


def conversion(counted_at: Layer, wanted_at: Layer, framing: Framing) -> Callable[[int], int]:
    """Return what converts rates as :func:`converted_bps` does, for many of one framing.

    >>> conversion(Layer.WIRE, Layer.PAYLOAD, Framing())(1_000_000_000)
    941482444
    """
    wanted_bytes, counted_bytes = framing.segment_bytes(wanted_at), framing.segment_bytes(counted_at)

    def converted(rate_bps: int) -> int:
        if rate_bps < 0:
            raise ValueError(f"a rate cannot be negative, got {rate_bps} bit/s")
        return rate_bps * wanted_bytes // counted_bytes

    return converted


# RFC 2018 section 3: with timestamps at most three blocks fit, 8 bytes each; kind and length 2, padding 2.
TCP_SACK_BYTES = 2 + 2 + 3 * 8
PPM = 1_000_000


def answers_ppm(framing: Framing) -> int:
    """Return what the answers to a stream of full segments take on the wire, parts per million of the stream, at most.

    One acknowledgement a segment, with three SACK blocks, as TCP sends while it recovers from loss; usually it is one
    for two or more segments. Rounded up.

    >>> answers_ppm(Framing())
    76724
    """
    headers_bytes = framing.ip_header_bytes + TCP_HEADER_BYTES + TCP_TIMESTAMPS_BYTES + TCP_SACK_BYTES
    frame_bytes = headers_bytes + ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES * framing.vlan_tags
    return -(-(frame_bytes + ETHERNET_REST_BYTES) * PPM // framing.segment_bytes(Layer.WIRE))


def cwnd_segments(payload_bps: int, rtt_us: int, mss_bytes: int) -> int:
    """Return the fixed congestion window that sustains a rate, in segments (at least 1).

    ``cwnd = ceil(rate * RTT / (8 * MSS))``: the bandwidth-delay product over the segment size. Source: Freemon 2013
    section IV.B; 1 Gbit/s of wire, 180 ms: 14,629, to which the paper's 14,764 adds 0.9% of standing queue.

    >>> cwnd_segments(941_482_444, 180_000, 1448)
    14630

    Args:
        payload_bps: rate counted at the TCP payload, bit/s.
        rtt_us: round-trip time without queueing, microseconds.
        mss_bytes: payload of a full segment, bytes.

    Raises:
        ValueError: an argument is not positive.
    """
    if min(payload_bps, rtt_us, mss_bytes) <= 0:
        raise ValueError(f"need positive rate, RTT and MSS, got {payload_bps} bit/s, {rtt_us} us, {mss_bytes} B")
    return -(-payload_bps * rtt_us // (8 * 1_000_000 * mss_bytes))


def transfer_us(payload_bytes: int, payload_bps: int, rtt_us: int) -> int:
    """Return the least time from the first byte sent until the last is confirmed, in microseconds.

    The payload at the full rate, then one round trip for the confirmation: no transfer on a warm connection can be
    quicker (Freemon 2013 section V.B: 268.8 MB at 1 Gbit/s and 180 ms, 2.47 s).

    >>> transfer_us(268_800_000, 941_482_444, 180_000)
    2464058

    Args:
        payload_bytes: bytes to move.
        payload_bps: rate counted at the TCP payload, bit/s.
        rtt_us: round-trip time, microseconds.
    """
    return -(-payload_bytes * 8 * 1_000_000 // payload_bps) + rtt_us
