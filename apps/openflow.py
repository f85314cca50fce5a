"""Turns what switches say into calls on a listener. No decisions here."""

from typing import Any, Protocol

from os_ken.base.app_manager import OSKenApp  # must come before os_ken.controller: they import each other
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3

_ANSWERS = [
    ofp_event.EventOFPBarrierReply,
    ofp_event.EventOFPEchoReply,
    ofp_event.EventOFPErrorMsg,
    ofp_event.EventOFPAggregateStatsReply,
    ofp_event.EventOFPFlowStatsReply,
    ofp_event.EventOFPGroupDescStatsReply,
    ofp_event.EventOFPMeterConfigStatsReply,
    ofp_event.EventOFPMeterFeaturesStatsReply,
    ofp_event.EventOFPRoleReply,
    ofp_event.EventOFPTableFeaturesStatsReply,
]


class OpenFlowListener(Protocol):
    """What the application calls: ``controller.southbound.openflow.session.SwitchSessions``, or a recorder in tests."""

    def connected(self, datapath: Any) -> None:
        """Take in a switch that has finished the OpenFlow handshake."""

    def disconnected(self, datapath: Any) -> None:
        """Take in that a connection has ended."""

    def answered(self, msg: Any) -> None:
        """Take in an answer of a switch."""

    def removed(self, msg: Any) -> None:
        """Take in that a rule has gone."""

    def port_changed(self, msg: Any) -> None:
        """Take in that a port has come, gone, or changed its state."""


class OpenFlowApp(OSKenApp):  # type: ignore[misc]  # os-ken has no types
    """The os-ken application: OpenFlow 1.3, one call a handler."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]  # noqa: RUF012 - os-ken reads a list of the class

    def __init__(self, *args: Any, listener: OpenFlowListener, **kwargs: Any) -> None:
        """Report to ``listener``."""
        super().__init__(*args, **kwargs)
        self.listener = listener

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def connected(self, ev: Any) -> None:
        """Report a switch that has finished the handshake."""
        self.listener.connected(ev.datapath)

    @set_ev_cls(ofp_event.EventOFPStateChange, DEAD_DISPATCHER)  # type: ignore[untyped-decorator]
    def disconnected(self, ev: Any) -> None:
        """Report a connection that has ended."""
        self.listener.disconnected(ev.datapath)

    @set_ev_cls(_ANSWERS, MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def answered(self, ev: Any) -> None:
        """Report an answer."""
        self.listener.answered(ev.msg)

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def removed(self, ev: Any) -> None:
        """Report a rule that has gone."""
        self.listener.removed(ev.msg)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def port_changed(self, ev: Any) -> None:
        """Report a port."""
        self.listener.port_changed(ev.msg)
