"""Switch state as values. Pure.

What is ours: rules whose cookie starts with ``COOKIE_OURS``, meters numbered in ``METER_IDS`` and groups numbered in
``GROUP_IDS``. Nothing else is ever named in a message. Desired and installed state are both :class:`SwitchState`;
``messages.py`` has the way from one to the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network

from controller.southbound.errors import NotExpressible, NotSettable

COOKIE_OURS = 0x4857_0000_0000_0000  # "HW" in ASCII; the low 48 bits name the circuit or the allocation
COOKIE_MASK = 0xFFFF_0000_0000_0000
METER_IDS = range(1000, 10_000)  # meters have no cookie, so ours are known by number; other programs keep out of these
GROUP_IDS = range(1000, 10_000)  # nor have groups

MatchValue = int | str | tuple[int, int] | tuple[str, str]  # a value, or (value, mask), as os-ken spells OXM fields
Bits = tuple[int, int]  # a value, and the mask of the bits that it says
Match = tuple[tuple[str, MatchValue], ...]
RuleKey = tuple[int, int, Match]

_UINT32_MAX = 2**32 - 1  # rate and burst of ofp_meter_band_drop
_IPV4_FIELDS = ("ipv4_src", "ipv4_dst", "arp_spa", "arp_tpa")
_IPV6_FIELDS = ("ipv6_src", "ipv6_dst", "ipv6_nd_target")


@dataclass(frozen=True, slots=True)
class Rule:
    """One flow entry: what it matches, and what becomes of the packet, in this order.

    Attributes:
        table_id: the table it stands in.
        priority: the highest that matches wins.
        match: sorted pairs of OXM name and value, from :func:`match`.
        cookie: from :func:`cookie`; says that the rule is ours and which circuit it serves.
        meter_id: the meter that polices it, if any.
        pop_vlan: whether its VLAN tag is taken off.
        dscp: differentiated services code point written into the packet, if any (RFC 2474).
        queue_id: queue of the output port, if any; it keeps for later tables.
        push_vlan: whether it gets a VLAN tag.
        vlan_vid: VLAN written into its tag, if any.
        output_port: port number or an ``OFPP_`` constant; neither this nor one of the next two drops the packet.
        group_id: group that sends it on, if any.
        goto_table: table that goes on with the packet, if any.
        metadata: bits of the metadata that it writes for the next table, if any.
        extra: what the switch showed and Headway never writes; only in read-back state, where it makes the rule
            differ from every desired one, so that it is put right.
    """

    table_id: int
    priority: int
    match: Match
    cookie: int
    meter_id: int | None = None
    pop_vlan: bool = False
    dscp: int | None = None
    queue_id: int | None = None
    push_vlan: bool = False
    vlan_vid: int | None = None
    output_port: int | None = None
    goto_table: int | None = None
    group_id: int | None = None
    metadata: Bits | None = None
    extra: str = ""

    @property
    def key(self) -> RuleKey:
        """What makes it the same entry for the switch (OpenFlow 1.3 section 5.2)."""
        return self.table_id, self.priority, self.match

    def __str__(self) -> str:
        """Return it on one line, for people."""
        steps = {
            "meter": self.meter_id,
            "pop": "vlan" if self.pop_vlan else None,
            "dscp": self.dscp,
            "queue": self.queue_id,
            "push": "vlan" if self.push_vlan else None,
            "vlan": self.vlan_vid,
            "output": self.output_port,
            "group": self.group_id,
            "metadata": None if self.metadata is None else _hexadecimal(self.metadata),
            "table": self.goto_table,
        }
        shown = ((name, _hexadecimal(value) if name == "metadata" else value) for name, value in self.match)
        what = ",".join(f"{name}={value}" for name, value in shown) or "all"
        does = ", ".join(f"{name} {value}" for name, value in steps.items() if value is not None) or "drop"
        return f"table {self.table_id} priority {self.priority} {what} -> {does}"


@dataclass(frozen=True, slots=True)
class DropMeter:
    """A token bucket that drops what exceeds it, in the wire's units; make it with :func:`drop_meter`.

    Attributes:
        meter_id: its number on the switch.
        rate_kbps: rate, kbit/s of Ethernet frames without FCS. 0 only in read-back state: a meter of another kind.
        burst_kbit: depth of the bucket, kbit.
    """

    meter_id: int
    rate_kbps: int
    burst_kbit: int

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"meter {self.meter_id}: {self.rate_kbps:,} kbit/s, burst {self.burst_kbit:,} kbit"


@dataclass(frozen=True, slots=True)
class Bucket:
    """One way out of a group: it watches the port it sends by.

    Attributes:
        port_no: the port.
        vlan_vid: the VLAN in which packets leave by it; None for no tag.
    """

    port_no: int
    vlan_vid: int | None = None

    def __str__(self) -> str:
        """Return it on one line, for people."""
        return f"{self.port_no}" if self.vlan_vid is None else f"{self.port_no} in VLAN {self.vlan_vid}"


@dataclass(frozen=True, slots=True)
class FailoverGroup:
    """A fast-failover group (OpenFlow 1.3 section 5.6.1): packets leave by the first of its ports that is live.

    Attributes:
        group_id: its number on the switch.
        buckets: in order. Empty only in read-back state: a group of another kind.
    """

    group_id: int
    buckets: tuple[Bucket, ...]

    def __str__(self) -> str:
        """Return it on one line, for people."""
        ports = ", ".join(map(str, self.buckets))
        return f"group {self.group_id}: {f'the first live port of {ports}' if ports else 'another kind of group'}"


@dataclass(frozen=True, slots=True)
class SwitchState:
    """All that is ours on a switch."""

    rules: frozenset[Rule] = frozenset()
    meters: frozenset[DropMeter] = frozenset()
    groups: frozenset[FailoverGroup] = frozenset()


def cookie(circuit: int) -> int:
    """Return the cookie of the rules that serve ``circuit``, a number of at most 48 bits.

    Raises:
        NotExpressible: the number is negative or longer.
    """
    if not 0 <= circuit <= ~COOKIE_MASK & 2**64 - 1:
        raise NotExpressible("cookie", circuit, "", "a number of 48 bits")
    return COOKIE_OURS | circuit


def match(fields: Mapping[str, MatchValue]) -> Match:
    """Return a match in the one form that the switch reads back too: sorted, networks as address and mask.

    >>> match({"ipv4_dst": "10.1.0.0/16", "eth_type": 0x0800, "ipv4_src": "10.2.0.1/32"})
    (('eth_type', 2048), ('ipv4_dst', ('10.1.0.0', '255.255.0.0')), ('ipv4_src', '10.2.0.1'))
    >>> match({"ipv6_dst": "2001:db8:0::/48"})
    (('ipv6_dst', ('2001:db8::', 'ffff:ffff:ffff::')),)

    Args:
        fields: OXM names and values as os-ken spells them; IP addresses may be written ``address/length``.

    Raises:
        ValueError: not a network, or bits set outside its mask, which a switch would drop without a word.
    """
    pairs: list[tuple[str, MatchValue]] = []
    for name, value in fields.items():
        if name not in (*_IPV4_FIELDS, *_IPV6_FIELDS):
            pairs.append((name, value))
            continue
        network = _ipv6(value) if name in _IPV6_FIELDS else IPv4Network("/".join(_parts(value)))
        if network.prefixlen == network.max_prefixlen:
            pairs.append((name, str(network.network_address)))
        elif network.prefixlen:  # a mask of no bits is no condition; the switch does not show it
            pairs.append((name, (str(network.network_address), str(network.netmask))))
    return tuple(sorted(pairs))


def _ipv6(value: MatchValue) -> IPv6Network:
    """Return an IPv6 prefix whose mask may be written as a length or, as switches do, as an address."""
    address, *mask = _parts(value)
    if not mask or mask[0].isdecimal():
        return IPv6Network("/".join((address, *mask)))
    ones = 128 - (~int(IPv6Address(mask[0])) & 2**128 - 1).bit_length()
    if int(IPv6Network((0, ones)).netmask) != int(IPv6Address(mask[0])):
        raise ValueError(f"{mask[0]} is not the mask of a prefix")
    return IPv6Network((address, ones))


def _parts(value: MatchValue) -> list[str]:
    return list(map(str, value)) if isinstance(value, tuple) else str(value).split("/")


def drop_meter(meter_id: int, cir_bps: int, cbs_bits: int) -> DropMeter:
    """Return the meter that polices a class to CIR with burst CBS.

    OpenFlow 1.3 ``ofp_meter_band_drop`` counts the rate in kbit/s and the burst in kbit. CIR must be a multiple of
    1000 bit/s; CBS is rounded up, so that a conforming burst never drops.

    >>> drop_meter(1000, 984_395_000, 2_000_001)
    DropMeter(meter_id=1000, rate_kbps=984395, burst_kbit=2001)

    Args:
        meter_id: one of ``METER_IDS``.
        cir_bps: committed information rate, bit/s of Ethernet frames (``topology.wire.Layer.FRAME``).
        cbs_bits: committed burst size, bits. TCP through a policer collapses below about 200 ms of the rate.

    Raises:
        NotSettable: the number is not one of ours.
        NotExpressible: a rate or a burst that the field cannot carry.
    """
    if meter_id not in METER_IDS:
        raise NotSettable(f"our meters are {METER_IDS.start} to {METER_IDS.stop - 1}", meter_id)
    rate_kbps, rest_bps = divmod(cir_bps, 1000)
    if rest_bps or not 0 < rate_kbps <= _UINT32_MAX:
        raise NotExpressible("meter rate", cir_bps, "bit/s", "a positive multiple of 1000 bit/s, at most 4.29 Tbit/s")
    burst_kbit = -(-cbs_bits // 1000)
    if not 0 < burst_kbit <= _UINT32_MAX:
        raise NotExpressible("meter burst", cbs_bits, "bit", "1 bit to 4.29 Tbit")
    return DropMeter(meter_id, rate_kbps, burst_kbit)


def is_ours(rule_cookie: int) -> bool:
    """Return whether a rule with this cookie is Headway's."""
    return rule_cookie & COOKIE_MASK == COOKIE_OURS


def _hexadecimal(value: object) -> str:
    """Return bits, or what stands in their place, for people.

    >>> _hexadecimal((0x10, 0x1F))
    '0x10/0x1f'
    """
    return "/".join(f"{part:#x}" for part in value) if isinstance(value, tuple) else str(value)
