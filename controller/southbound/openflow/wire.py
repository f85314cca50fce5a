"""OpenFlow 1.3 as os-ken spells it: our values to wire messages, and the switch's answers to our values."""

from collections.abc import Iterable
from typing import Any

from controller.plan.wiring import SeenPort
from controller.southbound.openflow import messages
from controller.southbound.openflow.messages import Message
from controller.southbound.openflow.state import (
    COOKIE_MASK,
    COOKIE_OURS,
    GROUP_IDS,
    METER_IDS,
    Bits,
    Bucket,
    DropMeter,
    FailoverGroup,
    Match,
    Rule,
    RuleKey,
)
from controller.southbound.openflow.state import match as state_match

_TAG = 0x8100  # the type of a customer's VLAN tag (IEEE 802.1Q)


def to_wire(datapath: Any, message: Message) -> Any:
    """Return the os-ken message that carries ``message``.

    Raises:
        TypeError: a barrier, which is made by :func:`barrier`.
    """
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    match message:
        case messages.PutMeter(meter, exists):
            band = parser.OFPMeterBandDrop(rate=meter.rate_kbps, burst_size=meter.burst_kbit)
            command = ofp.OFPMC_MODIFY if exists else ofp.OFPMC_ADD
            return parser.OFPMeterMod(datapath, command, _meter_flags(ofp), meter.meter_id, [band])
        case messages.DeleteMeter(meter):
            return parser.OFPMeterMod(datapath, ofp.OFPMC_DELETE, meter_id=meter.meter_id)
        case messages.PutGroup(group, exists):
            return _group_mod(datapath, ofp.OFPGC_MODIFY if exists else ofp.OFPGC_ADD, group)
        case messages.DeleteGroup(group):
            return parser.OFPGroupMod(datapath, ofp.OFPGC_DELETE, ofp.OFPGT_FF, group.group_id)
        case messages.PutRule(rule):
            return _flow_mod(datapath, ofp.OFPFC_ADD, rule)
        case messages.DeleteRule(rule):
            return _flow_mod(datapath, ofp.OFPFC_DELETE_STRICT, rule)
    raise TypeError(f"{message} is not one message on the wire")


def barrier(datapath: Any) -> Any:
    """Return a barrier request."""
    return datapath.ofproto_parser.OFPBarrierRequest(datapath)


def role_request(datapath: Any, term: int) -> Any:
    """Return the wish to be the one master; OpenFlow 1.3 ``ofp_role_request``, ``generation_id`` is the term."""
    return datapath.ofproto_parser.OFPRoleRequest(datapath, datapath.ofproto.OFPCR_ROLE_MASTER, term)


def standby_request(datapath: Any, term: int) -> Any:
    """Return the wish to be a slave, while somebody else leads under a term; OpenFlow 1.3, section 6.3.6."""
    return datapath.ofproto_parser.OFPRoleRequest(datapath, datapath.ofproto.OFPCR_ROLE_SLAVE, term)


def role_question(datapath: Any) -> Any:
    """Return the question which role we have; OpenFlow 1.3, section 7.3.9, ``OFPCR_ROLE_NOCHANGE``."""
    return datapath.ofproto_parser.OFPRoleRequest(datapath, datapath.ofproto.OFPCR_ROLE_NOCHANGE, 0)


def is_master(reply: Any) -> bool:
    """Return whether the answer to that says that we are the one master."""
    ofp = reply.datapath.ofproto
    return bool(reply.msg_type == ofp.OFPT_ROLE_REPLY and reply.role == ofp.OFPCR_ROLE_MASTER)


def echo_request(datapath: Any) -> Any:
    """Return the question whether a switch is there."""
    return datapath.ofproto_parser.OFPEchoRequest(datapath)


def is_echo_reply(msg: Any) -> bool:
    """Return whether a message is the answer to that."""
    return bool(msg.msg_type == msg.datapath.ofproto.OFPT_ECHO_REPLY)


def is_outranked(error: Any) -> bool:
    """Return whether an error says that a switch obeys a master of a later term: our wish to be its master is stale."""
    ofp = error.datapath.ofproto
    return (error.type, error.code) == (ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE)


def our_flows_request(datapath: Any) -> Any:
    """Return the question for all flow entries with our cookie."""
    ofp = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowStatsRequest(
        datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, COOKIE_OURS, COOKIE_MASK
    )


