"""A connection to the sessions whose switch is played by the test."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from os_ken.base import app_manager  # noqa: F401 - must come before os_ken.ofproto: they import each other
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser

from controller.security.tls import ShownEnd
from controller.southbound.openflow.session import SwitchSessions
from controller.southbound.openflow.state import SwitchState, drop_meter

DPID = 1
TERM = 7
SMALL, LARGE = (SwitchState(meters=frozenset({drop_meter(1000, rate, 1000)})) for rate in (1_000_000, 9_000_000))


@dataclass(eq=False)
class PlayedDatapath:
    """A connection whose switch answers as the test says; by default confirms all and has nothing installed."""

    sessions: SwitchSessions
    refuse: Callable[[Any], bool] = lambda _message: False
    refusal: tuple[int, int] = (12, 2)  # OFPMMFC_INVALID_METER
    ignores: Callable[[Any], bool] = lambda _message: False
    sent: list[Any] = field(default_factory=list)
    xids: Iterator[int] = field(default_factory=itertools.count)
    id: int = DPID
    address: Any = "played"
    ports: dict[int, Any] = field(default_factory=dict)
    ofproto: Any = ofproto_v1_3
    ofproto_parser: Any = ofproto_v1_3_parser
    is_closed: bool = False
    role: Any = None  # what it answers to the wish to be its master: None yes, () nothing, else an error
    generation: int | None = None  # that came with that wish
    asked_role: int | None = None  # which it was
    now_role: int | None = None  # which it says that we have; None: the one that we asked for last
    certified_dpid: int | None = None
    certificate: ShownEnd | None = None
    is_there: bool = True  # answers an echo
    room: tuple[int, dict[int, int]] | None = None  # for how many meters, and rules by table; None: it does not say

    def close(self) -> None:
        """End the connection."""
        self.is_closed = True

    def set_xid(self, msg: Any) -> int:
        """Number the messages of the connection."""
        msg.set_xid(next(self.xids))
        return msg.xid

    def send_msg(self, msg: Any) -> bool:
        """Keep the message and answer it; the wish to be its master is kept apart."""
        parser = self.ofproto_parser
        if isinstance(msg, parser.OFPRoleRequest) and msg.role == self.ofproto.OFPCR_ROLE_NOCHANGE:
            self.answer_question(msg)
            return True
        if isinstance(msg, parser.OFPRoleRequest):
            self.generation, self.asked_role = msg.generation_id, msg.role
            self.answer_role(msg)
            return True
        if isinstance(msg, parser.OFPEchoRequest):
            if self.is_there and not self.is_closed:
                self.say(parser.OFPEchoReply(self), msg.xid)
            return not self.is_closed
        if isinstance(msg, parser.OFPMeterFeaturesStatsRequest | parser.OFPTableFeaturesStatsRequest):
            self.answer_room(msg)
            return True
        self.sent.append(msg)
        answer = {
            parser.OFPBarrierRequest: parser.OFPBarrierReply,
            parser.OFPFlowStatsRequest: parser.OFPFlowStatsReply,
            parser.OFPMeterConfigStatsRequest: parser.OFPMeterConfigStatsReply,
            parser.OFPGroupDescStatsRequest: parser.OFPGroupDescStatsReply,
        }.get(type(msg))
        if self.ignores(msg):
            return True
        if self.refuse(msg):
            error_type, code = self.refusal
            self.say(parser.OFPErrorMsg(self, type_=error_type, code=code, data=b""), msg.xid)
        elif isinstance(msg, parser.OFPAggregateStatsRequest):
            self.say(parser.OFPAggregateStatsReply(self, body=parser.OFPAggregateStats(0, 0, 0), flags=0), msg.xid)
        elif answer is parser.OFPBarrierReply:
            self.say(answer(self), msg.xid)
        elif answer is not None:
            self.say(answer(self, body=[], flags=0), msg.xid)
        return True

    def send_together(self, messages: Iterable[Any]) -> bool:
        """Keep the messages and answer them, one after the other."""
        return all(self.send_msg(msg) for msg in messages)

    def answer_role(self, msg: Any) -> None:
        """Answer the wish to be its master."""
        parser = self.ofproto_parser
        if self.role is None:
            self.say(parser.OFPRoleReply(self, role=msg.role, generation_id=msg.generation_id), msg.xid)
        elif self.role:
            error_type, code = self.role
            self.say(parser.OFPErrorMsg(self, type_=error_type, code=code, data=b""), msg.xid)

    def answer_question(self, msg: Any) -> None:
        """Say which role we have; if it answers wishes for a role."""
        role = self.asked_role if self.now_role is None else self.now_role
        if self.role is None and not self.is_closed:
            self.say(self.ofproto_parser.OFPRoleReply(self, role=role, generation_id=self.generation), msg.xid)
        elif self.role:
            self.answer_role(msg)

    def answer_room(self, msg: Any) -> None:
        """Say how much it holds, the tables one by one; or that it does not know the question."""
        parser = self.ofproto_parser
        if self.room is None:
            self.say(parser.OFPErrorMsg(self, type_=1, code=2, data=b""), msg.xid)  # OFPBRC_BAD_MULTIPART
        elif isinstance(msg, parser.OFPMeterFeaturesStatsRequest):
            body = [parser.OFPMeterFeaturesStats(self.room[0], 2, 0, 1, 0)]
            self.say(parser.OFPMeterFeaturesStatsReply(self, body=body, flags=0), msg.xid)
        else:
            tables = [parser.OFPTableFeaturesStats(table_id=n, max_entries=m) for n, m in self.room[1].items()]
            for left, table in reversed([*enumerate(reversed(tables))]):
                self.say(parser.OFPTableFeaturesStatsReply(self, body=[table], flags=int(left > 0)), msg.xid)

    def say(self, reply: Any, xid: int) -> None:
        """Say something to the controller."""
        reply.xid, reply.msg_type = xid, reply.cls_msg_type
        self.sessions.answered(reply)

    def meter_mods(self) -> list[int]:
        """The meters that were named, in order."""
        return [msg.meter_id for msg in self.sent if isinstance(msg, self.ofproto_parser.OFPMeterMod)]


def connected(sessions: SwitchSessions, **played: Any) -> PlayedDatapath:
    """A switch that has just connected."""
    datapath = PlayedDatapath(sessions, **played)
    sessions.connected(datapath)
    return datapath


def at_port(number: int, hardware: str) -> dict[int, Any]:
    """A live port of its own hardware address, as a switch shows it."""
    parser, live = ofproto_v1_3_parser, ofproto_v1_3.OFPPS_LIVE
    return {number: parser.OFPPort(number, hardware, b"ls1-eth1", 0, live, 0, 0, 0, 0, 0, 0)}
