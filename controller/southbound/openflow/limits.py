"""How much a switch holds, by its own word. Source: OpenFlow 1.3.5, sections 7.3.5.5 (tables) and 7.3.5.14 (meters)."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from controller.southbound.errors import SwitchTooSmall
from controller.southbound.openflow import wire
from controller.southbound.openflow.rule_parts import LEAVE_TABLE
from controller.southbound.openflow.state import SwitchState

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SwitchLimits:
    """What a switch has room for.

    Attributes:
        meters: how many it holds; None: it has not said.
        rules: by table of ours, how many entries it holds; a table that it has not said anything of is not there.
    """

    meters: int | None = None
    rules: Mapping[int, int] = field(default_factory=dict)

    def check(self, dpid: int, desired: SwitchState) -> None:
        """Refuse a state that the switch has no room for, before anything of it is sent.

        Raises:
            SwitchTooSmall: it has not.
        """
        if self.meters is not None and len(desired.meters) > self.meters:
            raise SwitchTooSmall(dpid, "meters", len(desired.meters), self.meters)
        if len(desired.rules) <= min(self.rules.values(), default=len(desired.rules)):
            return  # so that no switch with plenty of room has its rules counted
        for table_id, count in sorted(Counter(rule.table_id for rule in desired.rules).items()):
            if count > self.rules.get(table_id, count):
                raise SwitchTooSmall(dpid, f"rules in table {table_id}", count, self.rules[table_id])


class AskedLimits:
    """What one connection was asked for its limits, and what it has answered to that. For os-ken's thread alone.

    Nobody waits for it: a switch that does not say is taken to have room, and refuses what it has none for.

    Attributes:
        known: what it has said so far.
    """

    def __init__(self, datapath: Any) -> None:
        """Ask nothing yet."""
        self.known = SwitchLimits()
        self._datapath = datapath
        self._tables: dict[int, int] = {}
        self._meters_xid = -1
        self._open: set[int] = set()

    def ask(self) -> None:
        """Ask both, the first time; the answers may be there before this returns.

        A slave is answered too, so that who begins to lead need not read what Open vSwitch says of 254 tables.
        """
        if self._meters_xid >= 0:
            return
        datapath = self._datapath
        requests = wire.meter_features_request(datapath), wire.table_features_request(datapath)
        self._meters_xid, tables_xid = (datapath.set_xid(request) for request in requests)
        self._open = {self._meters_xid, tables_xid}
        for request in requests:
            datapath.send_msg(request)

    def takes(self, msg: Any) -> bool:
        """Take in an answer; return whether it is one to this. An error says that the switch does not know."""
        if msg.xid not in self._open:
            return False
        if not wire.is_error(msg):
            if not wire.is_multipart(msg):
                return False
            if msg.xid == self._meters_xid:
                self.known = SwitchLimits(msg.body[0].max_meter, self.known.rules)
            else:
                ours = [table for table in msg.body if table.table_id <= LEAVE_TABLE]
                self._tables |= {table.table_id: table.max_entries for table in ours}
            if wire.has_more(msg):
                return True
        self._open.discard(msg.xid)
        if not self._open:
            self.known = SwitchLimits(self.known.meters, self._tables)
            fewest = min(self._tables.values(), default=None)
            _log.info("switch.limits", dpid=f"{self._datapath.id:#018x}", meters=self.known.meters, rules=fewest)
        return True