def flows_request(datapath: Any) -> Any:
    """Return the question for all flow entries, whoever's."""
    ofp = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowStatsRequest(datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0)


def flows_like_request(datapath: Any, rule: Rule) -> Any:
    """Return the question for the entries, whoever's, that match what ``rule`` matches or a part of it."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPFlowStatsRequest(
        datapath, 0, rule.table_id, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch(**dict(rule.match))
    )


def counts_requests(datapath: Any, table_id: int) -> tuple[Any, Any]:
    """Return the questions how many flow entries a table has, and how many of them have our cookie."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    of_any, of_ours = (
        parser.OFPAggregateStatsRequest(datapath, 0, table_id, ofp.OFPP_ANY, ofp.OFPG_ANY, *known, parser.OFPMatch())
        for known in ((0, 0), (COOKIE_OURS, COOKIE_MASK))
    )
    return of_any, of_ours


def meters_request(datapath: Any) -> Any:
    """Return the question for the configuration of all meters."""
    return datapath.ofproto_parser.OFPMeterConfigStatsRequest(datapath, 0, datapath.ofproto.OFPM_ALL)


def meter_features_request(datapath: Any) -> Any:
    """Return the question how many meters there may be."""
    return datapath.ofproto_parser.OFPMeterFeaturesStatsRequest(datapath, 0)


def table_features_request(datapath: Any) -> Any:
    """Return the question how many entries each table may have; without a body it changes nothing."""
    return datapath.ofproto_parser.OFPTableFeaturesStatsRequest(datapath, 0, [])


def groups_request(datapath: Any) -> Any:
    """Return the question for the description of all groups."""
    return datapath.ofproto_parser.OFPGroupDescStatsRequest(datapath, 0)


def seen_ports(datapath: Any) -> dict[int, SeenPort]:
    """Return the ports of a switch, as it showed them when it connected."""
    return {port.port_no: _seen(datapath, port) for port in datapath.ports.values()}


def hardware_addresses(datapath: Any) -> frozenset[str]:
    """Return the hardware addresses of a switch's ports, its own among them: no other switch has one of these."""
    return frozenset(str(port.hw_addr) for port in datapath.ports.values())


def _seen(datapath: Any, port: Any) -> SeenPort:
    return SeenPort(port.name.rstrip(b"\0").decode(errors="replace"), _is_live(datapath, port))


def _is_live(datapath: Any, port: Any) -> bool:
    """Return whether a port is up at its own end and, as far as the switch can tell, at the other.

    BFD that has lost its other end takes OFPPS_LIVE from a port whose link is up.
    """
    ofp = datapath.ofproto
    return bool(port.state & ofp.OFPPS_LIVE) and not (
        port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN
    )


def changed_port(msg: Any) -> tuple[int, SeenPort | None]:
    """Return the port that a port-status message is about, as it is now; None for one that is gone."""
    is_gone = msg.reason == msg.datapath.ofproto.OFPPR_DELETE
    return msg.desc.port_no, None if is_gone else _seen(msg.datapath, msg.desc)


def is_error(msg: Any) -> bool:
    """Return whether an answer is an OFPErrorMsg."""
    return bool(msg.msg_type == msg.datapath.ofproto.OFPT_ERROR)


def is_multipart(msg: Any) -> bool:
    """Return whether an answer is a part of a multipart reply."""
    return bool(msg.msg_type == msg.datapath.ofproto.OFPT_MULTIPART_REPLY)


def has_more(msg: Any) -> bool:
    """Return whether more parts of a multipart reply follow."""
    return bool(msg.flags & msg.datapath.ofproto.OFPMPF_REPLY_MORE)


def has_answer(msg: Any) -> bool:
    """Return whether a request of ours is answered even when all is well."""
    ofp = msg.datapath.ofproto
    return msg.cls_msg_type in (ofp.OFPT_BARRIER_REQUEST, ofp.OFPT_MULTIPART_REQUEST)


def is_answer(asked: Any, msg: Any) -> bool:
    """Return whether a message is of the kind that answers a request; an error answers any."""
    if is_error(msg) or not has_answer(asked):
        return is_error(msg)
    if msg.msg_type != asked.cls_msg_type + 1:  # OpenFlow 1.3 numbers each reply after its request
        return False
    return not is_multipart(msg) or bool(msg.cls_stats_type == asked.type)


