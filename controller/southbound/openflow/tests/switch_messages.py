"""What switches say, as bytes: as os-ken writes it, and where it cannot, by hand."""

from typing import Any

from os_ken.base import app_manager  # noqa: F401 - must come before os_ken.ofproto: they import each other
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser


def messages_of_switches(datapath: Any) -> tuple[bytes, ...]:
    """Return an error, flows twice, meters, groups, a rule and a port that changed, a barrier, a role, its room."""
    match = parser.OFPMatch(eth_type=0x0800, ipv4_dst=("10.0.0.0", "255.255.255.0"), vlan_vid=0x1005)
    actions = [parser.OFPActionSetQueue(1), parser.OFPActionSetField(ip_dscp=46), parser.OFPActionOutput(3)]
    steps = [parser.OFPInstructionMeter(1000), parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
    flow = parser.OFPFlowMod(datapath, cookie=1, match=match, instructions=steps)
    flow.xid = 1
    flow.serialize()
    body = bytes(flow.buf[48:])  # match and instructions are the same in a flow's statistics
    stats = (48 + len(body)).to_bytes(2, "big") + bytes(46) + body
    error = parser.OFPErrorMsg(datapath, type_=1, code=10, data=b"abcdefgh")
    meter = bytes.fromhex("0018000d000003e800010010000000640000006400000000")
    bucket = bytes.fromhex("0020000000000003ffffffff000000000000001000000003ffe5000000000000")
    group = bytes.fromhex("00280300000003e8") + bucket

    def framed(kind: int, content: bytes) -> bytes:
        return bytes([4, kind]) + (8 + len(content)).to_bytes(2, "big") + bytes(4) + content

    def multipart(kind: int, content: bytes) -> bytes:
        return framed(ofp.OFPT_MULTIPART_REPLY, kind.to_bytes(2, "big") + bytes(6) + content)

    error.xid = 1
    error.serialize()
    port = (3).to_bytes(4, "big") + bytes(4) + b"\x02\0\0\0\0\x01\0\0" + b"ls1-eth1".ljust(16, b"\0") + bytes(32)
    return (
        bytes(error.buf),
        multipart(ofp.OFPMP_FLOW, stats),
        multipart(ofp.OFPMP_FLOW, stats + stats),
        multipart(ofp.OFPMP_METER_CONFIG, meter),
        multipart(ofp.OFPMP_GROUP_DESC, group),
        framed(ofp.OFPT_FLOW_REMOVED, bytes(40) + body[: len(body) // 8 * 8]),
        framed(ofp.OFPT_PORT_STATUS, bytes(8) + port),
        framed(ofp.OFPT_BARRIER_REPLY, b""),
        framed(ofp.OFPT_ROLE_REPLY, bytes(16)),
        multipart(ofp.OFPMP_AGGREGATE, bytes(24)),
        multipart(ofp.OFPMP_METER_FEATURES, bytes(16)),
        multipart(ofp.OFPMP_TABLE_FEATURES, b"\0\x48" + bytes(70) + b"\0\x40" + bytes(62)),
    )
