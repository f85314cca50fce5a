"""A switch in memory: applies our messages as OpenFlow 1.3 says, and answers what becomes of a packet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address, ip_network

from controller.southbound.openflow.messages import (
    Barrier,
    DeleteGroup,
    DeleteMeter,
    DeleteRule,
    Message,
    PutGroup,
    PutMeter,
    PutRule,
)
from controller.southbound.openflow.state import (
    GROUP_IDS,
    METER_IDS,
    DropMeter,
    FailoverGroup,
    MatchValue,
    Rule,
    RuleKey,
    SwitchState,
    is_ours,
)

Packet = Mapping[str, int | str]  # OXM names and values


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a packet.

    Attributes:
        rules: the rules it met, table by table.
        vlan_vids: the VLANs of its tags as it leaves, the outermost first.
        meter_ids: the meters that counted it.
        dscp: code point written into it, or None.
        queue_id: queue it leaves by.
        output_port: port it leaves by; None: dropped.
    """

    rules: tuple[Rule, ...] = ()
    meter_ids: tuple[int, ...] = ()
    dscp: int | None = None
    queue_id: int | None = None
    output_port: int | None = None
    vlan_vids: tuple[int, ...] = ()


class RefusedByFake(Exception):
    """A message that a real switch answers with OFPErrorMsg."""


class FakeSwitch:
    """Rules by key, meters and groups by number, those of others too; and the ports that are not live."""

    def __init__(
        self,
        rules: frozenset[Rule] = frozenset(),
        meters: frozenset[DropMeter] = frozenset(),
        groups: frozenset[FailoverGroup] = frozenset(),
    ) -> None:
        """Start with what somebody has set."""
        self.rules: dict[RuleKey, Rule] = {rule.key: rule for rule in rules}
        self.meters: dict[int, DropMeter] = {meter.meter_id: meter for meter in meters}
        self.groups: dict[int, FailoverGroup] = {group.group_id: group for group in groups}
        self.dead_ports: set[int] = set()

    def ours(self) -> SwitchState:
        """Return what a read-back would show."""
        return SwitchState(
            frozenset(rule for rule in self.rules.values() if is_ours(rule.cookie)),
            frozenset(meter for meter in self.meters.values() if meter.meter_id in METER_IDS),
            frozenset(group for group in self.groups.values() if group.group_id in GROUP_IDS),
        )

    def others(self) -> SwitchState:
        """Return what is not ours."""
        return SwitchState(
            frozenset(self.rules.values()) - self.ours().rules,
            frozenset(self.meters.values()) - self.ours().meters,
            frozenset(self.groups.values()) - self.ours().groups,
        )

    def apply(self, message: Message) -> None:
        """Do what a switch does.

        Raises:
            RefusedByFake: as a switch would (OpenFlow 1.3 sections 6.4 and 6.5).
        """
        match message:
            case PutMeter(meter, exists):
                if exists is not (meter.meter_id in self.meters):
                    raise RefusedByFake(f"OFPMMFC_UNKNOWN_METER or OFPMMFC_METER_EXISTS: {message}")
                self.meters[meter.meter_id] = meter
            case DeleteMeter(meter):
                self.meters.pop(meter.meter_id, None)
                self.rules = {key: rule for key, rule in self.rules.items() if rule.meter_id != meter.meter_id}
            case PutGroup(group, exists):
                if exists is not (group.group_id in self.groups):
                    raise RefusedByFake(f"OFPGMFC_UNKNOWN_GROUP or OFPGMFC_GROUP_EXISTS: {message}")
                self.groups[group.group_id] = group
            case DeleteGroup(group):
                self.groups.pop(group.group_id, None)
                self.rules = {key: rule for key, rule in self.rules.items() if rule.group_id != group.group_id}
            case PutRule(rule):
                if rule.meter_id is not None and rule.meter_id not in self.meters:
                    raise RefusedByFake(f"OFPMMFC_UNKNOWN_METER: {message}")
                if rule.group_id is not None and rule.group_id not in self.groups:
                    raise RefusedByFake(f"OFPBAC_BAD_OUT_GROUP: {message}")
                self.rules[rule.key] = rule
            case DeleteRule(rule):
                if rule.key in self.rules and is_ours(self.rules[rule.key].cookie):
                    del self.rules[rule.key]
            case Barrier():
                pass

    def fate(self, packet: Packet) -> Fate:
        """Return what becomes of a packet that enters table 0."""
        fate, table_id, packet = Fate(vlan_vids=_tags(packet)), 0, {**packet, "metadata": 0}
        while True:
            rule = self._hit(table_id, packet)
            if rule is None:
                return Fate(fate.rules, fate.meter_ids)
            port_no, packet = self._leaves_by(rule, _retagged(packet, rule))
            fate = Fate(
                (*fate.rules, rule),
                fate.meter_ids if rule.meter_id is None else (*fate.meter_ids, rule.meter_id),
                fate.dscp if rule.dscp is None else rule.dscp,
                fate.queue_id if rule.queue_id is None else rule.queue_id,
                port_no,
                _tags(packet),
            )
            if rule.goto_table is None:
                return fate
            table_id = rule.goto_table
            if rule.dscp is not None:
                packet = {**packet, "ip_dscp": rule.dscp}
            if rule.metadata is not None:
                value, mask = rule.metadata
                packet = {**packet, "metadata": int(packet["metadata"]) & ~mask | value}

    def _leaves_by(self, rule: Rule, packet: Packet) -> tuple[int | None, Packet]:
        """Return the port of a rule, or the first live one of its group, and the packet as it leaves by it.

        A port that is not live sends nothing, nor does the one that the packet has come by (OpenFlow 1.3 section 4.5).
        """
        if rule.group_id is None:
            silent = {*self.dead_ports, packet.get("in_port")}
            return None if rule.output_port in silent else rule.output_port, packet
        for bucket in self.groups[rule.group_id].buckets:
            if bucket.port_no not in self.dead_ports:
                if bucket.port_no == packet.get("in_port"):
                    break
                tag = replace(rule, push_vlan=bucket.vlan_vid is not None, vlan_vid=bucket.vlan_vid)
                return bucket.port_no, _retagged(packet, tag)
        return None, packet

    def _hit(self, table_id: int, packet: Packet) -> Rule | None:
        hits = [rule for rule in self.rules.values() if rule.table_id == table_id and _matches(rule, packet)]
        return max(hits, key=lambda rule: rule.priority, default=None)