def error_of(msg: Any) -> tuple[int, int, str]:
    """Return an error's type and code, and both as OpenFlow names them."""
    ofp = msg.datapath.ofproto
    if msg.type == ofp.OFPET_EXPERIMENTER:
        return msg.type, msg.exp_type, f"OFPET_EXPERIMENTER of {msg.experimenter:#x}, type {msg.exp_type}"
    return msg.type, msg.code, f"{ofp.ofp_error_type_to_str(msg.type)}, {ofp.ofp_error_code_to_str(msg.type, msg.code)}"


def to_rule(datapath: Any, entry: Any) -> Rule:
    """Return an OFPFlowStats entry as a rule; what Headway never writes goes into ``extra``."""
    parts: dict[str, Any] = {}
    unlike = {
        "idle_timeout": entry.idle_timeout,
        "hard_timeout": entry.hard_timeout,
        "flags": entry.flags ^ datapath.ofproto.OFPFF_SEND_FLOW_REM,  # what makes the switch say that it has gone
    }
    extra = [f"{name}={value}" for name, value in unlike.items() if value]
    for instruction in entry.instructions:
        for step in _steps(datapath.ofproto, instruction):
            part = _part(datapath, step)
            if part is None or part[0] in parts:
                extra.append(str(step))
            else:
                parts[part[0]] = part[1]
    return Rule(entry.table_id, entry.priority, _match(entry), entry.cookie, **parts, extra=" ".join(extra))


def removed_key(msg: Any) -> RuleKey:
    """Return which entry it was that an OFPFlowRemoved says has gone."""
    return msg.table_id, msg.priority, _match(msg)


def to_meters(datapath: Any, configs: Iterable[Any]) -> frozenset[DropMeter]:
    """Return the meters of our range; one of another kind than ours has rate 0, so that it is put right."""
    ours = [config for config in configs if config.meter_id in METER_IDS]
    return frozenset(DropMeter(config.meter_id, *_rate_and_burst(datapath.ofproto, config)) for config in ours)


def to_groups(datapath: Any, descriptions: Iterable[Any]) -> frozenset[FailoverGroup]:
    """Return the groups of our range; one of another kind than ours has no buckets, so that it is put right."""
    ours = [one for one in descriptions if one.group_id in GROUP_IDS]
    return frozenset(FailoverGroup(one.group_id, _buckets(datapath, one)) for one in ours)


def _buckets(datapath: Any, description: Any) -> tuple[Bucket, ...]:
    """Return the buckets of a group like ours, else none."""
    buckets = [_bucket(datapath, shown) for shown in description.buckets]
    like_ours = description.type == datapath.ofproto.OFPGT_FF and None not in buckets
    return tuple(filter(None, buckets)) if like_ours else ()


def _bucket(datapath: Any, shown: Any) -> Bucket | None:
    """Return a bucket like ours, else None."""
    parts = [_part(datapath, action) for action in shown.actions]
    vlan_vid = dict(filter(None, parts)).get("vlan_vid")
    bucket = Bucket(shown.watch_port, vlan_vid if isinstance(vlan_vid, int) else None)
    tag = [] if bucket.vlan_vid is None else [("push_vlan", True), ("vlan_vid", bucket.vlan_vid)]
    return bucket if parts == [*tag, ("output_port", bucket.port_no)] else None


