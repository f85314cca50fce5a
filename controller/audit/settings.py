"""The section ``audit``: how often switches and hosts are compared with the plan, and which rules are left alone."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from controller.settings.sections import Count, Section, within
from controller.southbound.openflow.foreign import Ignored, number_of
from controller.southbound.openflow.state import MatchValue, match
from topology.problems import Problems

_COOKIE_MAX = 2**64 - 1
_ETH, _IP = ("in_port", "eth_dst", "eth_src", "eth_type", "vlan_vid", "vlan_pcp"), ("ip_dscp", "ip_ecn", "ip_proto")
_ADDRESSES = ("ipv4_src", "ipv4_dst", "arp_op", "arp_spa", "arp_tpa", "ipv6_src", "ipv6_dst")
_PORTS = ("tcp_src", "tcp_dst", "udp_src", "udp_dst", "icmpv4_type", "icmpv4_code", "metadata", "tunnel_id")
MATCH_FIELDS = frozenset((*_ETH, *_IP, *_ADDRESSES, *_PORTS))  # OpenFlow 1.3 section 7.2.3.7, as os-ken spells them


def _cookie(value: Any) -> tuple[int, int]:
    """Return the value and the mask of ``0x77``, or of ``0x77/0xff``.

    >>> _cookie("0x4857000000000000/0xffff000000000000") == (0x4857 << 48, 0xffff << 48), _cookie(7)[0]
    (True, 7)

    Raises:
        ValueError: it is neither.
    """
    text, _, mask = str(value).partition("/")
    try:
        number, bits = int(text, 0), int(mask, 0) if mask else _COOKIE_MAX
    except ValueError:
        raise ValueError(f'"{value}" is not a cookie, try 0x77 or 0x7700/0xff00') from None
    if not 0 <= number <= _COOKIE_MAX or not 0 < bits <= _COOKIE_MAX:
        raise ValueError(f'"{value}" is not a cookie of 64 bits with at least one bit that counts')
    return number, bits


class _IgnoreSection(Section):
    cookie: Annotated[tuple[int, int], BeforeValidator(_cookie)] | None = None
    table: Count | None = Field(default=None, ge=0, le=254)
    priority: Count | None = Field(default=None, ge=0, le=65535)
    match: dict[str, int | str] = Field(default_factory=dict)


class AuditSection(Section):
    """How often, and what is left alone."""

    interval: Annotated[int, within("1 s", "1 h")] = 10_000_000
    ignore: tuple[_IgnoreSection, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """How often each switch, and all hosts, are audited, and which rules are left alone."""

    interval_s: float
    ignored: tuple[Ignored, ...]


def audit(section: AuditSection, problems: Problems) -> AuditSettings:
    """Return what a section says; what is wrong with its ignore list goes to ``problems``."""
    ignored = tuple(one for i, entry in enumerate(section.ignore) if (one := _ignored(entry, problems.at("ignore", i))))
    return AuditSettings(section.interval / 1e6, ignored)


def _ignored(entry: _IgnoreSection, problems: Problems) -> Ignored | None:
    if entry.cookie is None and not entry.match and (entry.table is None or entry.priority is None):
        problems.add("names too much, give cookie, or match, or both table and priority")
        return None
    unknown = [name for name in entry.match if name not in MATCH_FIELDS]
    for name in unknown:
        problems.at("match", name).add("there is no such field, try ipv4_dst or in_port")
    fields: dict[str, MatchValue] = {name: value for name, value in entry.match.items() if name not in unknown}
    try:
        matched = match(fields)
    except ValueError as error:
        problems.at("match").add(error)
        return None
    for name, value in matched:
        if not _is_read(value):
            problems.at("match", name).add(f'"{value}" is no value of it, try 0x0800 or 10.9.0.0/16')
    cookie, mask = entry.cookie or (None, _COOKIE_MAX)
    return Ignored(cookie, mask, entry.table, entry.priority, matched)


def _is_read(value: MatchValue) -> bool:
    """Return whether rules can be compared with a value; one that cannot be read would stand for any."""
    try:
        for part in value if isinstance(value, tuple) else (value,):
            number_of(part)
    except ValueError:
        return False
    return True