def _tags(packet: Packet) -> tuple[int, ...]:
    """Return the VLANs of a packet's tags, the outermost first; it has at most two."""
    return tuple(int(packet[name]) & 0xFFF for name in ("vlan_vid", "inner_vlan_vid") if name in packet)


def _retagged(packet: Packet, rule: Rule) -> Packet:
    """Return a packet after the tag actions of a rule."""
    fields = dict(packet)
    if rule.pop_vlan:
        if "vlan_vid" not in fields:
            raise RefusedByFake(f"OFPBAC_MATCH_INCONSISTENT: {rule} takes the tag off a packet that may have none")
        del fields["vlan_vid"]
        if "inner_vlan_vid" in fields:
            fields["vlan_vid"] = fields.pop("inner_vlan_vid")
    if rule.push_vlan:
        if "vlan_vid" in fields:
            fields["inner_vlan_vid"] = fields["vlan_vid"]
        fields["vlan_vid"] = 0x1000
    if rule.vlan_vid is not None:
        fields["vlan_vid"] = 0x1000 | rule.vlan_vid
    return fields


def _matches(rule: Rule, packet: Packet) -> bool:
    return all(name in packet and _agrees(packet[name], value) for name, value in rule.match)


def _agrees(actual: int | str, wanted: MatchValue) -> bool:
    if not isinstance(wanted, tuple):
        return actual == wanted
    value, mask = wanted
    if isinstance(value, int) and isinstance(mask, int):
        return isinstance(actual, int) and actual & mask == value
    address = ip_address(actual)
    bits = int(IPv6Address(mask)).bit_count() if address.version == 6 else mask
    return address in ip_network(f"{value}/{bits}")