def _group_mod(datapath: Any, command: int, group: FailoverGroup) -> Any:
    """Return the group-mod for one group: its buckets watch the ports they send by."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    buckets = [
        parser.OFPBucket(
            watch_port=bucket.port_no,
            watch_group=ofp.OFPG_ANY,
            actions=[
                *_tag_actions(datapath, bucket.vlan_vid, push=bucket.vlan_vid is not None),
                parser.OFPActionOutput(bucket.port_no),
            ],
        )
        for bucket in group.buckets
    ]
    return parser.OFPGroupMod(datapath, command, ofp.OFPGT_FF, group.group_id, buckets)


def _match(entry: Any) -> Match:
    """Return what an entry matches; as the switch shows it, if it is of a form that Headway never writes."""
    fields = dict(entry.match.items())
    try:
        return state_match(fields)
    except ValueError:
        return tuple(sorted(fields.items()))


def _meter_flags(ofp: Any) -> int:
    """Return the flags of our meters: kbit/s, a burst, counters."""
    return int(ofp.OFPMF_KBPS | ofp.OFPMF_BURST | ofp.OFPMF_STATS)


def _rate_and_burst(ofp: Any, config: Any) -> tuple[int, int]:
    """Return rate in kbit/s and burst in kbit of a meter like ours, else zeros."""
    like_ours = config.flags == _meter_flags(ofp) and [band.type for band in config.bands] == [ofp.OFPMBT_DROP]
    return (config.bands[0].rate, config.bands[0].burst_size) if like_ours else (0, 0)


def _flow_mod(datapath: Any, command: int, rule: Rule) -> Any:
    """Return the flow-mod for one rule.

    The cookie mask keeps a deletion to entries that are ours; a switch ignores it in an ADD.
    """
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    return parser.OFPFlowMod(
        datapath,
        cookie=rule.cookie,
        cookie_mask=COOKIE_MASK if command == ofp.OFPFC_DELETE_STRICT else 0,
        table_id=rule.table_id,
        command=command,
        priority=rule.priority,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        flags=ofp.OFPFF_SEND_FLOW_REM if command == ofp.OFPFC_ADD else 0,
        match=parser.OFPMatch(**dict(rule.match)),
        instructions=_instructions(datapath, rule) if command == ofp.OFPFC_ADD else [],
    )


def _instructions(datapath: Any, rule: Rule) -> list[Any]:
    """Return what becomes of a packet of ``rule``: meter, tag off, mark, queue, tag on, output, metadata, table."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    actions = []
    if rule.pop_vlan:
        actions.append(parser.OFPActionPopVlan())
    if rule.dscp is not None:
        actions.append(parser.OFPActionSetField(ip_dscp=rule.dscp))
    if rule.queue_id is not None:
        actions.append(parser.OFPActionSetQueue(rule.queue_id))
    actions += _tag_actions(datapath, rule.vlan_vid, push=rule.push_vlan)
    if rule.output_port is not None:
        actions.append(parser.OFPActionOutput(rule.output_port, ofp.OFPCML_NO_BUFFER))
    if rule.group_id is not None:
        actions.append(parser.OFPActionGroup(rule.group_id))
    instructions = []
    if rule.meter_id is not None:
        instructions.append(parser.OFPInstructionMeter(rule.meter_id))
    if actions:
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions))
    if rule.metadata is not None:
        instructions.append(parser.OFPInstructionWriteMetadata(*rule.metadata))
    if rule.goto_table is not None:
        instructions.append(parser.OFPInstructionGotoTable(rule.goto_table))
    return instructions


def _tag_actions(datapath: Any, vlan_vid: int | None, *, push: bool) -> list[Any]:
    """Return the actions that give a packet a tag, and that write a VLAN into its tag."""
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    pushed = [parser.OFPActionPushVlan(_TAG)] if push else []
    written = [] if vlan_vid is None else [parser.OFPActionSetField(vlan_vid=vlan_vid | ofp.OFPVID_PRESENT)]
    return [*pushed, *written]


def _steps(ofp: Any, instruction: Any) -> list[Any]:
    """Return the actions of an apply-actions instruction; any other instruction itself."""
    return list(instruction.actions) if instruction.type == ofp.OFPIT_APPLY_ACTIONS else [instruction]


def _part(datapath: Any, step: Any) -> tuple[str, int | bool | Bits] | None:
    """Return the field of :class:`Rule` that an action or instruction sets, and its value; None if there is none."""
    parser = datapath.ofproto_parser
    part: tuple[str, int | bool | Bits] | None = None
    match step:
        case parser.OFPInstructionMeter():
            part = "meter_id", step.meter_id
        case parser.OFPInstructionWriteMetadata():
            part = "metadata", (step.metadata, step.metadata_mask)
        case parser.OFPInstructionGotoTable():
            part = "goto_table", step.table_id
        case parser.OFPActionSetQueue():
            part = "queue_id", step.queue_id
        case parser.OFPActionOutput():
            part = "output_port", step.port
        case parser.OFPActionGroup():
            part = "group_id", step.group_id
        case parser.OFPActionPopVlan():
            part = "pop_vlan", True
        case parser.OFPActionPushVlan(ethertype=ether_type) if ether_type == _TAG:
            part = "push_vlan", True
        case parser.OFPActionSetField(key="ip_dscp"):
            part = "dscp", step.value
        case parser.OFPActionSetField(key="vlan_vid"):
            part = "vlan_vid", step.value & ~datapath.ofproto.OFPVID_PRESENT
    return part
